//! Reducing windows.

use half::bf16;
use warpforge_tensor::ElementType;

use super::{input_index, random_axis};
use crate::data_movement::LayoutError;
use crate::reduce::ReduceOp;
use crate::testing::{indices, position, with_pools};
use crate::window::{ReduceWindow, WindowAxis};

/// Reduces windows one element at a time.
fn naive<T: Copy>(
    dims: &[usize],
    counts: &[usize],
    axes: &[WindowAxis],
    data: &[T],
    init: T,
    reduction: impl Fn(T, T) -> T,
) -> Vec<T> {
    let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
    indices(counts)
        .map(|window| {
            indices(&sizes).fold(init, |value, element| {
                let offsets =
                    (0..dims.len()).map(|dim| input_index(&axes[dim], dims[dim], window[dim], element[dim]));
                let index: Option<Vec<usize>> = offsets.collect();
                reduction(value, index.map_or(init, |index| data[position(dims, &index)]))
            })
        })
        .collect()
}

fn check<T: bytemuck::Pod + std::fmt::Debug>(
    (element, reduction): (ElementType, ReduceOp),
    dims: &[usize],
    axes: &[WindowAxis],
    data: &[T],
    init: T,
    function: impl Fn(T, T) -> T,
) {
    let plan = ReduceWindow::new(element, reduction, dims, axes, bytemuck::bytes_of(&init)).unwrap();
    let length = plan.dims().iter().product::<usize>() * size_of::<T>();
    let ours = with_pools(length, |pool, result| {
        // SAFETY: both buffers have all elements.
        unsafe { plan.run(pool, data.as_ptr().cast(), result) };
    });
    let wanted = naive(dims, plan.dims(), axes, data, init, function);
    assert!(
        ours == bytemuck::cast_slice::<T, u8>(&wanted),
        "{reduction:?} of {element} in {dims:?}: {axes:?}"
    );
}

/// Zeros of both signs and NaN among values.
fn number(random: &mut fastrand::Rng) -> f32 {
    match random.u8(..40) {
        0 => f32::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f32::NEG_INFINITY,
        _ => random.f32() - 0.5,
    }
}

fn larger(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => a,
        (_, true) => b,
        _ => [a, b].into_iter().max_by(f32::total_cmp).unwrap(),
    }
}

fn smaller(a: f32, b: f32) -> f32 {
    -larger(-a, -b)
}

#[test]
fn random_windows_of_floats() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..80 {
        let rank = random.usize(..5);
        let dims: Vec<usize> = (0..rank).map(|_| random.usize(..[1, 90, 20, 9, 7][rank])).collect();
        let mut axes: Vec<WindowAxis> = (0..rank).map(|_| random_axis(&mut random)).collect();
        for axis in axes.iter_mut().rev().take(random.usize(..=rank)) {
            *axis = WindowAxis::default();
        }
        let data: Vec<f32> = (0..dims.iter().product()).map(|_| number(&mut random)).collect();
        let f32 = ElementType::F32;
        check((f32, ReduceOp::Maximum), &dims, &axes, &data, f32::NEG_INFINITY, larger);
        check((f32, ReduceOp::Maximum), &dims, &axes, &data, -0.0, larger);
        check((f32, ReduceOp::Minimum), &dims, &axes, &data, f32::INFINITY, smaller);
        let narrow: Vec<bf16> = data.iter().map(|&x| bf16::from_f32(x)).collect();
        let of_bf16 =
            |of: fn(f32, f32) -> f32| move |a: bf16, b: bf16| bf16::from_f32(of(a.to_f32(), b.to_f32()));
        let (most, least) = (of_bf16(larger), of_bf16(smaller));
        check((ElementType::BF16, ReduceOp::Maximum), &dims, &axes, &narrow, bf16::NEG_INFINITY, most);
        check((ElementType::BF16, ReduceOp::Minimum), &dims, &axes, &narrow, bf16::INFINITY, least);
        let data: Vec<f32> = data.iter().map(|x| if x.is_finite() { *x } else { 1.0 }).collect();
        for init in [0.0, -0.0, 1.0] {
            check((f32, ReduceOp::Sum), &dims, &axes, &data, init, |a, b| a + b);
            check((f32, ReduceOp::Product), &dims, &axes, &data, init, |a, b| a * b);
        }
        let narrow: Vec<bf16> = data.iter().map(|&x| bf16::from_f32(x)).collect();
        let sum = |a: bf16, b: bf16| bf16::from_f64(a.to_f64() + b.to_f64());
        check((ElementType::BF16, ReduceOp::Sum), &dims, &axes, &narrow, bf16::ZERO, sum);
        let wide: Vec<f64> = data.iter().map(|&x| f64::from(x)).collect();
        check((ElementType::F64, ReduceOp::Sum), &dims, &axes, &wide, 0.5, |a, b| a + b);
    }
}

#[test]
fn random_windows_of_integers_and_booleans() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..30 {
        let dims = [random.usize(1..6), random.usize(1..6), random.usize(1..40)];
        let axes = [random_axis(&mut random), random_axis(&mut random), WindowAxis::default()];
        let data: Vec<i32> = (0..dims.iter().product()).map(|_| random.i32(..)).collect();
        for init in [0, 1, -7] {
            check((ElementType::I32, ReduceOp::Sum), &dims, &axes, &data, init, i32::wrapping_add);
            check((ElementType::I32, ReduceOp::Product), &dims, &axes, &data, init, i32::wrapping_mul);
            check((ElementType::I32, ReduceOp::Maximum), &dims, &axes, &data, init, i32::max);
            check((ElementType::I32, ReduceOp::And), &dims, &axes, &data, init, |a, b| a & b);
        }
        let data: Vec<u8> = data.iter().map(|x| (x & 1) as u8).collect();
        for init in [0, 1] {
            check((ElementType::Bool, ReduceOp::Sum), &dims, &axes, &data, init, |a, b| a | b);
            check((ElementType::Bool, ReduceOp::Minimum), &dims, &axes, &data, init, |a, b| a & b);
            check((ElementType::Bool, ReduceOp::Or), &dims, &axes, &data, init, |a, b| a | b);
        }
    }
}

#[test]
fn pooling_of_images() {
    let mut random = fastrand::Rng::with_seed(3);
    for channels in [1, 3, 16, 64, 67, 131] {
        let dims = [2, 15, 17, channels];
        let axis = WindowAxis { size: 3, stride: 2, low: 1, high: 1, ..WindowAxis::default() };
        let axes = [WindowAxis::default(), axis, axis, WindowAxis::default()];
        let data: Vec<f32> = (0..dims.iter().product()).map(|_| number(&mut random)).collect();
        check((ElementType::F32, ReduceOp::Maximum), &dims, &axes, &data, f32::NEG_INFINITY, larger);
    }
}

#[test]
fn pooling_of_images_with_channels_first() {
    let mut random = fastrand::Rng::with_seed(4);
    for (side, size, stride, (low, high), dilation) in [
        (55, 3, 2, (0, 0), 1),
        (55, 3, 2, (0, 1), 1),
        (56, 3, 2, (1, 1), 1),
        (16, 2, 2, (0, 0), 1),
        (30, 3, 1, (1, 1), 1),
        (31, 2, 3, (1, 2), 1),
        (29, 3, 2, (2, 2), 2),
        (24, 2, 5, (-3, -2), 1),
        // All windows at the ends lie in the padding.
        (9, 2, 2, (9, 9), 1),
        // Several blocks of windows.
        (1100, 2, 2, (1, 1), 1),
    ] {
        let axis = WindowAxis { size, stride, low, high, dilation, ..WindowAxis::default() };
        let axes = [WindowAxis::default(), WindowAxis::default(), axis, axis];
        let dims = [1, 2, side.min(if side > 100 { 2 } else { 15 }), side];
        let data: Vec<f32> = (0..dims.iter().product()).map(|_| number(&mut random)).collect();
        check((ElementType::F32, ReduceOp::Maximum), &dims, &axes, &data, f32::NEG_INFINITY, larger);
        let data: Vec<f32> = data.iter().map(|x| if x.is_finite() { *x } else { 1.0 }).collect();
        for init in [0.0, -0.0, 1.0] {
            check((ElementType::F32, ReduceOp::Sum), &dims, &axes, &data, init, |a, b| a + b);
        }
        // A last dimension of size 1 is no lane.
        let thin = [&axes[..], &[WindowAxis::default()]].concat();
        let thin_dims = [&dims[..], &[1]].concat();
        check((ElementType::F32, ReduceOp::Sum), &thin_dims, &thin, &data, 0.0, |a, b| a + b);
        let narrow: Vec<bf16> = data.iter().map(|&x| bf16::from_f32(x)).collect();
        let most = |a: bf16, b: bf16| bf16::from_f32(larger(a.to_f32(), b.to_f32()));
        check((ElementType::BF16, ReduceOp::Maximum), &dims, &axes, &narrow, bf16::NEG_INFINITY, most);
        let wide: Vec<i64> = (0..dims.iter().product()).map(|_| random.i64(..)).collect();
        check((ElementType::I64, ReduceOp::Sum), &dims, &axes, &wide, 3, i64::wrapping_add);
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let axes = [WindowAxis::default()];
    let new = |element, reduction, init: &[u8]| {
        ReduceWindow::new(element, reduction, &[4], &axes, init).map(|_| ())
    };
    assert!(matches!(new(ElementType::F32, ReduceOp::And, &[0; 4]), Err(LayoutError::Element { .. })));
    assert!(matches!(new(ElementType::C64, ReduceOp::Sum, &[0; 8]), Err(LayoutError::Element { .. })));
    assert!(new(ElementType::F32, ReduceOp::Sum, &[0; 3]).is_err());
    assert!(ReduceWindow::new(ElementType::F32, ReduceOp::Sum, &[4, 4], &axes, &[0; 4]).is_err());
    let wide = [WindowAxis { size: 1 << 40, low: 1 << 40, ..WindowAxis::default() }];
    assert!(ReduceWindow::new(ElementType::F32, ReduceOp::Sum, &[4], &wide, &[0; 4]).is_err());
}
