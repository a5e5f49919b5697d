//! Small assemblies: a de Bruijn graph of solid k-mers, cleaned of errors and compacted to unitigs.

mod clean;
mod evaluate;
mod graph;

pub use evaluate::{Evaluation, evaluate};
pub use graph::Unitig;

use crate::kmer::{KmerLengthError, Stages, count_in_stages};
use graph::KmerGraph;

/// How to assemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssemblySettings {
    /// The length of k-mers; odd, at most 63.
    pub k: usize,
    /// How often a k-mer must occur; 0 finds it from the histogram.
    pub least_count: u32,
    /// The shortest contig that is given.
    pub least_length: usize,
}

impl Default for AssemblySettings {
    fn default() -> Self {
        Self { k: 51, least_count: 0, least_length: 64 }
    }
}

/// The times that the steps took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AssemblyStages {
    /// Counting k-mers.
    pub count: Stages,
    /// Seconds for the graph: solid k-mers, cleaning, compaction.
    pub graph: f64,
}

/// Assembles reads to contigs, the longest first.
///
/// # Errors
/// If `k` is even, 0 or above 63.
pub fn assemble<S: AsRef<[u8]> + Sync>(
    reads: &[S],
    settings: &AssemblySettings,
    threads: usize,
) -> Result<(Vec<Unitig>, AssemblyStages), KmerLengthError> {
    let (counts, count) = count_in_stages::<u128, S>(reads, settings.k, threads)?;
    let began = std::time::Instant::now();
    let least = match settings.least_count {
        0 => valley(&counts.histogram(1_000)),
        least => least,
    };
    let mut graph = KmerGraph::new(&counts, least);
    let mut contigs = clean::clean(&mut graph);
    contigs.retain(|contig| contig.bases.len() >= settings.least_length);
    contigs.sort_by(|a, b| (b.bases.len(), &a.bases).cmp(&(a.bases.len(), &b.bases)));
    Ok((contigs, AssemblyStages { count, graph: began.elapsed().as_secs_f64() }))
}

/// The count between the k-mers of errors, which occur once or twice, and those of the genome.
fn valley(histogram: &[u64]) -> u32 {
    let mut least = 1;
    while least + 1 < histogram.len() && histogram[least + 1] <= histogram[least] {
        least += 1;
        // A thin tail that never rises again is no valley.
        if least > 50 {
            return 2;
        }
    }
    // Half of it: places of low coverage are kept, and errors that stay are cleaned out of the graph.
    (least as u32 / 2).clamp(2, 20)
}

/// The length such that contigs of at least this length have half of all bases.
#[must_use]
pub fn n50(lengths: &[usize]) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let half = sorted.iter().sum::<usize>().div_ceil(2);
    let mut sum = 0;
    for length in sorted {
        sum += length;
        if sum >= half {
            return length;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Random, genome, short_reads};

    fn assembled(bases: &[u8], depth: usize, circular: bool) -> (Vec<Unitig>, Evaluation) {
        let unrolled = if circular { [bases, &bases[..200]].concat() } else { bases.to_vec() };
        let reads = short_reads(&unrolled, depth * bases.len() / 150, 150, 4);
        let sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
        let (contigs, _) = assemble(&sequences, &AssemblySettings::default(), 2).unwrap();
        assert_eq!(contigs, assemble(&sequences, &AssemblySettings::default(), 1).unwrap().0);
        let parts: Vec<&[u8]> = contigs.iter().map(|contig| contig.bases.as_slice()).collect();
        let found = evaluate(bases, &parts, circular);
        (contigs, found)
    }

    #[test]
    fn a_genome_without_repeats_comes_back_whole() {
        let mut random = Random::new(3);
        let bases: Vec<u8> = (0..40_000).map(|_| random.base()).collect();
        let (contigs, found) = assembled(&bases, 40, false);
        assert!(contigs.len() <= 3, "{}", contigs.len());
        assert!(found.genome_fraction > 0.99 && found.misjoins == 0, "{found:?}");
        assert!(found.identity > 0.999, "{found:?}");
    }

    #[test]
    fn a_plasmid_comes_back_as_a_circle() {
        let mut random = Random::new(4);
        let bases: Vec<u8> = (0..6_000).map(|_| random.base()).collect();
        let (_, found) = assembled(&bases, 60, true);
        assert!(found.genome_fraction > 0.99 && found.misjoins == 0, "{found:?}");
    }

    #[test]
    fn repeats_break_contigs_and_do_not_join_wrongly() {
        let bases = genome(100_000, 6);
        let (_, found) = assembled(&bases, 40, false);
        assert!(found.genome_fraction > 0.97 && found.misjoins == 0, "{found:?}");
    }

    #[test]
    fn a_wrong_join_is_seen() {
        let bases = genome(30_000, 7);
        let joined = [&bases[1_000..4_000], &bases[20_000..23_000]].concat();
        assert_eq!(evaluate(&bases, &[&joined], false).misjoins, 1);
        let other = crate::seq::reverse_complement(&bases[1_000..9_000]);
        let found = evaluate(&bases, &[&other], false);
        assert_eq!((found.misjoins, found.identity), (0, 1.0));
        let wrapped = [&bases[25_000..], &bases[..5_000]].concat();
        assert_eq!(evaluate(&bases, &[&wrapped], true).misjoins, 0);
        assert_eq!(evaluate(&bases, &[&wrapped], false).misjoins, 1);
    }

    #[test]
    fn half_of_the_bases_are_in_contigs_of_n50() {
        assert_eq!(n50(&[2, 3, 4, 5, 6]), 5);
        assert_eq!(n50(&[]), 0);
        assert!(assemble::<&[u8]>(&[], &AssemblySettings::default(), 1).unwrap().0.is_empty());
        let even = AssemblySettings { k: 50, ..AssemblySettings::default() };
        assert!(assemble::<&[u8]>(&[], &even, 1).is_err());
    }
}
