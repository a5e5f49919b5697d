//! The layout of packed right-hand operands: panels of a few vectors of columns, each with all rows.

use std::marker::PhantomData;

use warpforge_tensor::{ElementType, FloatType};

use crate::buffer::AlignedBuffer;

/// The packed layout of a kernel family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedLayout {
    /// The element format.
    pub(crate) format: PackedFormat,
    /// Columns of a vector.
    pub(crate) lanes: usize,
    /// The most vectors in a panel.
    pub(crate) vectors: usize,
    /// Rows that are interleaved for each column, because one instruction multiplies that many.
    pub(crate) group: usize,
    /// Rows are zero-padded to a multiple of this.
    pub(crate) row_multiple: usize,
}

/// The format of packed elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackedFormat {
    /// f32.
    F32,
    /// bf16 values stored as f32.
    Bf16AsF32,
    /// f64.
    F64,
    /// bf16.
    Bf16,
    /// bf16, widened to f32 by the kernels that read it. Rows of the other operand are [`Self::Bf16AsF32`].
    Bf16Widened,
    /// i8.
    I8,
    /// i8 values stored as i32.
    I8AsI32,
    /// i8 in quads of rows, which one instruction multiplies by four unsigned bytes. A panel starts with what the offset of the other
    /// operand adds to each column. Rows of the other operand are [`Self::I8Offset`].
    I8Quads,
    /// i8 plus 128, as unsigned bytes.
    I8Offset,
    /// i8 weights, widened to f32 by the kernels that read them. Rows of the other operand are [`Self::F32`].
    I8Widened,
    /// f8E4M3FN weights, widened as [`Self::I8Widened`].
    F8Widened,
    /// Weights of 4 bits in groups of rows, each with a scale and an offset in bf16. Rows of the other operand are [`Self::F32`].
    Int4 {
        /// Rows of a group.
        group: usize,
    },
    /// i32, and narrower integers stored as i32.
    I32,
    /// i64, and narrower integers stored as i64.
    I64,
}

impl PackedFormat {
    /// The type of elements in memory.
    pub(crate) fn element(self) -> ElementType {
        match self {
            Self::F32 | Self::Bf16AsF32 => ElementType::F32,
            Self::F64 => ElementType::F64,
            Self::Bf16 | Self::Bf16Widened => ElementType::BF16,
            Self::I8 | Self::I8Quads | Self::I8Offset | Self::I8Widened => ElementType::I8,
            Self::F8Widened => ElementType::Float(FloatType::F8E4M3Fn),
            Self::Int4 { .. } => ElementType::I4,
            Self::I8AsI32 | Self::I32 => ElementType::I32,
            Self::I64 => ElementType::I64,
        }
    }

    /// The format of the rows of the left-hand operand.
    pub(crate) fn of_rows(self) -> Self {
        match self {
            Self::Bf16Widened => Self::Bf16AsF32,
            Self::I8Quads => Self::I8Offset,
            Self::I8Widened | Self::F8Widened | Self::Int4 { .. } => Self::F32,
            other => other,
        }
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> usize {
        self.element().byte_width()
    }

    /// Rows that kernels take in one step.
    pub(crate) fn unit(self) -> usize {
        match self {
            Self::I8Quads | Self::I8Offset => 4,
            Self::Int4 { group } => group,
            _ => 1,
        }
    }

    /// Bytes of a column of such a step.
    pub(crate) fn unit_bytes(self) -> usize {
        match self {
            Self::I8Quads | Self::I8Offset => 4,
            Self::Int4 { group } => group / 2 + 4,
            _ => self.bytes(),
        }
    }

    /// Rows of a step that make slices of the depth shorter: groups of 4 bits are widened to f32.
    pub(crate) fn slice_unit(self) -> usize {
        match self {
            Self::Int4 { group } => group,
            _ => 1,
        }
    }

    /// Steps before the first row.
    pub(crate) fn lead(self) -> usize {
        usize::from(matches!(self, Self::I8Quads | Self::I8Offset))
    }
}

/// One panel of a packed operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panel {
    /// The first column.
    pub(crate) first: usize,
    /// Columns of the matrix.
    pub(crate) columns: usize,
    /// Columns stored, the missing ones as zeros.
    pub(crate) width: usize,
}

/// How columns are divided into panels. Where a single vector would be left over, the last two panels are balanced: a single vector would
/// leave the FMA units idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panels {
    n: usize,
    /// Columns of all panels together.
    stored: usize,
    count: usize,
    /// Columns of all panels but the last two.
    width: usize,
    /// The first column of the last panel.
    last_start: usize,
}

impl Panels {
    /// How many panels there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The columns of a panel.
    pub(crate) fn at(&self, at: usize) -> Panel {
        let last = at + 1 >= self.count;
        let first = if last { self.last_start } else { at * self.width };
        let end = match (last, at + 2 == self.count) {
            (true, _) => self.stored,
            (false, true) => self.last_start,
            (false, false) => first + self.width,
        };
        Panel { first, columns: end.min(self.n) - first, width: end - first }
    }
}

impl PackedLayout {
    /// The panels of that many columns.
    pub(crate) fn panels(&self, n: usize) -> Panels {
        let vectors = n.div_ceil(self.lanes);
        let count = vectors.div_ceil(self.vectors);
        Panels {
            n,
            stored: vectors * self.lanes,
            count,
            width: self.vectors * self.lanes,
            last_start: match count > 1 && self.vectors > 2 && vectors % self.vectors == 1 {
                true => (vectors - 2) * self.lanes,
                false => (count.max(1) - 1) * self.vectors * self.lanes,
            },
        }
    }

    /// Rows stored for that many rows.
    pub(crate) fn rows(&self, k: usize) -> usize {
        k.next_multiple_of(self.row_multiple)
    }

    /// Bytes of a packed operand; none on overflow.
    pub(crate) fn bytes(&self, k: usize, n: usize) -> Option<usize> {
        let columns = n.checked_next_multiple_of(self.lanes)?;
        k.checked_next_multiple_of(self.row_multiple)?;
        columns
            .checked_mul(self.units(k).checked_mul(self.format.unit_bytes())?)
            .filter(|&bytes| bytes < isize::MAX as usize / 2)
    }

    /// The steps of that many rows.
    pub(crate) fn units(&self, k: usize) -> usize {
        self.format.lead() + self.rows(k).div_ceil(self.format.unit())
    }

    /// Bytes of a column of that many rows.
    pub(crate) fn column_bytes(&self, k: usize) -> usize {
        self.units(k) * self.format.unit_bytes()
    }

    /// Where a panel begins, in bytes.
    pub(crate) fn offset(&self, k: usize, panel: &Panel) -> usize {
        panel.first * self.column_bytes(k)
    }
}

/// A packed right-hand operand.
#[derive(Debug)]
pub struct PackedRhs {
    pub(super) memory: AlignedBuffer,
    pub(super) packed_layout: PackedLayout,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl PackedRhs {
    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// The sizes of the matrix: rows (the length of the sums) and columns.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        (self.k, self.n)
    }

    /// The operand for a call.
    #[must_use]
    pub fn view(&self) -> PackedView<'_> {
        PackedView::new(self.memory.as_ptr(), self.packed_layout, self.k, self.n)
    }
}

/// A packed right-hand operand in borrowed memory.
#[derive(Debug, Clone, Copy)]
pub struct PackedView<'a> {
    pub(super) data: *const u8,
    pub(super) packed_layout: PackedLayout,
    pub(super) k: usize,
    pub(super) n: usize,
    panels: Panels,
    column_bytes: usize,
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: a view is read only, and its lifetime keeps writers away.
unsafe impl Send for PackedView<'_> {}
// SAFETY: as above.
unsafe impl Sync for PackedView<'_> {}

impl PackedView<'_> {
    /// The operand of `k` rows and `n` columns at an address.
    pub(super) fn new(data: *const u8, packed_layout: PackedLayout, k: usize, n: usize) -> Self {
        let (panels, column_bytes) = (packed_layout.panels(n), packed_layout.column_bytes(k));
        Self { data, packed_layout, k, n, panels, column_bytes, memory: PhantomData }
    }

    /// A panel's columns and the address of its first row.
    pub(crate) fn panel(&self, at: usize) -> (Panel, *const u8) {
        let panel = self.panels.at(at);
        // Wrapping, because an empty operand has no bytes to point into.
        (panel, self.data.wrapping_add(panel.first * self.column_bytes))
    }

    /// Bytes of a column.
    pub(super) fn column_bytes(&self) -> usize {
        self.column_bytes
    }

    /// How many panels there are.
    pub(crate) fn panels(&self) -> usize {
        self.panels.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_the_columns_in_order() {
        for (lanes, vectors) in [(16, 3), (8, 2), (4, 1), (16, 2)] {
            let packed_layout =
                PackedLayout { format: PackedFormat::F32, lanes, vectors, group: 1, row_multiple: 1 };
            for n in 0..300 {
                let mut next = 0;
                let panels = packed_layout.panels(n);
                for at in 0..panels.count() {
                    let panel = panels.at(at);
                    assert_eq!(panel.first, next, "{n} columns, panel {at}");
                    assert!(panel.width.is_multiple_of(lanes) && panel.width <= lanes * vectors);
                    assert!(panel.columns <= panel.width && panel.columns + lanes > panel.width);
                    next += panel.columns;
                }
                assert_eq!(next, n);
            }
        }
    }

    #[test]
    fn last_panels_are_balanced() {
        let packed_layout =
            PackedLayout { format: PackedFormat::F32, lanes: 16, vectors: 3, group: 1, row_multiple: 1 };
        let widths = |n| {
            (0..packed_layout.panels(n).count())
                .map(|at| packed_layout.panels(n).at(at).width)
                .collect::<Vec<_>>()
        };
        assert_eq!(widths(64), [32, 32]);
        assert_eq!(widths(112), [48, 32, 32]);
        assert_eq!(widths(512)[9..], [48, 32]);
        assert_eq!(widths(16), [16]);
    }
}
