//! Dynamic slices: slices with start indices from data.

use super::copy::row_major;
use super::copy_batch::{CopyBatch, CopyPart};
use super::error::{LayoutError, check_rank};
use super::loop_nest::LoopNest;
use crate::pool::Pool;

/// A planned copy of a slice of a row-major array, out of it or into it. Start indices are clamped to the array.
#[derive(Debug, Clone)]
pub struct DynamicSlice {
    part: Option<CopyPart>,
    /// For each dimension the last valid start index, and its stride in bytes.
    starts: Vec<(i64, usize)>,
    update: bool,
}

impl DynamicSlice {
    /// Takes `sizes` elements of `element_size` bytes out of `dims`, into a row-major array.
    ///
    /// # Errors
    ///
    /// When the slice is larger than the array, or a size overflows.
    pub fn read(element_size: usize, dims: &[usize], sizes: &[usize]) -> Result<Self, LayoutError> {
        Self::new(element_size, dims, sizes, false)
    }

    /// Writes a row-major array of `sizes` elements of `element_size` bytes into `dims`.
    ///
    /// # Errors
    ///
    /// When the slice is larger than the array, or a size overflows.
    pub fn update(element_size: usize, dims: &[usize], sizes: &[usize]) -> Result<Self, LayoutError> {
        Self::new(element_size, dims, sizes, true)
    }

    fn new(element_size: usize, dims: &[usize], sizes: &[usize], update: bool) -> Result<Self, LayoutError> {
        check_rank("the slice", sizes.len(), dims.len())?;
        if sizes.iter().zip(dims).any(|(size, dim)| size > dim) {
            return Err(LayoutError::Sizes("a slice is larger than the array"));
        }
        let (whole, part) = (row_major(dims)?, row_major(sizes)?);
        let (source, target) = if update { (&part, &whole) } else { (&whole, &part) };
        let nest = LoopNest::new(element_size, sizes, source, target)?;
        let starts = dims.iter().zip(sizes).zip(&whole).map(|((&dim, &size), stride)| {
            let bytes = stride.unsigned_abs().checked_mul(element_size).ok_or(LayoutError::Overflow)?;
            Ok(((dim - size) as i64, bytes))
        });
        Ok(Self {
            part: nest.map(|nest| CopyPart { nest, source: 0, source_offset: 0, target_offset: 0 }),
            starts: starts.collect::<Result<_, LayoutError>>()?,
            update,
        })
    }

    /// Copies the slice that starts at `starts`.
    ///
    /// # Safety
    ///
    /// The source may be read and the target written, as large as planned; they have no byte in common.
    ///
    /// # Panics
    ///
    /// When there is not a start for each dimension.
    pub unsafe fn run(&self, pool: &Pool, starts: &[i64], source: *const u8, target: *mut u8) {
        assert_eq!(starts.len(), self.starts.len(), "one start for each dimension");
        let Some(part) = &self.part else { return };
        let inside = starts.iter().zip(&self.starts);
        let offset = inside.map(|(&start, &(last, step))| start.clamp(0, last) as usize * step).sum();
        let mut part = part.clone();
        if self.update {
            part.target_offset = offset;
        } else {
            part.source_offset = offset;
        }
        let mut batch = CopyBatch::default();
        batch.push(part);
        // SAFETY: start indices were clamped to the array, which the caller guarantees.
        unsafe { batch.run(pool, &[source], target) }
    }
}
