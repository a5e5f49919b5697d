//! Sequence analysis as laboratories run it: pairwise alignment, read mapping, k-mer counting, variant calling, small
//! assemblies, consensus of noisy reads and protein search, with the formats they read and write and simulated data whose
//! truth is known.
//!
//! Sequences are slices of codes, not of letters: [`seq`] has the encoding. Every algorithm takes its thread count as an
//! argument and gives the same answer at any count.

pub mod align;
pub mod assemble;
pub mod formats;
pub mod kmer;
pub mod map;
mod parallel;
pub mod poa;
pub mod protein;
pub mod seq;
pub mod sets;
pub mod simulate;
pub mod variants;

pub use parallel::available_threads;
