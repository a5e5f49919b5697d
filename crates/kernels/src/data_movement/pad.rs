//! Pad: edge and interior padding, or cropping.

use super::copy::{Layout, row_major};
use super::copy_batch::{CopyBatch, CopyPart};
use super::error::{LayoutError, check_rank};
use super::loop_nest::LoopNest;
use crate::pool::Pool;

/// The padding of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AxisPadding {
    /// Before the first element; negative crops.
    pub low: i64,
    /// After the last element; negative crops.
    pub high: i64,
    /// Between elements.
    pub interior: usize,
}

/// A planned padding into a row-major array.
#[derive(Debug, Clone)]
pub struct Pad {
    /// Fills, run first: they may overlap the kept elements.
    fills: CopyBatch,
    kept: CopyBatch,
    dims: Vec<usize>,
}

/// The kept elements of a dimension and their positions in the output.
struct KeptRange {
    first: usize,
    count: usize,
    to: usize,
    step: usize,
}

impl Pad {
    /// Pads `dims` elements of `element_size` bytes.
    ///
    /// # Errors
    ///
    /// When the number of paddings or strides is not that of the dimensions, or a size is negative or overflows.
    pub fn new(
        element_size: usize,
        dims: &[usize],
        source: &Layout,
        edges: &[AxisPadding],
    ) -> Result<Self, LayoutError> {
        check_rank("the padding", edges.len(), dims.len())?;
        check_rank("source strides", source.strides.len(), dims.len())?;
        let padded: Vec<usize> =
            dims.iter().zip(edges).map(|(&size, edge)| padded(size, edge)).collect::<Result<_, _>>()?;
        let strides = row_major(&padded)?;
        let mut pad = Self { fills: CopyBatch::default(), kept: CopyBatch::default(), dims: padded };
        let kept: Vec<KeptRange> =
            (0..dims.len()).map(|dim| kept(dims[dim], pad.dims[dim], &edges[dim])).collect();
        let whole = kept.iter().any(|kept| kept.count == 0 || kept.step > 1);
        if whole {
            let dims = pad.dims.clone();
            pad.fill(element_size, &dims, &strides, 0)?;
        } else {
            pad.fill_edges(element_size, &strides, &kept)?;
        }
        if kept.iter().all(|kept| kept.count > 0) {
            pad.keep(element_size, source, &strides, &kept)?;
        }
        Ok(pad)
    }

    /// The sizes of the result.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// How many bytes are written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.fills.bytes().saturating_add(self.kept.bytes())
    }

    /// Pads with the element at `value`.
    ///
    /// # Safety
    ///
    /// The element and the source's elements may be read; the target's may be written and are none of those.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, value: *const u8, target: *mut u8) {
        // SAFETY: guaranteed by the caller; both batches write inside the result.
        unsafe {
            self.fills.run(pool, &[value], target);
            self.kept.run(pool, &[source], target);
        }
    }

    fn fill(
        &mut self,
        element_size: usize,
        dims: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Result<(), LayoutError> {
        if let Some(nest) = LoopNest::new(element_size, dims, &vec![0; dims.len()], strides)? {
            let target_offset = offset.checked_mul(element_size).ok_or(LayoutError::Overflow)?;
            self.fills.push(CopyPart { nest, source: 0, source_offset: 0, target_offset });
        }
        Ok(())
    }

    /// Fills the border: both ends along each dimension, limited to the kept box along earlier dimensions.
    fn fill_edges(
        &mut self,
        element_size: usize,
        strides: &[isize],
        kept: &[KeptRange],
    ) -> Result<(), LayoutError> {
        let (mut dims, mut offset) = (self.dims.clone(), 0);
        for (dim, kept) in kept.iter().enumerate() {
            let (size, stride) = (dims[dim], strides[dim].unsigned_abs());
            let end = kept.to + kept.count;
            for (from, to) in [(0, kept.to), (end, size)] {
                dims[dim] = to - from;
                self.fill(element_size, &dims, strides, offset + from * stride)?;
            }
            dims[dim] = kept.count;
            offset += kept.to * stride;
        }
        Ok(())
    }

    fn keep(
        &mut self,
        element_size: usize,
        source: &Layout,
        strides: &[isize],
        kept: &[KeptRange],
    ) -> Result<(), LayoutError> {
        let (mut from, mut to) = (isize::try_from(source.offset).map_err(|_| LayoutError::Overflow)?, 0);
        let (mut dims, mut steps) = (Vec::with_capacity(kept.len()), Vec::with_capacity(kept.len()));
        for ((kept, &stride), &source) in kept.iter().zip(strides).zip(&source.strides) {
            dims.push(kept.count);
            // A single element needs no stride.
            steps.push(if kept.count == 1 { 0 } else { stride * kept.step as isize });
            let skipped = source.checked_mul(kept.first as isize).ok_or(LayoutError::Overflow)?;
            from = from.checked_add(skipped).ok_or(LayoutError::Overflow)?;
            to += kept.to * stride.unsigned_abs();
        }
        let bytes = |elements: usize| elements.checked_mul(element_size).ok_or(LayoutError::Overflow);
        let from =
            usize::try_from(from).map_err(|_| LayoutError::Sizes("the source starts before its buffer"))?;
        if let Some(nest) = LoopNest::new(element_size, &dims, &source.strides, &steps)? {
            self.kept.push(CopyPart {
                nest,
                source: 0,
                source_offset: bytes(from)?,
                target_offset: bytes(to)?,
            });
        }
        Ok(())
    }
}

/// A size with its padding.
fn padded(size: usize, edge: &AxisPadding) -> Result<usize, LayoutError> {
    let between = size.saturating_sub(1).checked_mul(edge.interior).and_then(|gaps| gaps.checked_add(size));
    let inner = between.and_then(|size| i64::try_from(size).ok());
    let all = inner.and_then(|size| size.checked_add(edge.low)).and_then(|size| size.checked_add(edge.high));
    let all = all.ok_or(LayoutError::Overflow)?;
    usize::try_from(all).map_err(|_| LayoutError::Sizes("the padding takes away more than there is"))
}

/// Which of `size` elements are inside `padded` ones.
fn kept(size: usize, padded: usize, edge: &AxisPadding) -> KeptRange {
    let step = edge.interior.saturating_add(1);
    let first = edge.low.min(0).unsigned_abs() as usize;
    let first = first.div_ceil(step);
    let reach = (padded as i64 - 1).saturating_sub(edge.low);
    // Elements, counted from the first, that are not beyond the end.
    let before = usize::try_from(reach).map_or(0, |reach| reach / step + 1).min(size);
    if first >= before {
        return KeptRange { first: 0, count: 0, to: 0, step };
    }
    let to = (edge.low + (first * step) as i64) as usize;
    // A single element has no interior padding.
    let step = if before - first == 1 { 1 } else { step };
    KeptRange { first, count: before - first, to, step }
}
