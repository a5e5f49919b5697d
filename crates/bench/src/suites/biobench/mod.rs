//! The biobench suite: sequence work that laboratories wait for, on data whose right answer is known.
//!
//! Every benchmark checks its answer before it reports anything: a wrong one is a failure without figures.

mod align_pairs;
mod assemble_micro;
mod call_variants;
mod consensus_poa;
mod kmer_count;
mod map_reads;
mod protein_search;
mod references;
mod workload;

use super::Suite;
use crate::benchmark::Benchmark;

/// The suite.
#[derive(Debug, Clone, Copy)]
pub struct Biobench;

impl Suite for Biobench {
    fn name(&self) -> &'static str {
        "biobench"
    }

    fn description(&self) -> &'static str {
        "Sequence analysis with the right answers: alignment, mapping, k-mers, variants, assembly, consensus, proteins"
    }

    fn benchmarks(&self) -> &'static [&'static dyn Benchmark] {
        &[
            &align_pairs::AlignPairs,
            &map_reads::MapReads,
            &kmer_count::KmerCount,
            &call_variants::CallVariants,
            &assemble_micro::AssembleMicro,
            &consensus_poa::ConsensusPoa,
            &protein_search::ProteinSearch,
        ]
    }
}

#[cfg(test)]
mod tests;
