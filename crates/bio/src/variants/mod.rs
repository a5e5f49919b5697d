//! Variant calling from mapped reads: a pileup of bases and qualities, genotype likelihoods, calls.

mod call;
mod compare;
mod indels;
mod pileup;

pub use call::{CallSettings, call_variants};
pub use compare::{Accuracy, compare};

use crate::align::banded::Cigar;

/// A read at its place, as a BAM record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlignedRead {
    /// Its name.
    pub name: String,
    /// Which sequence of the reference; `None` for a read that belongs nowhere.
    pub contig: Option<usize>,
    /// The first base in it, from 0.
    pub position: usize,
    /// How sure the place is.
    pub quality: u8,
    /// Whether the bases are the reverse complement of what was read.
    pub reverse: bool,
    /// The path, clipped bases included; empty for a read that belongs nowhere.
    pub cigar: Cigar,
    /// The bases, in the direction of the reference.
    pub bases: Vec<u8>,
    /// The quality of each base; empty if not known.
    pub qualities: Vec<u8>,
}

/// Which of an individual's two copies have a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Genotype {
    /// One of them.
    Heterozygous {
        /// Which: 0 or 1. Callers do not know, and say 0.
        copy: u8,
    },
    /// Both.
    Homozygous,
}

impl Genotype {
    /// Whether a copy has the variant.
    #[must_use]
    pub fn has(self, copy: u8) -> bool {
        match self {
            Self::Heterozygous { copy: own } => own == copy,
            Self::Homozygous => true,
        }
    }
}

/// A difference from the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The first base that is replaced, from 0.
    pub position: usize,
    /// What the reference has.
    pub reference: Vec<u8>,
    /// What the individual has.
    pub alternate: Vec<u8>,
    /// On which copies.
    pub genotype: Genotype,
    /// −10 log10 of the probability that there is none.
    pub quality: f32,
}

impl Eq for Variant {}

impl Variant {
    /// One past the last base that is replaced.
    #[must_use]
    pub fn end(&self) -> usize {
        self.position + self.reference.len()
    }
}

/// The variant in its left-most, shortest form with one base before an insertion or deletion (Tan, Abecasis and Kang 2015).
#[must_use]
pub fn normalize(sequence: &[u8], mut variant: Variant) -> Variant {
    loop {
        if variant.reference.is_empty() || variant.alternate.is_empty() {
            if variant.position == 0 {
                // Nothing stands before the first base; the base behind serves instead.
                if let Some(&behind) = sequence.get(variant.reference.len()) {
                    variant.reference.push(behind);
                    variant.alternate.push(behind);
                }
                return variant;
            }
            variant.position -= 1;
            let base = sequence[variant.position];
            variant.reference.insert(0, base);
            variant.alternate.insert(0, base);
        }
        let longer = variant.reference.len().max(variant.alternate.len());
        if longer == 1 || variant.reference.last() != variant.alternate.last() {
            break;
        }
        variant.reference.pop();
        variant.alternate.pop();
    }
    let same = variant.reference.iter().zip(&variant.alternate).take_while(|(a, b)| a == b).count();
    let same = same.min(variant.reference.len().min(variant.alternate.len()) - 1);
    variant.reference.drain(..same);
    variant.alternate.drain(..same);
    variant.position += same;
    variant
}

#[cfg(test)]
mod tests;
