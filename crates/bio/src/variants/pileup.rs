//! The bases of reads over each position, summed up as far as genotype likelihoods need them.

use std::sync::LazyLock;

use super::AlignedRead;
use crate::align::banded::Op;

/// Qualities above this say no more.
const HIGHEST_QUALITY: usize = 60;

/// For each quality: ln of the probability that the base is right, and that it is a particular wrong one.
static LOG_PROBABILITIES: LazyLock<[(f32, f32); HIGHEST_QUALITY + 1]> = LazyLock::new(|| {
    std::array::from_fn(|quality| {
        // Even a perfect base may come from a read in the wrong place.
        let error = 10f64.powf(-(quality.max(3) as f64) / 10.0).max(2e-4);
        ((1.0 - error).ln() as f32, (error / 3.0).ln() as f32)
    })
});

/// The reads over one position, by base.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Column {
    /// Reads with each base.
    pub(super) count: [u16; 4],
    /// Of those, reads of the other strand.
    pub(super) reverse: [u16; 4],
    /// Sum of ln(1 − error) over the reads with each base.
    pub(super) right: [f32; 4],
    /// Sum of ln(error / 3) over the reads with each base.
    pub(super) wrong: [f32; 4],
}

impl Column {
    /// Reads over the position.
    pub(super) fn depth(&self) -> u32 {
        self.count.iter().map(|&count| u32::from(count)).sum()
    }
}

/// An insertion or deletion in a read, as its alignment has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gap {
    /// The base before it.
    pub(super) before: usize,
    /// Bases of the reference that are missing.
    pub(super) deleted: usize,
    /// Bases that are added.
    pub(super) inserted: Vec<u8>,
}

/// The pileup of a region of one sequence.
#[derive(Debug)]
pub(super) struct Pileup {
    /// The first position.
    pub(super) start: usize,
    /// One column a position.
    pub(super) columns: Vec<Column>,
    /// Insertions and deletions that begin in the region.
    pub(super) gaps: Vec<Gap>,
}

impl Pileup {
    /// The pileup of the positions from `start` to `end`.
    pub(super) fn new<'a>(
        start: usize,
        end: usize,
        sequence: &[u8],
        reads: impl Iterator<Item = &'a AlignedRead>,
    ) -> Self {
        let mut pileup = Self { start, columns: vec![Column::default(); end - start], gaps: Vec::new() };
        for read in reads {
            pileup.add(read, sequence);
        }
        pileup
    }

    fn add(&mut self, read: &AlignedRead, sequence: &[u8]) {
        let end = self.start + self.columns.len();
        let table = &*LOG_PROBABILITIES;
        let strand = u16::from(read.reverse);
        let (mut place, mut index) = (read.position, 0);
        for &(length, op) in read.cigar.steps() {
            let length = length as usize;
            match op {
                Op::Match => {
                    let skipped = self.start.saturating_sub(place).min(length);
                    let from = place + skipped;
                    let to = (place + length).min(end).max(from);
                    let bases = read.bases.get(index + skipped..index + skipped + to - from).unwrap_or(&[]);
                    let qualities = read.qualities.get(index + skipped..).unwrap_or(&[]);
                    if from < to {
                        let columns = &mut self.columns[from - self.start..to - self.start];
                        for (offset, (column, &base)) in columns.iter_mut().zip(bases).enumerate() {
                            let quality = qualities.get(offset).copied().unwrap_or(20);
                            // The lowest qualities say nothing but that the base is unknown.
                            if base >= 4 || quality < 5 {
                                continue;
                            }
                            let (right, wrong) = table[(quality as usize).min(HIGHEST_QUALITY)];
                            let base = base as usize;
                            column.count[base] = column.count[base].saturating_add(1);
                            column.reverse[base] = column.reverse[base].saturating_add(strand);
                            column.right[base] += right;
                            column.wrong[base] += wrong;
                        }
                    }
                    (place, index) = (place + length, index + length);
                }
                Op::Insert | Op::Delete => {
                    let inside = place > self.start && place <= end;
                    let deleted = if op == Op::Delete { length } else { 0 };
                    if inside && place > read.position {
                        let inserted = if op == Op::Insert {
                            read.bases.get(index..index + length).unwrap_or(&[]).to_vec()
                        } else {
                            Vec::new()
                        };
                        let gap = Gap { before: place - 1, deleted, inserted };
                        self.gaps.push(leftmost(gap, sequence));
                    }
                    place += deleted;
                    index += if op == Op::Insert { length } else { 0 };
                }
                Op::Clip => index += length,
            }
        }
    }
}

/// The same gap as far left as it goes.
fn leftmost(mut gap: Gap, sequence: &[u8]) -> Gap {
    if gap.deleted > 0 {
        while gap.before > 0 && sequence[gap.before] == sequence[gap.before + gap.deleted] {
            gap.before -= 1;
        }
    } else {
        while gap.before > 0 && gap.inserted.last() == Some(&sequence[gap.before]) {
            gap.inserted.rotate_right(1);
            gap.before -= 1;
        }
    }
    gap
}
