//! Where a program's values come from and where they go.

use warpforge_tensor::ElementType;

use super::step::Register;

/// What a program ranges over: the positions of some rows and columns. Both are numbered in row-major order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Domain {
    /// Sizes of the row dimensions, the outermost first.
    pub rows: Vec<usize>,
    /// Sizes of the column dimensions, the outermost first.
    pub columns: Vec<usize>,
}

/// Which element of a buffer belongs to a position: `offset` plus each index times the stride of its dimension, counted
/// in elements. A stride of zero repeats an element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The element of the first position.
    pub offset: isize,
    /// Strides of the row dimensions.
    pub rows: Vec<isize>,
    /// Strides of the column dimensions.
    pub columns: Vec<isize>,
}

/// Where an input's elements are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the buffer given for the input.
    Memory(Access),
    /// In the tile given to a run over a block; its buffer is not looked at.
    Tile,
}

/// Where an output's elements go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// Into the buffer given for the output. A value that is the same for all columns (or rows) may have strides of zero
    /// there and is then written once.
    Memory(Access),
    /// Into the tile given to a run over a block; its buffer is not looked at.
    Tile,
}

/// What a program reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Type of its elements. Truth values are bytes, 0 or 1.
    pub element: ElementType,
    /// Where they are.
    pub source: Source,
}

/// What a program writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The value; its type is that of the output's elements.
    pub value: Register,
    /// Where it goes.
    pub sink: Sink,
}
