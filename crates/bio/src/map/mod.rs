//! Read mapping: minimizer seeds, chains of seeds, base-level alignment of the best chains.
//!
//! The method is minimap2's (Li 2018): [`Index`] holds the minimizers of the reference, `chain` joins the seeds of a read to
//! chains, `extend` fills what lies between and beyond the seeds.

mod chain;
mod extend;
mod index;
mod minimizers;
mod reference;

pub use index::Index;
pub use reference::{Reference, ReferenceError};

use crate::align::banded::{BandedAligner, Cigar};
use crate::parallel::map_chunks;
use crate::seq::reverse_complement;

/// What kind of reads are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// Accurate reads of up to a few hundred bases.
    Short,
    /// Reads of thousands of bases with errors.
    Long,
}

/// How reads of a kind are mapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Bases of a seed.
    pub(crate) k: usize,
    /// Consecutive seeds of which the minimizer is taken.
    pub(crate) w: usize,
    /// A seed that occurs more often in the reference is not used.
    pub(crate) most_occurrences: usize,
    /// The most bases between two seeds of a chain.
    pub(crate) longest_gap: usize,
    /// The most by which two neighbouring seeds of a chain may differ in their diagonal.
    pub(crate) bandwidth: usize,
}

impl ReadKind {
    pub(crate) fn settings(self) -> Settings {
        match self {
            Self::Short => Settings { k: 21, w: 11, most_occurrences: 500, longest_gap: 100, bandwidth: 40 },
            Self::Long => {
                Settings { k: 15, w: 10, most_occurrences: 200, longest_gap: 5_000, bandwidth: 500 }
            }
        }
    }
}

/// Where a read belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Which sequence of the reference.
    pub contig: usize,
    /// The first base in it, from 0.
    pub position: usize,
    /// Whether the read is of the other strand; the path is then of its reverse complement.
    pub reverse: bool,
    /// How sure the place is: −10 log10 of the probability that it is wrong, 0 to 60.
    pub quality: u8,
    /// The score of the alignment.
    pub score: i32,
    /// Its path, clipped bases included.
    pub cigar: Cigar,
}

impl Mapping {
    /// One past the last base of the reference.
    #[must_use]
    pub fn end(&self) -> usize {
        self.position + self.cigar.target_length()
    }
}

/// Maps reads to an index, in order; `None` for a read that belongs nowhere.
#[must_use]
pub fn map_reads<R: AsRef<[u8]> + Sync>(index: &Index, reads: &[R], threads: usize) -> Vec<Option<Mapping>> {
    let chunk = match index.kind() {
        ReadKind::Short => 256,
        ReadKind::Long => 4,
    };
    let mapped = map_chunks(reads, chunk, threads, |reads| {
        let mut mapper = Mapper::new(index);
        reads.iter().map(|read| mapper.map(read.as_ref())).collect::<Vec<_>>()
    });
    mapped.into_iter().flatten().collect()
}

/// Maps one read after the other; keeps its memory between calls.
pub struct Mapper<'a> {
    index: &'a Index,
    aligner: BandedAligner,
    seeds: Vec<(u64, u32, bool)>,
    anchors: Vec<chain::Anchor>,
    chainer: chain::Chainer,
}

impl<'a> Mapper<'a> {
    /// A mapper to this index.
    #[must_use]
    pub fn new(index: &'a Index) -> Self {
        Self {
            index,
            aligner: BandedAligner::default(),
            seeds: Vec::new(),
            anchors: Vec::new(),
            chainer: chain::Chainer::default(),
        }
    }

    /// The place of a read; `None` if it belongs nowhere.
    pub fn map(&mut self, read: &[u8]) -> Option<Mapping> {
        let settings = self.index.kind().settings();
        minimizers::collect(read, settings.k, settings.w, &mut self.seeds);
        self.collect_anchors(read.len(), settings.most_occurrences);
        if self.anchors.is_empty() {
            self.collect_anchors(read.len(), 20 * settings.most_occurrences);
        }
        if self.anchors.is_empty() {
            return None;
        }
        let other_strand = if self.anchors.iter().any(|anchor| anchor.reverse) {
            reverse_complement(read)
        } else {
            Vec::new()
        };
        let strands = [read, &other_strand];
        match self.index.kind() {
            ReadKind::Short => self.map_short(strands),
            ReadKind::Long => self.map_long(strands),
        }
    }

    /// Finds the seeds of the read in the reference.
    fn collect_anchors(&mut self, length: usize, most_occurrences: usize) {
        let k = self.index.kind().settings().k as u32;
        self.anchors.clear();
        for &(hash, position, reverse) in &self.seeds {
            let places = self.index.places(hash);
            if places.len() > most_occurrences {
                continue;
            }
            for &place in places {
                let (start, of_reference) = (place >> 1, place & 1 == 1);
                let reverse = reverse != of_reference;
                let query = if reverse { length as u32 - position - k } else { position };
                self.anchors.push(chain::Anchor { reverse, target: start, query });
            }
        }
    }

    fn map_short(&mut self, strands: [&[u8]; 2]) -> Option<Mapping> {
        let settings = self.index.kind().settings();
        let candidates = chain::cluster(&mut self.anchors, settings.bandwidth as i64);
        let most = candidates.first()?.seeds;
        let mut best: Option<Mapping> = None;
        let mut second = 0;
        for candidate in candidates.iter().take(12).filter(|candidate| 3 * candidate.seeds >= most) {
            let read = strands[usize::from(candidate.reverse)];
            let Some(found) =
                extend::short(&mut self.aligner, self.index.reference(), read, candidate, settings.k)
            else {
                continue;
            };
            match &best {
                Some(known) if known.contig == found.contig && known.position == found.position => {}
                Some(known) if known.score >= found.score => second = second.max(found.score),
                _ => {
                    second = best.as_ref().map_or(0, |known| known.score).max(second);
                    best = Some(found);
                }
            }
        }
        let mut best = best?;
        best.quality = extend::short_quality(best.score, second, strands[0].len());
        Some(best)
    }

    fn map_long(&mut self, strands: [&[u8]; 2]) -> Option<Mapping> {
        let settings = self.index.kind().settings();
        let reference = self.index.reference();
        let (chain, second) = self.chainer.best(&mut self.anchors, &settings, reference)?;
        let read = strands[usize::from(chain.reverse)];
        let mut found = extend::long(&mut self.aligner, reference, read, &chain, settings.k)?;
        found.quality = extend::long_quality(&chain, second);
        Some(found)
    }
}

#[cfg(test)]
mod tests;
