//! Concatenation.

use super::copy::{Layout, row_major};
use super::copy_batch::{CopyBatch, CopyPart};
use super::error::{LayoutError, check_rank};
use super::loop_nest::LoopNest;
use super::whole_rows::WholeRows;
use crate::pool::Pool;

/// A planned concatenation into a row-major array.
#[derive(Debug, Clone)]
pub struct Concat {
    batch: CopyBatch,
    /// The same copies row by row, where there are rows.
    rows: Option<WholeRows>,
    inputs: usize,
    dims: Vec<usize>,
}

impl Concat {
    /// Concatenates arrays of elements of `element_size` bytes along `axis`, given the sizes and layout of each input.
    ///
    /// # Errors
    ///
    /// When the inputs differ along another dimension, there is no input, or a size overflows.
    pub fn new(element_size: usize, inputs: &[(&[usize], Layout)], axis: usize) -> Result<Self, LayoutError> {
        let (first, _) = inputs.first().ok_or(LayoutError::Sizes("a concatenation needs an input"))?;
        let rank = first.len();
        if axis >= rank {
            return Err(LayoutError::Dimension { what: "the concatenation", found: axis, rank });
        }
        let mut dims = first.to_vec();
        dims[axis] = 0;
        for (input, _) in inputs {
            check_rank("an input", input.len(), rank)?;
            if (0..rank).any(|dim| dim != axis && input[dim] != first[dim]) {
                return Err(LayoutError::Sizes("inputs of a concatenation differ along another dimension"));
            }
            dims[axis] = dims[axis].checked_add(input[axis]).ok_or(LayoutError::Overflow)?;
        }
        let strides = row_major(&dims)?;
        let (mut batch, mut start) = (CopyBatch::default(), 0usize);
        for (source, (input, layout)) in inputs.iter().enumerate() {
            if let Some(nest) = LoopNest::new(element_size, input, &layout.strides, &strides)? {
                let bytes = |elements: usize| elements.checked_mul(element_size).ok_or(LayoutError::Overflow);
                let source_offset = bytes(layout.offset)?;
                let target_offset = bytes(start * strides[axis].unsigned_abs())?;
                batch.push(CopyPart { nest, source, source_offset, target_offset });
            }
            start += input[axis];
        }
        let rows = WholeRows::of(batch.parts());
        Ok(Self { batch, rows, inputs: inputs.len(), dims })
    }

    /// The sizes of the result.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// How many bytes are written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Runs the concatenation.
    ///
    /// # Safety
    ///
    /// Every input's elements may be read; the target's may be written and are none of those.
    ///
    /// # Panics
    ///
    /// When there are not as many sources as inputs.
    pub unsafe fn run(&self, pool: &Pool, sources: &[*const u8], target: *mut u8) {
        assert_eq!(sources.len(), self.inputs, "one source for each input");
        // SAFETY: guaranteed by the caller; the parts are contiguous.
        unsafe {
            match &self.rows {
                Some(rows) => rows.run(pool, sources, target),
                None => self.batch.run(pool, sources, target),
            }
        }
    }
}
