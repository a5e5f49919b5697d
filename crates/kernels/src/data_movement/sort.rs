//! Sorting along a dimension.

use warpforge_tensor::ElementType;

use super::copy::row_major;
use super::error::LayoutError;
use super::sort_keys::{Comparison, SortLine, Sorter, sorter};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// The parameters of a sort.
#[derive(Debug, Clone)]
pub struct SortSpec {
    /// The sizes of all operands, which are row-major.
    pub dims: Vec<usize>,
    /// The dimension along which elements are sorted.
    pub axis: usize,
    /// The bytes of an element of each operand.
    pub operands: Vec<usize>,
    /// The operand that is compared, and its type.
    pub key: (usize, ElementType),
    /// When one element comes before another.
    pub comparison: Comparison,
    /// The number of elements to keep of each line, if not all (top-k).
    pub keep: Option<usize>,
}

/// A planned stable sort: every operand is permuted by the order of the key.
#[derive(Debug, Clone)]
pub struct Sort {
    spec: SortSpec,
    sorter: Sorter,
    line: SortLine,
    lines: usize,
}

impl Sort {
    /// Plans a sort.
    ///
    /// # Errors
    ///
    /// When the dimension or the key does not exist, the key type is not comparable, or a size overflows.
    pub fn new(spec: SortSpec) -> Result<Self, LayoutError> {
        let rank = spec.dims.len();
        let missing = LayoutError::Dimension { what: "the sort", found: spec.axis, rank };
        let &length = spec.dims.get(spec.axis).ok_or(missing)?;
        if spec.operands.get(spec.key.0) != Some(&spec.key.1.byte_width()) {
            return Err(LayoutError::Sizes("the key is not one of the operands"));
        }
        if u32::try_from(length).is_err() {
            return Err(LayoutError::Overflow);
        }
        let sorter = sorter(spec.key.1)
            .ok_or(LayoutError::Element { what: "the key of a sort", found: spec.key.1 })?;
        let step = row_major(&spec.dims)?[spec.axis].unsigned_abs();
        for &size in &spec.operands {
            let bytes = spec.dims.iter().try_fold(size, |all, &dim| all.checked_mul(dim));
            bytes.filter(|&all| isize::try_from(all).is_ok()).ok_or(LayoutError::Overflow)?;
        }
        let elements: usize = spec.dims.iter().product();
        let keep = spec.keep.unwrap_or(length).min(length);
        let line = SortLine { step, length, keep };
        Ok(Self { sorter, line, lines: elements.checked_div(length).unwrap_or(0), spec })
    }

    /// Sorts into targets with as many elements per line as are kept.
    ///
    /// # Safety
    ///
    /// All operands may be read and all targets written, and none has a byte in common with another.
    ///
    /// # Panics
    ///
    /// When there are not as many sources and targets as operands.
    pub unsafe fn run(&self, pool: &Pool, sources: &[*const u8], targets: &[*mut u8]) {
        let operands = &self.spec.operands;
        assert!(sources.len() == operands.len() && targets.len() == operands.len(), "one for each operand");
        let (sources, targets) = (SharedPtr::new(sources), SharedPtr::new(targets));
        let (key, SortLine { step, length, keep }) = (self.spec.key.0, self.line);
        pool.run(self.lines, &|line, _| {
            let (outer, inner) = (line / step, line % step);
            let from = outer * length * step + inner;
            let to = outer * keep * step + inner;
            // SAFETY: the line belongs to the operands, and no other task writes its target.
            unsafe {
                let size = operands[key];
                let order =
                    (self.sorter)(sources.get()[key].add(from * size), &self.line, self.spec.comparison);
                for (operand, &size) in operands.iter().enumerate() {
                    let source = sources.get()[operand].add(from * size);
                    let target = targets.get()[operand].add(to * size);
                    self.permute(&order, size, source, target);
                }
            }
        });
    }

    /// # Safety
    ///
    /// A line of elements of the size may be read and as many as are kept written.
    unsafe fn permute(&self, order: &[u32], size: usize, source: *const u8, target: *mut u8) {
        for (to, &from) in order.iter().enumerate() {
            // SAFETY: positions are those of the line.
            unsafe {
                let source = source.add(from as usize * self.line.step * size);
                std::ptr::copy_nonoverlapping(source, target.add(to * self.line.step * size), size);
            }
        }
    }
}
