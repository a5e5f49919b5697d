//! Data from a seed, with its truth: genomes with repeats, reads with an error model, spiked variants, protein families.
//!
//! A seed defines the data on every machine and in every version, because the figures of a benchmark are only comparable on
//! the same data. That is why the generator is written here and not taken from a crate whose stream may change.

mod genome;
mod proteins;
mod random;
mod reads;
mod variants;
mod windows;

pub use genome::genome;
pub use proteins::{ProteinSet, protein_families};
pub use random::Random;
pub use reads::{LongReadModel, Origin, SimulatedRead, long_reads, short_reads};
pub use variants::{SpikedGenome, spike_variants};
pub use windows::{ReadWindow, mutate, noisy_windows};
