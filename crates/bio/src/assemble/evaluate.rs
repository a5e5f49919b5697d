//! An assembly against the true genome: what is covered, what is wrong, what is joined wrongly.

use std::collections::HashMap;

use crate::kmer::each_oriented;

/// How good an assembly is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Part of the genome's bases that contigs cover.
    pub genome_fraction: f64,
    /// Part of the contigs' bases that are in k-mers of the genome.
    pub identity: f64,
    /// Places where a contig jumps from one place of the genome to another.
    pub misjoins: usize,
}

/// The k-mers by which contigs and genome are compared.
const K: usize = 31;

/// The most by which two neighbouring anchors may be shifted against each other without being a wrong join.
const LONGEST_INDEL: i64 = 100;

/// Compares contigs with the genome by its k-mers.
#[must_use]
pub fn evaluate(genome: &[u8], contigs: &[&[u8]], circular: bool) -> Evaluation {
    // A circle goes on at its begin.
    let unrolled: Vec<u8> = if circular {
        genome.iter().chain(genome.iter().take(K - 1)).copied().collect()
    } else {
        genome.to_vec()
    };
    let mut places: HashMap<u64, Place> = HashMap::with_capacity(unrolled.len());
    each_oriented(&unrolled, K, |start, kmer: u64, reverse| {
        places.entry(kmer).and_modify(|place| place.unique = false).or_insert(Place {
            start,
            reverse,
            unique: true,
            covered: false,
        });
    });
    let (mut right, mut total, mut misjoins) = (0, 0, 0);
    for contig in contigs {
        let mut until = 0;
        let mut last: Option<(bool, i64)> = None;
        each_oriented(contig, K, |start, kmer: u64, reverse| {
            let Some(place) = places.get_mut(&kmer) else { return };
            place.covered = true;
            right += start + K - start.max(until);
            until = start + K;
            if !place.unique {
                return;
            }
            let reversed = place.reverse != reverse;
            // On the other strand, positions of the genome fall where those of the contig rise.
            let diagonal = place.start as i64 + if reversed { start as i64 } else { -(start as i64) };
            if let Some((strand, known)) = last {
                let mut shift = (diagonal - known).abs();
                if circular {
                    shift = shift.min((shift - genome.len() as i64).abs());
                }
                misjoins += usize::from(strand != reversed || shift > LONGEST_INDEL);
            }
            last = Some((reversed, diagonal));
        });
        total += contig.len();
    }
    let mut covered = vec![false; unrolled.len()];
    each_oriented(&unrolled, K, |start, kmer: u64, _| {
        if places.get(&kmer).is_some_and(|place| place.covered) {
            covered[start..start + K].fill(true);
        }
    });
    let share = |part: usize, all: usize| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    Evaluation {
        genome_fraction: share(covered.iter().take(genome.len()).filter(|&&c| c).count(), genome.len()),
        identity: share(right, total),
        misjoins,
    }
}

/// Where a k-mer of the genome is.
struct Place {
    start: usize,
    reverse: bool,
    unique: bool,
    covered: bool,
}
