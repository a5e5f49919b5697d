//! Loops over strided memory.

/// One loop: its iterations and its strides on both sides, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StridedLoop {
    pub(crate) size: usize,
    pub(crate) source: isize,
    pub(crate) target: isize,
}

impl StridedLoop {
    pub(super) const ONCE: Self = Self { size: 1, source: 0, target: 0 };

    /// The loop over blocks of `of` iterations.
    pub(super) fn blocks(self, of: usize) -> Self {
        let step = |stride: isize| stride.saturating_mul(of as isize);
        Self { size: self.size.div_ceil(of), source: step(self.source), target: step(self.target) }
    }
}
