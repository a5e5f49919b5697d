//! Against loops that say what is meant, and by hand.

use fastrand::Rng;
use warpforge_tensor::ElementType;

use super::*;
use crate::testing::with_pools;

fn spec(features: [usize; 4], regions: usize, bins: [usize; 2]) -> RoiAlignSpec {
    let element = ElementType::F64;
    RoiAlignSpec {
        element,
        features,
        regions,
        bins,
        spatial_scale: 0.5,
        sampling_ratio: Some(2),
        aligned: false,
    }
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn forward(spec: &RoiAlignSpec, features: &[f64], regions: &[f64]) -> Vec<f64> {
    let plan = RoiAlign::new(spec.clone()).unwrap();
    let length = spec.regions * spec.features[1] * spec.bins[0] * spec.bins[1] * 8;
    floats(&with_pools(length, |pool, target| {
        // SAFETY: the buffers have all elements.
        unsafe { plan.run(pool, features.as_ptr().cast(), regions.as_ptr().cast(), target) };
    }))
}

fn backward(spec: &RoiAlignSpec, gradient: &[f64], regions: &[f64]) -> Vec<f64> {
    let plan = RoiAlign::new(spec.clone()).unwrap();
    let length = spec.features.iter().product::<usize>() * 8;
    floats(&with_pools(length, |pool, target| {
        // SAFETY: the buffers have all elements.
        unsafe { plan.run_backward(pool, gradient.as_ptr().cast(), regions.as_ptr().cast(), target) };
    }))
}

fn random(rng: &mut Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| rng.f64() * 2.0 - 1.0).collect()
}

#[test]
fn a_plane_that_rises_evenly_is_pooled_to_the_places_of_its_bins() {
    // The value of an element is its column, so that the mean of a bin is its centre.
    let features: Vec<f64> = (0..64).map(|at| f64::from(at % 8)).collect();
    let mut spec = spec([1, 1, 8, 8], 1, [1, 2]);
    // In features from 1 to 5: bins with the centres 2 and 4.
    assert_eq!(forward(&spec, &features, &[0.0, 2.0, 2.0, 10.0, 10.0]), [2.0, 4.0]);
    (spec.aligned, spec.sampling_ratio) = (true, None);
    assert_eq!(forward(&spec, &features, &[0.0, 2.0, 2.0, 10.0, 10.0]), [1.5, 3.5]);
}

#[test]
fn regions_of_other_images_and_outside_are_zero() {
    let spec = spec([1, 2, 4, 4], 4, [2, 2]);
    let far = [0.0, 100.0, 100.0, 120.0, 120.0];
    let regions =
        [[1.0, 0.0, 0.0, 4.0, 4.0], [-1.0, 0.0, 0.0, 4.0, 4.0], [f64::NAN, 0.0, 0.0, 4.0, 4.0], far];
    assert_eq!(forward(&spec, &[1.0; 32], &regions.concat()), [0.0; 32]);
    assert_eq!(backward(&spec, &[1.0; 32], &regions.concat()), [0.0; 32]);
}

#[test]
fn regions_of_any_size_end() {
    let mut spec = spec([1, 1, 4, 4], 4, [2, 2]);
    let huge = [0.0, -1e30, -1e30, 1e30, 1e30];
    let endless = [0.0, f64::NEG_INFINITY, 0.0, f64::INFINITY, 4.0];
    let regions = [huge, endless, [0.0, 4.0, 4.0, 0.0, 0.0], [0.0, f64::NAN, 0.0, 4.0, 4.0]].concat();
    for aligned in [false, true] {
        for sampling_ratio in [None, Some(2)] {
            (spec.aligned, spec.sampling_ratio) = (aligned, sampling_ratio);
            assert_eq!(forward(&spec, &[1.0; 16], &regions).len(), 16);
            assert_eq!(backward(&spec, &[1.0; 16], &regions).len(), 16);
        }
    }
}

#[test]
fn the_gradient_is_the_transpose() {
    // RoIAlign is linear in the features: <align(x), g> = <x, backward(g)> for all x and g.
    let mut rng = Rng::with_seed(1);
    for case in 0..40 {
        let features = [rng.usize(1..3), rng.usize(1..70), rng.usize(1..9), rng.usize(1..9)];
        let mut spec = spec(features, rng.usize(0..6), [rng.usize(1..4), rng.usize(1..4)]);
        (spec.aligned, spec.sampling_ratio) = (case % 2 == 0, (case % 3 > 0).then_some(case % 3));
        let region = |rng: &mut Rng| {
            let [x, y] = [rng.f64() * 20.0 - 4.0, rng.f64() * 20.0 - 4.0];
            [rng.usize(0..features[0]) as f64, x, y, x + rng.f64() * 16.0, y + rng.f64() * 16.0]
        };
        let regions: Vec<f64> = (0..spec.regions).flat_map(|_| region(&mut rng)).collect();
        let x = random(&mut rng, features.iter().product());
        let g = random(&mut rng, spec.regions * features[1] * spec.bins[0] * spec.bins[1]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let there = dot(&forward(&spec, &x, &regions), &g);
        let back = dot(&x, &backward(&spec, &g, &regions));
        assert!((there - back).abs() < 1e-9, "{there} {back}");
    }
}

fn nms(boxes: &[[f32; 4]], scores: &[f32], threshold: f64) -> Vec<i64> {
    let plan = Nms::new(ElementType::F32, boxes.len(), threshold).unwrap();
    let mut kept = vec![0_i64; boxes.len()];
    // SAFETY: the buffers have all elements.
    unsafe { plan.run(boxes.as_ptr().cast(), scores.as_ptr().cast(), kept.as_mut_ptr().cast()) };
    kept
}

#[test]
fn boxes_that_overlap_a_better_one_are_left_out() {
    let boxes =
        [[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 9.0], [20.0, 0.0, 30.0, 10.0], [0.0, 0.0, 10.0, 5.0]];
    assert_eq!(nms(&boxes, &[0.5, 0.9, 0.7, 0.1], 0.5), [1, 2, -1, -1]);
    // A half is not more than a half; but the box that it is a half of is left out itself.
    assert_eq!(nms(&boxes, &[0.9, 0.5, 0.7, 0.1], 0.5), [0, 2, 3, -1]);
    assert_eq!(nms(&boxes, &[0.9, 0.5, 0.7, 0.1], 1.0), [0, 2, 1, 3]);
}

#[test]
fn equal_scores_keep_their_order_and_nan_goes_first() {
    let apart: Vec<[f32; 4]> = (0..4).map(|at| [at as f32 * 9.0, 0.0, at as f32 * 9.0 + 1.0, 1.0]).collect();
    assert_eq!(nms(&apart, &[0.5, 0.5, 0.7, 0.5], 0.5), [2, 0, 1, 3]);
    assert_eq!(nms(&apart, &[0.5, f32::NAN, 0.7, -0.5], 0.5), [1, 2, 0, 3]);
    assert_eq!(
        nms(&[[1.0, 1.0, 1.0, 1.0]; 2], &[0.5, 0.5], 0.5),
        [0, 1],
        "boxes without an area do not overlap"
    );
    assert!(nms(&[], &[], 0.5).is_empty());
}

#[test]
fn plans_of_other_types_and_sizes_are_refused() {
    assert!(matches!(Nms::new(ElementType::BF16, 4, 0.5), Err(RegionError::Element(_))));
    assert_eq!(RoiAlign::new(spec([1, 1, 0, 4], 1, [1, 1])).err(), Some(RegionError::Sizes));
    assert_eq!(RoiAlign::new(spec([1, usize::MAX, 4, 4], 1, [1, 1])).err(), Some(RegionError::Sizes));
    let other = RoiAlignSpec { element: ElementType::I64, ..spec([1, 1, 4, 4], 1, [1, 1]) };
    assert!(matches!(RoiAlign::new(other), Err(RegionError::Element(_))));
}
