//! Insertions and deletions: candidates from the pileup, genotyped by the reads that span them.

use super::call::CallSettings;
use super::pileup::Gap;
use super::{AlignedRead, Genotype, Variant};
use crate::align::banded::Op;

/// The probability that a read that spans an insertion or deletion shows it wrongly; more in long repeats.
fn error_rate(repeat: usize) -> f64 {
    (0.004 * 1.25f64.powi(repeat as i32)).min(0.2)
}

/// Calls the candidates of a region. `gaps` are those of its reads, left-most; `reads` are sorted by position.
pub(super) fn call(
    sequence: &[u8],
    mut gaps: Vec<Gap>,
    reads: &[&AlignedRead],
    settings: &CallSettings,
) -> Vec<Variant> {
    gaps.sort_unstable();
    let mut calls: Vec<Variant> = Vec::new();
    for same in gaps.chunk_by(|a, b| a == b) {
        if (same.len() as u32) < settings.least_support {
            continue;
        }
        let gap = &same[0];
        let behind = repeat_length(sequence, gap);
        let spanning = spanning(gap, behind, reads);
        if let Some(variant) = genotype(sequence, gap, same.len(), spanning, behind, settings) {
            // Of two candidates at one place, the one with more reads.
            match calls.last() {
                Some(last) if last.position == variant.position => {
                    if variant.quality > last.quality {
                        calls.pop();
                        calls.push(variant);
                    }
                }
                _ => calls.push(variant),
            }
        }
    }
    calls
}

/// Bases behind the gap over which it could be moved to the right: a read must reach beyond them to tell.
fn repeat_length(sequence: &[u8], gap: &Gap) -> usize {
    let begin = gap.before + 1;
    if gap.deleted > 0 {
        let moved = (0..).take_while(|&step| {
            sequence.get(begin + step).is_some()
                && sequence.get(begin + step) == sequence.get(begin + step + gap.deleted)
        });
        gap.deleted + moved.count()
    } else {
        let unit = &gap.inserted;
        sequence[begin..].iter().zip(unit.iter().cycle()).take_while(|(a, b)| a == b).count()
    }
}

/// Reads that reach from before the gap to beyond its repeat, aligned at both ends.
fn spanning(gap: &Gap, behind: usize, reads: &[&AlignedRead]) -> usize {
    let (first, last) = (gap.before, gap.before + behind + 2);
    let until = reads.partition_point(|read| read.position <= first);
    // Reads are sorted by their begin, and none of those that matter is longer than this.
    reads[..until]
        .iter()
        .rev()
        .take_while(|read| read.position + 100_000 > first)
        .filter(|read| {
            read.position + read.cigar.target_length() > last && !clipped_before(read, first, last)
        })
        .count()
}

/// Whether a read is clipped so close that it does not tell.
fn clipped_before(read: &AlignedRead, first: usize, last: usize) -> bool {
    let steps = read.cigar.steps();
    let clips = |step: Option<&(u32, Op)>| step.is_some_and(|step| step.1 == Op::Clip);
    (clips(steps.first()) && read.position + 5 > first)
        || (clips(steps.last()) && read.position + read.cigar.target_length() < last + 5)
}

fn genotype(
    sequence: &[u8],
    gap: &Gap,
    support: usize,
    spanning: usize,
    repeat: usize,
    settings: &CallSettings,
) -> Option<Variant> {
    let total = spanning.max(support) as f64;
    let with = support as f64;
    if with / total < settings.least_indel_share {
        return None;
    }
    let error = error_rate(repeat);
    let likelihood = |share: f64| {
        let shown = share * (1.0 - error) + (1.0 - share) * error / 4.0;
        with * shown.ln() + (total - with) * (1.0 - shown).ln()
    };
    // Some of the reads of a longer indel end in a clip instead; they count for neither.
    let none = likelihood(0.0);
    let one = likelihood(0.45) + settings.indel_prior.ln();
    let both = likelihood(0.97) + (settings.indel_prior / 2.0).ln();
    let quality = (10.0 / std::f64::consts::LN_10 * (one.max(both) - none)) as f32;
    if quality < settings.least_quality {
        return None;
    }
    let end = gap.before + 1 + gap.deleted;
    let reference = sequence[gap.before..end].to_vec();
    let mut alternate = vec![sequence[gap.before]];
    alternate.extend_from_slice(&gap.inserted);
    if reference.iter().chain(&alternate).any(|&base| base >= 4) {
        return None;
    }
    let genotype = if both > one { Genotype::Homozygous } else { Genotype::Heterozygous { copy: 0 } };
    Some(Variant { position: gap.before, reference, alternate, genotype, quality })
}
