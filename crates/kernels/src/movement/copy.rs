//! Copies from one layout to another: transposes, slices, repetitions, reversals.

use super::batch::{Batch, Part};
use super::error::LayoutError;
use super::nest::Nest;
use crate::pool::Pool;

/// Where the elements of an array are, in elements: that of the first, and how far apart neighbours along each dimension are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// From the start of the buffer to the element with index 0 everywhere.
    pub offset: usize,
    /// One for each dimension; zero repeats an element, a negative one goes backwards.
    pub strides: Vec<isize>,
}

impl Layout {
    /// Row-major from the start of the buffer.
    ///
    /// # Errors
    ///
    /// When the elements cannot be counted.
    pub fn row_major(dims: &[usize]) -> Result<Self, LayoutError> {
        Ok(Self { offset: 0, strides: row_major(dims)? })
    }
}

/// The strides of an array whose last dimension is contiguous.
///
/// # Errors
///
/// When the elements cannot be counted.
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

/// A planned copy.
#[derive(Debug, Clone)]
pub struct Copy {
    batch: Batch,
}

impl Copy {
    /// A copy of `dims` elements of `element_size` bytes.
    ///
    /// # Errors
    ///
    /// When there are not as many strides as dimensions, or bytes cannot be counted.
    pub fn new(
        element_size: usize,
        dims: &[usize],
        source: &Layout,
        target: &Layout,
    ) -> Result<Self, LayoutError> {
        let mut batch = Batch::default();
        if let Some(nest) = Nest::new(element_size, dims, &source.strides, &target.strides)? {
            let bytes = |offset: usize| offset.checked_mul(element_size).ok_or(LayoutError::Overflow);
            let (source_offset, target_offset) = (bytes(source.offset)?, bytes(target.offset)?);
            batch.push(Part { nest, source: 0, source_offset, target_offset });
        }
        Ok(Self { batch })
    }

    /// The copy that permutes a row-major array: dimension `i` of the target is dimension `permutation[i]` of `dims`.
    ///
    /// # Errors
    ///
    /// When that is no permutation, or bytes cannot be counted.
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

    /// Copies.
    ///
    /// # Safety
    ///
    /// Every element of the source's layout may be read, every element of the target's may be written and is none of the
    /// source's. No two indices are the same element of the target.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, target: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.batch.run(pool, &[source], target) }
    }
}
