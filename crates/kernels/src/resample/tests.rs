//! Resampling against sums of one element at a time.

use warpforge_tensor::{ElementType, IntType};

use super::lines::LineBlocks;
use super::taps::{Shape, Taps};
use super::{Resample, Tap};
use crate::data_movement::LayoutError;
use crate::isa::Isa;
use crate::testing::with_pools;

const I32: ElementType = ElementType::Int(IntType::I32);

/// Places and weights of one tap.
type RandomTap<T> = (Vec<i32>, Vec<T>);

/// The source, its sizes, the dimension and the taps.
struct Case<T> {
    source: Vec<T>,
    dims: Vec<usize>,
    axis: usize,
    taps: Vec<RandomTap<T>>,
}

impl<T: From<f32> + Copy + std::ops::Mul<Output = T> + std::ops::Add<Output = T>> Case<T> {
    /// `spread` is how far the places of a tap are from a line through the source.
    fn new(dims: &[usize], axis: usize, count: usize, taps: usize, spread: i32) -> Self {
        let mut random = fastrand::Rng::with_seed(count as u64);
        let length = dims[axis] as i32;
        let mut number = || T::from(random.f32() - 0.5);
        let source = (0..dims.iter().product()).map(|_| number()).collect();
        let weights: Vec<Vec<T>> = (0..taps).map(|_| (0..count).map(|_| number()).collect()).collect();
        let mut place = |at: usize| at as i32 * length / count as i32 + random.i32(-spread..=spread);
        let taps = weights.into_iter().map(|weights| ((0..count).map(&mut place).collect(), weights));
        Self { source, dims: dims.to_vec(), axis, taps: taps.collect() }
    }

    fn expected(&self) -> Vec<T> {
        let (outer, inner): (usize, usize) =
            (self.dims[..self.axis].iter().product(), self.dims[self.axis + 1..].iter().product());
        let (length, count) = (self.dims[self.axis], self.taps[0].0.len());
        let mut result = Vec::new();
        for position in 0..outer * count * inner {
            let (row, column, at) = (position / inner / count, position / inner % count, position % inner);
            let term = |(places, weights): &RandomTap<T>| {
                let place = places[column].clamp(0, length as i32 - 1) as usize;
                self.source[(row * length + place) * inner + at] * weights[column]
            };
            result.push(self.taps[1..].iter().fold(term(&self.taps[0]), |sum, tap| sum + term(tap)));
        }
        result
    }

    fn computed(&self, element: ElementType, isa: Isa) -> Vec<u8> {
        let types = vec![I32; self.taps.len()];
        let count = self.taps[0].0.len();
        let mut plan = Resample::new(element, &self.dims, self.axis, count, &types).unwrap();
        plan.isa = isa;
        let taps: Vec<Tap> = self
            .taps
            .iter()
            .map(|(indices, weights)| Tap {
                indices: indices.as_ptr().cast(),
                weights: weights.as_ptr().cast(),
            })
            .collect();
        with_pools(self.expected().len() * size_of::<T>(), |pool, result| {
            // SAFETY: all buffers have all elements.
            unsafe { plan.run(pool, self.source.as_ptr().cast(), &taps, result) };
        })
    }
}

#[test]
fn every_axis_and_distance() {
    let dims = [3, 40, 5, 33];
    for isa in Isa::available() {
        for axis in 0..4 {
            for (count, taps, spread) in [(1, 2, 0), (70, 2, 1), (260, 4, 2), (19, 3, 40), (33, 2, 3)] {
                let case = Case::<f32>::new(&dims, axis, count, taps, spread);
                let expected: Vec<u8> = case.expected().iter().flat_map(|x| x.to_ne_bytes()).collect();
                assert!(case.computed(ElementType::F32, isa) == expected, "{isa} {axis} {count} {spread}");
                let case = Case::<f64>::new(&dims, axis, count, taps, spread);
                let expected: Vec<u8> = case.expected().iter().flat_map(|x| x.to_ne_bytes()).collect();
                assert!(case.computed(ElementType::F64, isa) == expected, "{isa} {axis} {count} {spread}");
            }
        }
    }
}

/// Rows in several pieces, and lines that are shorter than vectors.
#[test]
fn long_rows_and_short_lines() {
    for (dims, axis) in [(vec![2, 3, 5000], 1), (vec![700, 5], 1), (vec![1, 1], 0), (vec![4, 0], 0)] {
        let case = Case::<f32>::new(&dims, axis, 9, 2, 1);
        let expected: Vec<u8> = case.expected().iter().flat_map(|x| x.to_ne_bytes()).collect();
        assert!(case.computed(ElementType::F32, Isa::best()) == expected, "{dims:?}");
    }
}

#[test]
fn vectors_are_picked_where_elements_are_close_together() {
    let shape = Shape { outer: 1, length: 100, count: 32, inner: 1 };
    let taps = |step: usize| Taps {
        places: (0..64).map(|at| at % 32 * step).collect(),
        weights: vec![1.0; 64],
        count: 32,
    };
    assert!(LineBlocks::of(&taps(1), shape, Isa::Avx512).is_some());
    assert!(LineBlocks::of(&taps(2), shape, Isa::Avx512).is_none());
}

#[test]
fn invalid_parameters_are_rejected() {
    let new = |element, dims: &[usize], axis, taps: usize| {
        Resample::new(element, dims, axis, 4, &vec![I32; taps]).unwrap_err()
    };
    assert!(matches!(new(ElementType::BF16, &[2], 0, 2), LayoutError::Element { .. }));
    assert!(matches!(new(ElementType::F32, &[2], 1, 2), LayoutError::Dimension { .. }));
    assert!(matches!(new(ElementType::F32, &[2], 0, 1), LayoutError::Sizes(_)));
    assert!(matches!(new(ElementType::F32, &[0, 3], 0, 2), LayoutError::Sizes(_)));
    assert!(matches!(new(ElementType::F32, &[usize::MAX, 3], 0, 2), LayoutError::Overflow));
}
