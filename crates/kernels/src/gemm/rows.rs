//! The rows of left-hand operands.

use warpforge_tensor::ElementType;

use super::operand::Operand;

/// A left-hand operand as kernels read it: each row consists of runs of elements, one per tap of a window; a matrix has
/// one tap.
pub(crate) trait LhsRows: Sync {
    /// How many runs a row has.
    fn taps(&self) -> usize;
    /// Elements of each run.
    fn run(&self) -> usize;
    /// The type of the elements.
    fn element(&self) -> ElementType;
    /// Writes the pointers of `count` rows: row `first + i` of a tap to `table[tap * count + i]`.
    fn addresses(&self, first: usize, count: usize, table: &mut [*const u8]);

    /// The first row and the row stride in bytes, if the rows are those of a matrix.
    fn matrix(&self) -> Option<(*const u8, usize)> {
        None
    }
}

/// Rows that follow themselves: their product by several operands is the sum of those by each.
pub(crate) struct RepeatedRows {
    /// The rows.
    pub(crate) rows: MatrixRows,
    /// How often.
    pub(crate) times: usize,
}

impl LhsRows for RepeatedRows {
    fn taps(&self) -> usize {
        self.times
    }

    fn run(&self) -> usize {
        self.rows.run()
    }

    fn element(&self) -> ElementType {
        self.rows.element()
    }

    fn addresses(&self, first: usize, count: usize, table: &mut [*const u8]) {
        for table in table[..self.times * count].chunks_mut(count.max(1)) {
            self.rows.addresses(first, count, table);
        }
    }
}

/// The rows of a matrix with contiguous columns.
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

// SAFETY: the caller guarantees that nothing writes to them during the call.
unsafe impl Sync for MatrixRows {}

impl MatrixRows {
    /// The rows of an operand whose columns are contiguous.
    pub(crate) fn of(operand: &Operand, k: usize) -> Self {
        let stride = operand.row_stride * operand.element.byte_width();
        Self { data: operand.data, stride, k, element: operand.element }
    }
}

impl LhsRows for MatrixRows {
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
