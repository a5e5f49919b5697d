//! Cumulative reductions.

use warpforge_tensor::ElementType;

use crate::reduce::ReduceOp;
use crate::testing::{indices, position, with_pools};
use crate::window::Cumulative;

/// Reduces along a dimension one element at a time.
fn naive<T: Copy, A: Copy>(
    (dims, axis, reverse): (&[usize], usize, bool),
    data: &[T],
    init: A,
    reduction: impl Fn(A, T) -> A,
    outcome: impl Fn(A) -> T,
) -> Vec<T> {
    indices(dims)
        .map(|index| {
            let line: Vec<usize> =
                if reverse { (index[axis]..dims[axis]).rev().collect() } else { (0..=index[axis]).collect() };
            let value = line.into_iter().fold(init, |value, at| {
                let mut input_index = index.clone();
                input_index[axis] = at;
                reduction(value, data[position(dims, &input_index)])
            });
            outcome(value)
        })
        .collect()
}

#[test]
fn random_arrays() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..60 {
        let dims = [random.usize(..4), random.usize(..30), random.usize(1..150)];
        let (axis, reverse) = (random.usize(..3), random.bool());
        let how = (&dims[..], axis, reverse);
        let floats: Vec<f32> = (0..dims.iter().product()).map(|_| random.f32() - 0.4).collect();
        let ints: Vec<i64> = (0..dims.iter().product()).map(|_| random.i64(..)).collect();
        let run = |element: ElementType, reduction: ReduceOp, source: *const u8, init: &[u8]| {
            let plan = Cumulative::new(element, reduction, &dims, axis, init, reverse).unwrap();
            let bytes = dims.iter().product::<usize>() * element.byte_width();
            // SAFETY: both buffers have all elements.
            with_pools(bytes, |pool, result| unsafe { plan.run(pool, source, result) })
        };
        let f32s = |reduction: ReduceOp, init: f32| {
            run(ElementType::F32, reduction, floats.as_ptr().cast(), &init.to_ne_bytes())
        };
        let sums = naive(how, &floats, 0.0f64, |sum, x| sum + f64::from(x), |sum| sum as f32);
        assert!(f32s(ReduceOp::Sum, 0.0) == bytemuck::cast_slice::<f32, u8>(&sums));
        let products = naive(how, &floats, 1.0f32, |product, x| product * x, |product| product);
        assert!(f32s(ReduceOp::Product, 1.0) == bytemuck::cast_slice::<f32, u8>(&products));
        let largest = naive(how, &floats, -1.0f32, f32::max, |x| x);
        assert!(f32s(ReduceOp::Maximum, -1.0) == bytemuck::cast_slice::<f32, u8>(&largest));
        let sums = naive(how, &ints, 5i64, i64::wrapping_add, |x| x);
        let ours = run(ElementType::I64, ReduceOp::Sum, ints.as_ptr().cast(), &5i64.to_ne_bytes());
        assert!(ours == bytemuck::cast_slice::<i64, u8>(&sums));
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let new = |element, reduction, axis, init: &[u8]| {
        Cumulative::new(element, reduction, &[4], axis, init, false).is_err()
    };
    assert!(!new(ElementType::F32, ReduceOp::Sum, 0, &[0; 4]));
    assert!(new(ElementType::F32, ReduceOp::Sum, 1, &[0; 4]));
    assert!(new(ElementType::F32, ReduceOp::Sum, 0, &[0; 2]));
    assert!(new(ElementType::F32, ReduceOp::Or, 0, &[0; 4]));
    assert!(new(ElementType::C64, ReduceOp::Sum, 0, &[0; 8]));
}
