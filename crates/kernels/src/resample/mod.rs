//! Resampling along a dimension: each element of the result is a weighted sum of a few elements of the source, whose places and weights are
//! vectors. Interpolation of images is that along each of their dimensions.

// Sources and results are pointers, because the threads of a pool share them.
#![allow(unsafe_code)]

mod lines;
mod sums;
mod taps;
#[cfg(test)]
mod tests;

use warpforge_tensor::{ElementType, FloatType};

use crate::data_movement::{IndexReader, LayoutError};
use crate::isa::Isa;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

use lines::LineBlocks;
use sums::{ElementSums, RowSums};
use taps::{Shape, Taps};

/// Approximate bytes of the result that a task writes.
const TASK_BYTES: usize = 64 << 10;

/// Most elements of a row that are summed at a time: sums of several taps stay in the nearest cache.
const PIECE: usize = 2048;

/// A tap: for each element along the dimension a place in the source and a weight.
#[derive(Debug, Clone, Copy)]
pub struct Tap {
    /// Integers of the type that the plan was made for; clamped to the source.
    pub indices: *const u8,
    /// Weights of the type of the elements.
    pub weights: *const u8,
}

/// A planned resampling of a row-major array.
#[derive(Debug, Clone)]
pub struct Resample {
    shape: Shape,
    single: bool,
    readers: Vec<IndexReader>,
    isa: Isa,
}

impl Resample {
    /// Resamples dimension `axis` of an array of f32 or f64 to `count` elements; `indices` are the types of the taps' indices.
    ///
    /// # Errors
    ///
    /// When there is no kernel for a type, fewer than two taps, nothing to take elements from, or a size overflows.
    pub fn new(
        element: ElementType,
        dims: &[usize],
        axis: usize,
        count: usize,
        indices: &[ElementType],
    ) -> Result<Self, LayoutError> {
        let single = match element {
            ElementType::Float(FloatType::F32) => true,
            ElementType::Float(FloatType::F64) => false,
            found => return Err(LayoutError::Element { what: "what is resampled", found }),
        };
        let Some(&length) = dims.get(axis) else {
            return Err(LayoutError::Dimension { what: "resampling", found: axis, rank: dims.len() });
        };
        if indices.len() < 2 || length == 0 {
            return Err(LayoutError::Sizes("resampling needs two taps and a source"));
        }
        let product = |sizes: &[usize]| {
            sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size)).ok_or(LayoutError::Overflow)
        };
        let (outer, inner) = (product(&dims[..axis])?, product(&dims[axis + 1..])?);
        product(&[outer, length.max(count), inner, element.byte_width()])?;
        Ok(Self {
            shape: Shape { outer, length, count, inner },
            single,
            readers: indices.iter().map(|&element| IndexReader::new(element)).collect::<Result<_, _>>()?,
            isa: Isa::best(),
        })
    }

    /// Runs with as many taps as there are types of indices.
    ///
    /// # Safety
    ///
    /// The source and the taps may be read, the result may be written and has no byte in common with them.
    ///
    /// # Panics
    ///
    /// When there is another number of taps.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, taps: &[Tap], target: *mut u8) {
        assert_eq!(taps.len(), self.readers.len(), "one tap for each type of indices");
        let (source, target) = (SharedPtr::new(source), SharedPtr::new(target));
        // SAFETY: guaranteed by the caller, also for the tasks, which write different parts of the result.
        unsafe {
            if self.single {
                let taps = self.taps::<f32>(taps);
                let is_line = self.shape.inner == 1;
                match is_line.then(|| LineBlocks::of(&taps, self.shape, self.isa)).flatten() {
                    Some(blocks) => self
                        .run_lines(pool, |lines| blocks.run(source.get().cast(), lines, target.get().cast())),
                    None => self.run_sums(pool, RowSums::best(self.isa), &taps, source, target),
                }
            } else {
                self.run_sums(pool, RowSums::<f64>::portable(), &self.taps(taps), source, target);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Resample::run`].
    unsafe fn taps<T: Copy>(&self, taps: &[Tap]) -> Taps<T> {
        let Shape { length, count, .. } = self.shape;
        let mut starts = vec![0; count];
        let mut all = Taps { places: Vec::new(), weights: Vec::new(), count };
        for (tap, reader) in taps.iter().zip(&self.readers) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                reader.read_dense(tap.indices, &mut starts);
                all.weights.extend_from_slice(std::slice::from_raw_parts(tap.weights.cast(), count));
            }
            all.places.extend(starts.iter().map(|&at| at.clamp(0, length as i64 - 1) as usize));
        }
        all
    }

    fn run_lines(&self, pool: &Pool, run: impl Fn(std::ops::Range<usize>) + Sync) {
        let Shape { outer, count, .. } = self.shape;
        let each = (TASK_BYTES / size_of::<f32>() / count.max(1)).max(1);
        pool.run(outer.div_ceil(each), &|task, _| run(task * each..outer.min((task + 1) * each)));
    }

    /// # Safety
    ///
    /// As for [`Resample::run`].
    unsafe fn run_sums<T: ElementSums>(
        &self,
        pool: &Pool,
        sums: RowSums<T>,
        taps: &Taps<T>,
        source: SharedPtr<*const u8>,
        target: SharedPtr<*mut u8>,
    ) {
        let Shape { outer, length, count, inner } = self.shape;
        let pieces = inner.div_ceil(PIECE).max(1);
        let all = outer * count * pieces;
        let each = (TASK_BYTES / size_of::<T>() / inner.clamp(1, PIECE)).max(1);
        pool.run(all.div_ceil(each), &|task, _| {
            for at in task * each..all.min((task + 1) * each) {
                let (row, piece) = (at / pieces, at % pieces);
                let (first, column) = (row / count * length, row % count);
                let start = piece * PIECE;
                // SAFETY: places are inside the source; no other task has the piece of the row.
                unsafe {
                    let source = source.get().cast::<T>().add(first * inner + start);
                    let to = target.get().cast::<T>().add(row * inner + start);
                    sums.run(
                        taps,
                        column,
                        inner,
                        source,
                        std::slice::from_raw_parts_mut(to, PIECE.min(inner - start)),
                    );
                }
            }
        });
    }
}
