//! Strided copies: transposes, slices, broadcasts, reversals.

use super::copy_batch::{CopyBatch, CopyPart};
use super::error::LayoutError;
use super::loop_nest::LoopNest;
use crate::pool::Pool;

/// A strided layout, in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the element with index 0 in every dimension.
    pub offset: usize,
    /// One stride per dimension; zero broadcasts, a negative one reverses.
    pub strides: Vec<isize>,
}

impl Layout {
    /// Row-major from the start of the buffer.
    ///
    /// # Errors
    ///
    /// When a size overflows.
    pub fn row_major(dims: &[usize]) -> Result<Self, LayoutError> {
        Ok(Self { offset: 0, strides: row_major(dims)? })
    }
}

/// Row-major strides.
///
/// # Errors
///
/// When a size overflows.
pub fn row_major(dims: &[usize]) -> Result<Vec<isize>, LayoutError> {
    let mut strides = vec![1isize; dims.len()];
    let mut step = 1isize;
    for (stride, &size) in strides.iter_mut().zip(dims).rev() {
        *stride = step;
        // An empty array has strides too.
        let size = isize::try_from(size.max(1)).map_err(|_| LayoutError::Overflow)?;
        step = step.checked_mul(size).ok_or(LayoutError::Overflow)?;
    }
    Ok(strides)
}

/// A planned strided copy.
#[derive(Debug, Clone)]
pub struct StridedCopy {
    batch: CopyBatch,
}

impl StridedCopy {
    /// A copy of `dims` elements of `element_size` bytes.
    ///
    /// # Errors
    ///
    /// When the number of strides is not that of the dimensions, or a size overflows.
    pub fn new(
        element_size: usize,
        dims: &[usize],
        source: &Layout,
        target: &Layout,
    ) -> Result<Self, LayoutError> {
        let mut batch = CopyBatch::default();
        if let Some(nest) = LoopNest::new(element_size, dims, &source.strides, &target.strides)? {
            let bytes = |offset: usize| offset.checked_mul(element_size).ok_or(LayoutError::Overflow);
            let (source_offset, target_offset) = (bytes(source.offset)?, bytes(target.offset)?);
            batch.push(CopyPart { nest, source: 0, source_offset, target_offset });
        }
        Ok(Self { batch })
    }

    /// The copy that permutes a row-major array: dimension `i` of the target is dimension `permutation[i]` of `dims`.
    ///
    /// # Errors
    ///
    /// When `permutation` is not one, or a size overflows.
    pub fn transpose(
        element_size: usize,
        dims: &[usize],
        permutation: &[usize],
    ) -> Result<Self, LayoutError> {
        let mut seen = vec![false; dims.len()];
        super::error::check_rank("the permutation", permutation.len(), dims.len())?;
        for &found in permutation {
            match seen.get_mut(found) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(LayoutError::Dimension { what: "the permutation", found, rank: dims.len() }),
            }
        }
        let strides = row_major(dims)?;
        let permuted: Vec<usize> = permutation.iter().map(|&dim| dims[dim]).collect();
        let source = Layout { offset: 0, strides: permutation.iter().map(|&dim| strides[dim]).collect() };
        Self::new(element_size, &permuted, &source, &Layout::row_major(&permuted)?)
    }

    /// How many bytes are written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Runs the copy.
    ///
    /// # Safety
    ///
    /// Every element of the source's layout may be read, every element of the target's may be written and is none of the
    /// source's. No two indices are the same element of the target.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, target: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.batch.run(pool, &[source], target) }
    }
}
