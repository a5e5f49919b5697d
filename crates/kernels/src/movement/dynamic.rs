//! Slices whose place is data.

use super::batch::{Batch, Part};
use super::copy::row_major;
use super::error::{LayoutError, check_rank};
use super::nest::Nest;
use crate::pool::Pool;

/// A planned copy of a part of a row-major array, out of it or into it. A part that would reach beyond the array is
/// moved inside.
#[derive(Debug, Clone)]
pub struct DynamicSlice {
    part: Option<Part>,
    /// For each dimension the last position where the part can begin, and the bytes from one position to the next.
    starts: Vec<(i64, usize)>,
    update: bool,
}

impl DynamicSlice {
    /// Takes `sizes` elements of `element_size` bytes out of `dims`, into a row-major array.
    ///
    /// # Errors
    ///
    /// When the part is larger than the array, or bytes cannot be counted.
    pub fn read(element_size: usize, dims: &[usize], sizes: &[usize]) -> Result<Self, LayoutError> {
        Self::new(element_size, dims, sizes, false)
    }

    /// Writes a row-major array of `sizes` elements of `element_size` bytes into `dims`.
    ///
    /// # Errors
    ///
    /// When the part is larger than the array, or bytes cannot be counted.
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
        let nest = Nest::new(element_size, sizes, source, target)?;
        let starts = dims.iter().zip(sizes).zip(&whole).map(|((&dim, &size), stride)| {
            let bytes = stride.unsigned_abs().checked_mul(element_size).ok_or(LayoutError::Overflow)?;
            Ok(((dim - size) as i64, bytes))
        });
        Ok(Self {
            part: nest.map(|nest| Part { nest, source: 0, source_offset: 0, target_offset: 0 }),
            starts: starts.collect::<Result<_, LayoutError>>()?,
            update,
        })
    }

    /// Copies the part that begins at `starts`.
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
        let mut batch = Batch::default();
        batch.push(part);
        // SAFETY: the part was moved inside the array, and the caller vouches for that.
        unsafe { batch.run(pool, &[source], target) }
    }
}
