//! Finished blocks of an output, passed to epilogues while they are in cache.

use std::ops::Range;

/// A block of an output: rows are GEMM rows or pixels, columns are GEMM columns or channels.
#[derive(Debug, Clone)]
pub struct OutputBlock {
    /// Rows of the output.
    pub rows: Range<usize>,
    /// Columns of the output.
    pub columns: Range<usize>,
    /// The first element, of the accumulator type. The sink may overwrite the block.
    pub data: *mut u8,
    /// The row stride, in elements.
    pub stride: usize,
    /// The worker that computed the block and calls the sink.
    pub worker: usize,
}

/// The consumer of finished blocks: bias, activation, residual, conversion, another layout.
pub type BlockSink<'a> = dyn Fn(&OutputBlock) + Sync + 'a;
