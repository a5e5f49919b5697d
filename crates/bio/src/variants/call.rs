//! Calls: every position's most probable genotype under a diploid model.

use super::indels;
use super::pileup::{Column, Pileup};
use super::{AlignedRead, Genotype, Variant};
use crate::map::Reference;
use crate::parallel::map_indices;

/// Positions that a thread takes at a time.
const REGION: usize = 1 << 15;

/// What counts as a variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallSettings {
    /// Reads below this mapping quality are not looked at.
    pub least_mapping_quality: u8,
    /// Calls below this quality are not made.
    pub least_quality: f32,
    /// Reads that show a variant, at least.
    pub least_support: u32,
    /// The probability of a single-base variant at a position.
    pub prior: f64,
    /// The probability of an insertion or deletion at a position.
    pub indel_prior: f64,
    /// Part of the spanning reads that show an insertion or deletion, at least.
    pub least_indel_share: f64,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            least_mapping_quality: 10,
            least_quality: 20.0,
            least_support: 3,
            prior: 1e-3,
            indel_prior: 2e-4,
            least_indel_share: 0.2,
        }
    }
}

/// Calls the variants of an individual from reads sorted by contig and position. The calls of each sequence are sorted.
#[must_use]
pub fn call_variants(
    reference: &Reference,
    reads: &[AlignedRead],
    settings: &CallSettings,
    threads: usize,
) -> Vec<Vec<Variant>> {
    let mut regions = Vec::new();
    for contig in 0..reference.names().len() {
        let length = reference.sequence(contig).len();
        regions.extend(
            (0..length.div_ceil(REGION))
                .map(|index| (contig, index * REGION, ((index + 1) * REGION).min(length))),
        );
    }
    let longest = reads.iter().map(|read| read.cigar.target_length()).max().unwrap_or(0);
    let calls = map_indices(regions.len(), threads, |index| {
        let (contig, start, end) = regions[index];
        let first = reads.partition_point(|read| {
            (read.contig.unwrap_or(usize::MAX), read.position + longest) < (contig, start)
        });
        let last =
            reads.partition_point(|read| (read.contig.unwrap_or(usize::MAX), read.position) < (contig, end));
        let chosen: Vec<&AlignedRead> = reads[first.min(last)..last]
            .iter()
            .filter(|read| read.contig == Some(contig) && read.quality >= settings.least_mapping_quality)
            .collect();
        call_region(reference.sequence(contig), start, end, &chosen, settings)
    });
    let mut by_contig: Vec<Vec<Variant>> = vec![Vec::new(); reference.names().len()];
    for ((contig, _, _), calls) in regions.into_iter().zip(calls) {
        by_contig[contig].extend(calls);
    }
    for calls in &mut by_contig {
        // A left-aligned indel may belong to the region before.
        calls.sort_by(|a, b| (a.position, &a.alternate).cmp(&(b.position, &b.alternate)));
        calls.dedup_by(|a, b| {
            a.position == b.position && a.alternate == b.alternate && a.reference == b.reference
        });
    }
    by_contig
}

fn call_region(
    sequence: &[u8],
    start: usize,
    end: usize,
    reads: &[&AlignedRead],
    settings: &CallSettings,
) -> Vec<Variant> {
    let mut pileup = Pileup::new(start, end, sequence, reads.iter().copied());
    let indels = indels::call(sequence, std::mem::take(&mut pileup.gaps), reads, settings);
    let mut calls: Vec<Variant> = pileup
        .columns
        .iter()
        .enumerate()
        .filter_map(|(index, column)| call_base(start + index, sequence, column, settings))
        .filter(|variant| !beside_indel(variant, &indels))
        .collect();
    calls.extend(indels);
    calls
}

/// Reads that end in an indel show its bases as mismatches; such a call beside an indel is not believed.
fn beside_indel(variant: &Variant, indels: &[Variant]) -> bool {
    indels.iter().any(|indel| {
        let length = indel.reference.len().max(indel.alternate.len());
        let reach = (length + 2).max(4);
        variant.position + 1 >= indel.position
            && variant.position <= indel.position + indel.reference.len() + reach
            && matches!(variant.genotype, Genotype::Heterozygous { .. })
            && variant.quality < 150.0
    })
}

/// The most probable genotype at a position, if it is not the reference's.
fn call_base(position: usize, sequence: &[u8], column: &Column, settings: &CallSettings) -> Option<Variant> {
    let reference = sequence[position] as usize;
    let depth = column.depth();
    if reference >= 4 || depth < settings.least_support || depth == u32::from(column.count[reference]) {
        return None;
    }
    let alternate = (0..4)
        .filter(|&base| base != reference)
        .max_by(|&a, &b| column.wrong[b].total_cmp(&column.wrong[a]))?;
    let support = u32::from(column.count[alternate]);
    if support < settings.least_support || support * 8 < depth {
        return None;
    }
    // ln of the probability of all bases, given two copies with the bases a and b.
    let likelihood = |a: usize, b: usize| -> f64 {
        (0..4)
            .map(|base| {
                if a == b && base == a {
                    f64::from(column.right[base])
                } else if base == a || base == b {
                    -std::f64::consts::LN_2 * f64::from(column.count[base])
                } else {
                    f64::from(column.wrong[base])
                }
            })
            .sum()
    };
    let none = likelihood(reference, reference);
    let one = likelihood(reference, alternate) + settings.prior.ln();
    let both = likelihood(alternate, alternate) + (settings.prior / 2.0).ln();
    let quality = (10.0 / std::f64::consts::LN_10 * (one.max(both) - none)) as f32;
    if quality < settings.least_quality || is_strand_biased(column, reference, alternate) {
        return None;
    }
    let genotype = if both > one { Genotype::Homozygous } else { Genotype::Heterozygous { copy: 0 } };
    Some(Variant {
        position,
        reference: vec![reference as u8],
        alternate: vec![alternate as u8],
        genotype,
        quality,
    })
}

/// Whether one strand shows the base often and the other, with as many reads, never.
fn is_strand_biased(column: &Column, reference: usize, alternate: usize) -> bool {
    let of = |base: usize| {
        let reverse = f64::from(column.reverse[base]);
        (f64::from(column.count[base]) - reverse, reverse)
    };
    let ((forward, reverse), (other_forward, other_reverse)) = (of(alternate), of(reference));
    (forward == 0.0 && reverse >= 5.0 && other_forward >= 8.0)
        || (reverse == 0.0 && forward >= 5.0 && other_reverse >= 8.0)
}
