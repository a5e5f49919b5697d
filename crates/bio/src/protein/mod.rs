//! Protein search: a seeded prefilter, then Smith–Waterman of the candidates; and exhaustive Smith–Waterman as the truth.

mod matrix;
mod search;
mod seeds;

pub use matrix::{ALPHABET, blosum62, code};
pub use search::{Database, Hit, SearchSettings, exhaustive, recall, search};

/// What a gap costs before its first residue, as BLAST and DIAMOND have it.
pub const GAP_OPEN: u8 = 11;
/// What each residue of a gap costs.
pub const GAP_EXTEND: u8 = 1;

#[cfg(test)]
mod tests;
