//! Consensus of noisy reads by partial-order alignment (Lee, Grasso and Sharlow 2002).
//!
//! Reads are aligned to a graph of bases one after the other, and the heaviest path through the graph is the consensus. The
//! alignment follows the best cell of the rows before within a band, as abPOA does (Gao and others 2021).

mod align;
mod graph;

use align::GraphAligner;
use graph::Graph;

/// Scores of the alignment to the graph: racon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoaScoring {
    /// For two equal bases.
    pub matching: i32,
    /// For two bases that differ.
    pub mismatch: i32,
    /// For each base of a gap.
    pub gap: i32,
}

impl Default for PoaScoring {
    fn default() -> Self {
        Self { matching: 3, mismatch: -5, gap: -4 }
    }
}

/// The consensus of reads that all cover the same stretch from end to end.
#[must_use]
pub fn consensus<S: AsRef<[u8]>>(reads: &[S], scoring: &PoaScoring) -> Vec<u8> {
    let mut graph = Graph::default();
    let mut aligner = GraphAligner::default();
    for read in reads {
        let read = read.as_ref();
        let path = aligner.align(&graph, read, scoring);
        graph.add(read, &path);
    }
    graph.heaviest_path()
}

/// The consensus of each window of reads.
#[must_use]
pub fn consensus_of_windows<W: AsRef<[Vec<u8>]> + Sync>(
    windows: &[W],
    scoring: &PoaScoring,
    threads: usize,
) -> Vec<Vec<u8>> {
    crate::parallel::map_indices(windows.len(), threads, |index| consensus(windows[index].as_ref(), scoring))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align::plain;
    use crate::simulate::{genome, noisy_windows};

    #[test]
    fn the_consensus_of_noisy_reads_is_the_truth() {
        let bases = genome(50_000, 2);
        let windows = noisy_windows(&bases, 6, 400, 24, 0.1, 3);
        let reads: Vec<&[Vec<u8>]> = windows.iter().map(|window| window.reads.as_slice()).collect();
        let found = consensus_of_windows(&reads, &PoaScoring::default(), 2);
        let wrong: u32 =
            windows.iter().zip(&found).map(|(window, found)| plain::edit(&window.truth, found)).sum();
        assert!(wrong <= 12, "{wrong} of 2400 bases are wrong");
    }

    #[test]
    fn odd_reads_are_no_trouble() {
        let scoring = PoaScoring::default();
        assert!(consensus::<Vec<u8>>(&[], &scoring).is_empty());
        assert!(consensus::<Vec<u8>>(&[vec![], vec![]], &scoring).is_empty());
        assert_eq!(consensus(&[vec![0, 1, 2]], &scoring), [0, 1, 2]);
        assert_eq!(consensus(&[vec![], vec![0, 1, 2], vec![0, 1, 2], vec![4]], &scoring), [0, 1, 2]);
        let far = consensus(&[genome(300, 1), genome(20, 2), genome(700, 3)], &scoring);
        assert!(!far.is_empty());
    }
}
