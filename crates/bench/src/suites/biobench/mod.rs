//! The biobench suite: sequence work that laboratories wait for, on data whose right answer is known.
//!
//! Every benchmark checks its answer before it reports anything: a wrong one is a failure without figures.

mod align_pairs;
mod assemble_micro;
mod call_variants;
mod consensus_poa;
mod kmer_count;
mod kmer_peers;
mod map_reads;
mod minimap2;
mod protein_search;
mod references;
mod workload;

use super::Suite;

/// The suite.
pub static SUITE: Suite = Suite {
    name: "biobench",
    description: "Sequence analysis with the right answers: alignment, mapping, k-mers, variants, assembly, consensus, proteins",
    benchmarks: &[
        &align_pairs::AlignPairs,
        &map_reads::MapReads,
        &kmer_count::KmerCount,
        &call_variants::CallVariants,
        &assemble_micro::AssembleMicro,
        &consensus_poa::ConsensusPoa,
        &protein_search::ProteinSearch,
    ],
};

#[cfg(test)]
mod tests;
