//! The sizes and the taps of a resampling.

/// The sizes of source and result around the dimension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) outer: usize,
    /// Of the dimension in the source.
    pub(super) length: usize,
    /// Of the dimension in the result.
    pub(super) count: usize,
    pub(super) inner: usize,
}

/// The places and weights of a run, tap by tap.
pub(super) struct Taps<T> {
    pub(super) places: Vec<usize>,
    pub(super) weights: Vec<T>,
    /// Of each tap.
    pub(super) count: usize,
}
