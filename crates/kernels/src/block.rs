//! A finished part of a result, handed to whoever goes on with it while it is in cache.

use std::ops::Range;

/// A rectangle of a result: rows are rows of a product or pixels, columns are columns or channels.
#[derive(Debug, Clone)]
pub struct Block {
    /// Which rows of the result.
    pub rows: Range<usize>,
    /// Which columns of the result.
    pub columns: Range<usize>,
    /// The first element of the first row, of the type that sums have. The receiver may change what lies there.
    pub data: *mut u8,
    /// The distance of two rows, in elements.
    pub stride: usize,
    /// The worker that computed the block and calls the sink.
    pub worker: usize,
}

/// What becomes of a finished block: bias, activation, residual, conversion, another layout.
pub type Sink<'a> = dyn Fn(&Block) + Sync + 'a;
