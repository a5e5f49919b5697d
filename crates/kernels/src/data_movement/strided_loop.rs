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

    /// The loops, from the outermost on, with neighbours that are one loop on both sides merged.
    pub(super) fn merged(loops: &[Self]) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::with_capacity(loops.len());
        for &inner in loops {
            let span = |stride: isize| stride.checked_mul(inner.size as isize);
            match merged.last_mut() {
                Some(outer)
                    if span(inner.source) == Some(outer.source)
                        && span(inner.target) == Some(outer.target) =>
                {
                    *outer = Self { size: outer.size * inner.size, ..inner };
                }
                _ => merged.push(inner),
            }
        }
        merged
    }
}
