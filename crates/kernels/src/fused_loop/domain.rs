//! Domains, accesses, inputs and outputs of fused loops.

use warpforge_tensor::ElementType;

use super::inst::Register;

/// The iteration domain: rows and columns, each numbered in row-major order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Domain {
    /// Sizes of the row dimensions, the outermost first.
    pub rows: Vec<usize>,
    /// Sizes of the column dimensions, the outermost first.
    pub columns: Vec<usize>,
}

/// The strided access of a buffer: the element of a position is `offset` plus each index times the stride of its
/// dimension, in elements. A stride of zero broadcasts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The element of the first position.
    pub offset: isize,
    /// Strides of the row dimensions.
    pub rows: Vec<isize>,
    /// Strides of the column dimensions.
    pub columns: Vec<isize>,
}

/// The location of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the buffer of the input.
    Memory(Access),
    /// In the tile of a block; the buffer is ignored.
    Tile,
}

/// The location of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// In the buffer of the output. A value that does not vary with columns (or rows) may have strides of zero there
    /// and is then written once.
    Memory(Access),
    /// In the tile of a block; the buffer is ignored.
    Tile,
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Element type. Booleans are bytes, 0 or 1.
    pub element: ElementType,
    /// Where they are.
    pub source: Source,
}

/// An output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The value; its type is that of the output's elements.
    pub value: Register,
    /// Where it goes.
    pub sink: Sink,
}
