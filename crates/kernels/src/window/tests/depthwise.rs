//! Depthwise convolution.

use std::sync::Mutex;

use super::{input_index, random_axis};
use crate::testing::{indices, position, with_pools};
use crate::window::{Depthwise, WindowAxis};

/// Sums of products in f64, and the sums of their magnitudes.
fn naive(
    plan: &Depthwise,
    dims: &[usize],
    axes: &[WindowAxis],
    multiplier: usize,
    data: &[f32],
    weights: &[f32],
) -> Vec<(f64, f64)> {
    let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
    let [.., channels] = *plan.dims() else { unreachable!() };
    indices(plan.dims())
        .map(|index| {
            let channel = *index.last().unwrap();
            let mut sums = (0.0, 0.0);
            for element in indices(&sizes) {
                let offsets = (0..axes.len())
                    .map(|dim| input_index(&axes[dim], dims[dim + 1], index[dim + 1], element[dim]));
                let Some(offsets) = offsets.collect::<Option<Vec<usize>>>() else { continue };
                let from = [&index[..1], &offsets, &[channel / multiplier]].concat();
                let weight = weights[position(&sizes, &element) * channels + channel];
                let product = f64::from(data[position(dims, &from)]) * f64::from(weight);
                sums = (sums.0 + product, sums.1 + product.abs());
            }
            sums
        })
        .collect()
}

fn check(dims: &[usize], axes: &[WindowAxis], multiplier: usize) {
    let mut random = fastrand::Rng::with_seed(9);
    let plan = Depthwise::new(dims, axes, multiplier).unwrap();
    let mut numbers = |count: usize| (0..count).map(|_| random.f32() - 0.5).collect::<Vec<f32>>();
    let data = numbers(dims.iter().product());
    let [.., width, channels] = *plan.dims() else { unreachable!() };
    let weights = numbers(axes.iter().map(|axis| axis.size).product::<usize>() * channels);
    let packed = plan.pack(&weights).unwrap();
    let length = plan.dims().iter().product::<usize>();
    let ours = with_pools(length * 4, |pool, result| {
        // SAFETY: all buffers have all elements.
        unsafe { plan.run(pool, data.as_ptr(), &packed, Some(result.cast()), None) };
    });
    // The same rows reach a sink, without a target.
    let seen = Mutex::new(vec![0u8; length * 4]);
    with_pools(0, |pool, _| {
        let sink = |block: &crate::output_block::OutputBlock| {
            assert_eq!((block.columns.clone(), block.rows.len()), (0..channels, width));
            for (at, row) in block.rows.clone().enumerate() {
                // SAFETY: the block has that many rows of that many elements.
                let values = unsafe {
                    std::slice::from_raw_parts(block.data.add(at * block.stride * 4), channels * 4)
                };
                seen.lock().unwrap()[row * channels * 4..][..channels * 4].copy_from_slice(values);
            }
        };
        // SAFETY: the images have all elements.
        unsafe { plan.run(pool, data.as_ptr(), &packed, None, Some(&sink)) };
    });
    assert!(ours == seen.into_inner().unwrap(), "{dims:?} {axes:?}");
    let ours: Vec<f32> =
        ours.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect();
    for (ours, (sum, magnitude)) in ours.iter().zip(naive(&plan, dims, axes, multiplier, &data, &weights)) {
        assert!((f64::from(*ours) - sum).abs() <= 4e-6 * magnitude, "{ours} for {sum}: {dims:?} {axes:?}");
    }
}

#[test]
fn random_convolutions() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..60 {
        let spatial = random.usize(1..4);
        let mut dims = vec![random.usize(1..3)];
        dims.extend((0..spatial).map(|_| random.usize(1..[0, 40, 12, 6][spatial])));
        dims.push(*random.choice([1, 5, 16, 33, 64, 100].iter()).unwrap());
        let axes: Vec<WindowAxis> = (0..spatial).map(|_| random_axis(&mut random)).collect();
        check(&dims, &axes, *random.choice([1, 1, 2, 3].iter()).unwrap());
    }
}

#[test]
fn common_convolutions() {
    let axis = |size, stride, pad| WindowAxis { size, stride, low: pad, high: pad, ..WindowAxis::default() };
    for (size, stride) in [(3, 1), (3, 2), (5, 1), (7, 1)] {
        let axis = axis(size, stride, size as i64 / 2);
        check(&[1, 28, 28, 96], &[axis, axis], 1);
    }
    check(&[1, 0, 4, 8], &[axis(3, 1, 1), axis(3, 1, 1)], 1);
    check(&[0, 4, 4, 8], &[axis(3, 1, 1), axis(3, 1, 1)], 1);
    check(&[1, 2, 2, 8], &[axis(3, 1, 0), axis(3, 1, 0)], 1);
}

#[test]
fn invalid_parameters_are_rejected() {
    let axis = WindowAxis::default();
    assert!(Depthwise::new(&[1, 4], &[], 1).is_err());
    assert!(Depthwise::new(&[1, 4, 4, 8], &[axis], 1).is_err());
    assert!(Depthwise::new(&[1, 4, 8], &[axis], usize::MAX).is_err());
    assert!(Depthwise::new(&[1, 4, 8], &[axis], 1).unwrap().pack(&[0.0; 7]).is_err());
}
