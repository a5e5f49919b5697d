//! A fused loop in phases of operations, and the streams of elements that they read and write.

use super::emit::ReduceKind;
use super::op::Body;

/// The location of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamLocation {
    Input {
        input: usize,
        pattern: usize,
    },
    Output {
        output: usize,
        pattern: usize,
    },
    Tile,
    /// A row buffer between phases, by index.
    Row(usize),
    /// A transposed block, by index, of an input whose rows are contiguous in memory.
    TransposedInput {
        input: usize,
        pattern: usize,
        block: usize,
    },
    /// A transposed block of an output whose rows are contiguous in memory.
    TransposedOutput {
        output: usize,
        pattern: usize,
        block: usize,
    },
}

/// A stream of elements that the code reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) location: StreamLocation,
    /// Bytes of an element.
    pub(super) width: usize,
}

/// A reduction and the frame scalar of its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReducedOutput {
    pub(super) kind: ReduceKind,
    pub(super) slot: usize,
}

/// The operations between two reductions.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Per-row scalars.
    pub(super) scalars: Body,
    pub(super) columns: Body,
    pub(super) reductions: Vec<ReducedOutput>,
    /// Per-row scalars that are stored.
    pub(super) after: Body,
    /// Streams whose next row is prefetched.
    pub(super) prefetched: Vec<usize>,
    /// Streams that are prefetched where rows are computed in pairs.
    pub(super) prefetched_in_pairs: Vec<usize>,
}

/// A fused loop in phases.
#[derive(Debug, Default)]
pub(super) struct Lowered {
    pub(super) streams: Vec<Stream>,
    pub(super) phases: Vec<Phase>,
    /// Rows of memory between phases.
    pub(super) rows: usize,
    /// Blocks of memory for what is transposed.
    pub(super) blocks: usize,
}
