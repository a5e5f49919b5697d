//! The de Bruijn graph: solid k-mers of both strands, and the unitigs that they make.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::kmer::{Counts, Word};

/// A path of the graph without branches.
#[derive(Debug, Clone, PartialEq)]
pub struct Unitig {
    /// Its bases.
    pub bases: Vec<u8>,
    /// The mean count of its k-mers.
    pub coverage: f64,
    /// Unitigs that follow at the end, and at the begin.
    pub links: [usize; 2],
}

/// Takes the hash that k-mers have already.
#[derive(Debug, Default)]
pub(super) struct Ready(u64);

impl Hasher for Ready {
    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 16];
        let length = bytes.len().min(16);
        word[..length].copy_from_slice(&bytes[..length]);
        self.0 = u128::from_le_bytes(word).hash().rotate_left(20);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The graph, as the set of its k-mers.
pub(super) struct KmerGraph {
    pub(super) k: usize,
    counts: HashMap<u128, u32, BuildHasherDefault<Ready>>,
}

impl KmerGraph {
    /// The graph of the k-mers that occur often enough.
    pub(super) fn new(counts: &Counts<u128>, least: u32) -> Self {
        Self { k: counts.k(), counts: counts.iter().filter(|&(_, count)| count >= least).collect() }
    }

    fn canonical(&self, kmer: u128) -> u128 {
        kmer.min(kmer.reverse_complement(self.k))
    }

    fn count(&self, kmer: u128) -> u32 {
        self.counts.get(&self.canonical(kmer)).copied().unwrap_or(0)
    }

    /// The k-mers that follow one, on its strand.
    pub(super) fn next(&self, kmer: u128) -> impl Iterator<Item = u128> + '_ {
        (0..4).map(move |code| kmer.appended(code, self.k)).filter(|&next| self.count(next) > 0)
    }

    /// Takes the k-mers of a sequence out.
    pub(super) fn remove(&mut self, bases: &[u8]) {
        let k = self.k;
        crate::kmer::each_kmer::<u128>(bases, k, |kmer| {
            self.counts.remove(&kmer);
        });
    }

    /// The one k-mer that follows, if nothing else leads to it.
    fn only_next(&self, kmer: u128) -> Option<u128> {
        let mut next = self.next(kmer);
        let only = next.next()?;
        if next.next().is_some() {
            return None;
        }
        let back = only.reverse_complement(self.k);
        (self.next(back).count() == 1).then_some(only)
    }

    /// The paths without branches. The order is that of the smallest k-mers, so that it does not depend on hashing.
    pub(super) fn unitigs(&self) -> Vec<Unitig> {
        let mut starts: Vec<u128> = self.counts.keys().copied().collect();
        starts.sort_unstable();
        let mut seen: std::collections::HashSet<u128, BuildHasherDefault<Ready>> =
            std::collections::HashSet::default();
        let mut unitigs = Vec::new();
        for start in starts {
            if seen.insert(start) {
                unitigs.push(self.unitig(start, &mut seen));
            }
        }
        unitigs
    }

    /// The unitig through a k-mer.
    fn unitig(
        &self,
        start: u128,
        seen: &mut std::collections::HashSet<u128, BuildHasherDefault<Ready>>,
    ) -> Unitig {
        let mut total = f64::from(self.count(start));
        let mut kmers = 1;
        let mut walk = |from: u128| {
            let (mut bases, mut here) = (Vec::new(), from);
            while let Some(next) = self.only_next(here) {
                // A circle, or the other strand of this path.
                if !seen.insert(self.canonical(next)) {
                    break;
                }
                bases.push(next.last());
                total += f64::from(self.count(next));
                kmers += 1;
                here = next;
            }
            (bases, here)
        };
        let (behind, end) = walk(start);
        let (before, begin) = walk(start.reverse_complement(self.k));
        let mut bases: Vec<u8> = before.iter().rev().map(|&code| 3 - code).collect();
        bases.extend((0..self.k).rev().map(|index| (start >> (2 * index) & 3) as u8));
        bases.extend(behind);
        let links = [self.next(end).count(), self.next(begin).count()];
        Unitig { bases, coverage: total / f64::from(kmers), links }
    }

    /// The last k-mer of a sequence, and the last of its other strand.
    pub(super) fn ends(&self, bases: &[u8]) -> [u128; 2] {
        let word = |codes: &mut dyn Iterator<Item = u8>| {
            codes.fold(0, |word: u128, code| word.appended(code, self.k))
        };
        let last = word(&mut bases[bases.len() - self.k..].iter().copied());
        let first = word(&mut bases[..self.k].iter().copied());
        [last, first.reverse_complement(self.k)]
    }
}
