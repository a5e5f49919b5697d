//! Where the rows of a left operand lie.

use warpforge_tensor::ElementType;

use super::operand::Operand;

/// A left operand as kernels read it: each row is made of runs of elements, one for each tap of a window; a matrix has
/// one tap.
pub(crate) trait Rows: Sync {
    /// How many runs a row has.
    fn taps(&self) -> usize;
    /// Elements of each run.
    fn run(&self) -> usize;
    /// The type of the elements.
    fn element(&self) -> ElementType;
    /// Writes the addresses of `count` rows: that of row `first + i` for a tap at `table[tap * count + i]`.
    fn addresses(&self, first: usize, count: usize, table: &mut [*const u8]);

    /// The first row and the bytes from one row to the next, where rows are those of a matrix.
    fn matrix(&self) -> Option<(*const u8, usize)> {
        None
    }
}

/// The rows of a matrix whose elements lie side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixRows {
    /// The first row.
    pub(crate) data: *const u8,
    /// From one row to the next, in bytes.
    pub(crate) stride: usize,
    /// Elements of a row.
    pub(crate) k: usize,
    /// The type of the elements.
    pub(crate) element: ElementType,
}

// SAFETY: who makes a product of the rows promises that nobody writes to them meanwhile.
unsafe impl Sync for MatrixRows {}

impl MatrixRows {
    /// The rows of an operand whose columns lie side by side.
    pub(crate) fn of(operand: &Operand, k: usize) -> Self {
        let stride = operand.row_stride * operand.element.byte_width();
        Self { data: operand.data, stride, k, element: operand.element }
    }
}

impl Rows for MatrixRows {
    fn element(&self) -> ElementType {
        self.element
    }

    fn taps(&self) -> usize {
        1
    }

    fn run(&self) -> usize {
        self.k
    }

    fn addresses(&self, first: usize, count: usize, table: &mut [*const u8]) {
        for (at, address) in table[..count].iter_mut().enumerate() {
            *address = self.data.wrapping_add((first + at) * self.stride);
        }
    }

    fn matrix(&self) -> Option<(*const u8, usize)> {
        Some((self.data, self.stride))
    }
}
