//! Pairwise alignment: global and local with affine gap penalties, and edit distance.
//!
//! | what | how |
//! | --- | --- |
//! | [`plain`] | textbook dynamic programming, the definition of a right score |
//! | [`scores`] | many pairs: one pair in each SIMD lane, within a band that is proven wide enough; the same scores |
//! | [`edit_distances`] | wavefronts for very similar pairs, Myers's bit vectors in SIMD lanes and such bands for the rest |
//! | [`banded`] | one pair with its path, for read mapping |

mod band;
pub mod banded;
mod batch;
mod common;
mod edit;
mod global;
mod kernels;
pub mod plain;
mod profile;
mod prune;
mod simd;

pub use batch::{Mode, scores};
pub use edit::edit_distances;
pub(crate) use profile::{Profile, local_against_profile};

/// Scores of an alignment. A gap of length n costs `gap_open + n * gap_extend`; costs are positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scoring {
    /// For two equal bases.
    pub matching: i8,
    /// For two bases that differ; negative.
    pub mismatch: i8,
    /// What a gap costs before its first base.
    pub gap_open: u8,
    /// What each base of a gap costs.
    pub gap_extend: u8,
}

impl Scoring {
    /// The scores of minimap2's presets for genomic reads: 2, −4, 4 + 2n.
    pub const READS: Self = Self { matching: 2, mismatch: -4, gap_open: 4, gap_extend: 2 };

    /// The score of two codes. A code that is not a base matches nothing, not even itself.
    #[must_use]
    #[inline]
    pub fn of(&self, a: u8, b: u8) -> i32 {
        i32::from(if a == b && a < crate::seq::OTHER { self.matching } else { self.mismatch })
    }

    /// What a gap of this length costs.
    #[must_use]
    #[inline]
    pub fn gap(&self, length: usize) -> i32 {
        if length == 0 { 0 } else { i32::from(self.gap_open) + i32::from(self.gap_extend) * length as i32 }
    }
}

/// Two sequences to be aligned, as codes.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

/// The cells of the dynamic programming matrices of these pairs: what GCUPS counts.
#[must_use]
pub fn cells(pairs: &[Pair<'_>]) -> u64 {
    pairs.iter().map(|(a, b)| a.len() as u64 * b.len() as u64).sum()
}

/// The instruction set that the vector kernels use on this machine.
#[must_use]
pub fn instruction_set() -> &'static str {
    simd::InstructionSet::detect().name()
}

#[cfg(test)]
mod tests;
