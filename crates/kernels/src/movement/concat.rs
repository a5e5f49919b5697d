//! Joining arrays along a dimension.

use super::batch::{Batch, Part};
use super::copy::{Layout, row_major};
use super::error::{LayoutError, check_rank};
use super::nest::Nest;
use crate::pool::Pool;

/// A planned concatenation into a row-major array.
#[derive(Debug, Clone)]
pub struct Concat {
    batch: Batch,
    inputs: usize,
    dims: Vec<usize>,
}

impl Concat {
    /// Joins arrays of elements of `element_size` bytes along `axis`; each input with its sizes and its layout.
    ///
    /// # Errors
    ///
    /// When the inputs differ along another dimension, there is none, or bytes cannot be counted.
    pub fn new(element_size: usize, inputs: &[(&[usize], Layout)], axis: usize) -> Result<Self, LayoutError> {
        let (first, _) = inputs.first().ok_or(LayoutError::Sizes("there is nothing to join"))?;
        let rank = first.len();
        if axis >= rank {
            return Err(LayoutError::Dimension { what: "the concatenation", found: axis, rank });
        }
        let mut dims = first.to_vec();
        dims[axis] = 0;
        for (input, _) in inputs {
            check_rank("an input", input.len(), rank)?;
            if (0..rank).any(|dim| dim != axis && input[dim] != first[dim]) {
                return Err(LayoutError::Sizes(
                    "arrays to join have different sizes along another dimension",
                ));
            }
            dims[axis] = dims[axis].checked_add(input[axis]).ok_or(LayoutError::Overflow)?;
        }
        let strides = row_major(&dims)?;
        let (mut batch, mut start) = (Batch::default(), 0usize);
        for (source, (input, layout)) in inputs.iter().enumerate() {
            if let Some(nest) = Nest::new(element_size, input, &layout.strides, &strides)? {
                let bytes = |elements: usize| elements.checked_mul(element_size).ok_or(LayoutError::Overflow);
                let source_offset = bytes(layout.offset)?;
                let target_offset = bytes(start * strides[axis].unsigned_abs())?;
                batch.push(Part { nest, source, source_offset, target_offset });
            }
            start += input[axis];
        }
        Ok(Self { batch, inputs: inputs.len(), dims })
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

    /// Joins.
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
        // SAFETY: the caller's promise; the parts lie side by side.
        unsafe { self.batch.run(pool, sources, target) }
    }
}
