//! Counting k-mers: each k-mer and its reverse complement are one, and letters that are not bases are in none.
//!
//! K-mers are scattered into parts by their hash, so that each part is counted by one thread in a table that stays in its
//! cache; what is kept of a part is the k-mers and their counts.

mod table;
mod word;

pub use word::Word;

use crate::parallel::{map_indices, map_indices_with};
use crate::seq::OTHER;
use table::Table;

/// Bases that a thread takes at a time.
const CHUNK: usize = 1 << 21;

/// K-mers in a part, about: their table stays within a second-level cache.
const PART: usize = 1 << 15;

/// The most parts, as a power of two: more would each be written to too rarely.
const MOST_PART_BITS: u32 = 11;

/// Why k-mers cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("k is {k}: it takes 1 to {most}, an odd number")]
pub struct KmerLengthError {
    /// What was asked for.
    pub k: usize,
    /// The most that fit into a word.
    pub most: usize,
}

/// How often each k-mer occurs.
#[derive(Debug, Clone)]
pub struct Counts<W> {
    k: usize,
    parts: Vec<Part<W>>,
}

/// The different k-mers of a part, and how often each occurs.
#[derive(Debug, Clone)]
struct Part<W> {
    kmers: Box<[W]>,
    counts: Box<[u32]>,
}

/// The times that the two steps took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stages {
    /// Seconds to cut sequences into k-mers and scatter them.
    pub scatter: f64,
    /// Seconds to count them.
    pub count: f64,
}

/// Counts the canonical k-mers of sequences. `k` is odd, so that no k-mer is its own reverse complement.
///
/// # Errors
/// If `k` is even, 0 or too long for a word.
pub fn count<W: Word, S: AsRef<[u8]> + Sync>(
    sequences: &[S],
    k: usize,
    threads: usize,
) -> Result<Counts<W>, KmerLengthError> {
    count_in_stages(sequences, k, threads).map(|(counts, _)| counts)
}

/// As [`count`], with the time of each step.
///
/// # Errors
/// As for [`count`].
pub fn count_in_stages<W: Word, S: AsRef<[u8]> + Sync>(
    sequences: &[S],
    k: usize,
    threads: usize,
) -> Result<(Counts<W>, Stages), KmerLengthError> {
    let most = W::BASES - 1;
    if !(1..=most).contains(&k) || k.is_multiple_of(2) {
        return Err(KmerLengthError { k, most });
    }
    let began = std::time::Instant::now();
    let chunks = chunks(sequences, k);
    let total: usize = sequences.iter().map(|sequence| sequence.as_ref().len()).sum();
    let bits = (total / PART).max(1).ilog2().min(MOST_PART_BITS);
    let scattered: Vec<Vec<Vec<W>>> = map_indices(chunks.len(), threads, |index| {
        let expected = chunks[index].iter().map(|piece| piece.len()).sum::<usize>() >> bits;
        let mut parts: Vec<Vec<W>> =
            (0..1usize << bits).map(|_| Vec::with_capacity(expected + expected / 8 + 16)).collect();
        for piece in &chunks[index] {
            each_kmer(piece, k, |kmer: W| parts[kmer.part(bits)].push(kmer));
        }
        parts
    });
    let scatter = began.elapsed().as_secs_f64();
    let began = std::time::Instant::now();
    let parts = map_indices_with(1 << bits, threads, Table::default, |table, part| {
        let kmers = scattered.iter().map(|chunk| chunk[part].as_slice());
        let (kmers, counts) = table.count(kmers, bits);
        Part { kmers, counts }
    });
    Ok((Counts { k, parts }, Stages { scatter, count: began.elapsed().as_secs_f64() }))
}

/// Pieces of sequences, overlapping so that no k-mer is lost, in chunks of about equal size.
fn chunks<S: AsRef<[u8]>>(sequences: &[S], k: usize) -> Vec<Vec<&[u8]>> {
    let mut chunks = vec![Vec::new()];
    let mut filled = 0;
    for sequence in sequences {
        let sequence = sequence.as_ref();
        let mut start = 0;
        while start + k <= sequence.len() {
            let end = (start + CHUNK).min(sequence.len());
            let piece = &sequence[start..end];
            if filled + piece.len() > CHUNK && filled > 0 {
                chunks.push(Vec::new());
                filled = 0;
            }
            filled += piece.len();
            if let Some(last) = chunks.last_mut() {
                last.push(piece);
            }
            start = end + 1 - k;
        }
    }
    chunks
}

/// Gives every canonical k-mer of a sequence, in order.
#[inline]
pub(crate) fn each_kmer<W: Word>(sequence: &[u8], k: usize, mut give: impl FnMut(W)) {
    each_oriented(sequence, k, |_, kmer, _| give(kmer));
}

/// Gives every canonical k-mer of a sequence with its begin and whether it is of the other strand, in order.
#[inline]
pub(crate) fn each_oriented<W: Word>(sequence: &[u8], k: usize, mut give: impl FnMut(usize, W, bool)) {
    let (mut forward, mut reverse) = (W::default(), W::default());
    let mut valid = 0;
    for (end, &code) in sequence.iter().enumerate() {
        if code >= OTHER {
            valid = 0;
            continue;
        }
        forward = forward.appended(code, k);
        reverse = reverse.prepended(3 - code, k);
        valid += 1;
        if valid >= k {
            give(end + 1 - k, forward.min(reverse), reverse < forward);
        }
    }
}

impl<W: Word> Counts<W> {
    /// The length of the k-mers.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// How many different k-mers there are.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.parts.iter().map(|part| part.kmers.len()).sum()
    }

    /// How many k-mers there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| u64::from(count)).sum()
    }

    /// Every k-mer with its count, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (W, u32)> + '_ {
        self.parts.iter().flat_map(|part| part.kmers.iter().copied().zip(part.counts.iter().copied()))
    }

    /// At index n, how many k-mers occur n times; the last index also counts those that occur more often.
    #[must_use]
    pub fn histogram(&self, most: usize) -> Vec<u64> {
        let mut histogram = vec![0; most + 1];
        for (_, count) in self.iter() {
            histogram[(count as usize).min(most)] += 1;
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::seq::reverse_complement;
    use crate::simulate::{genome, short_reads};

    /// Counts by slices of letters: slow and obvious.
    fn naive(sequences: &[&[u8]], k: usize) -> HashMap<Vec<u8>, u32> {
        let mut counts = HashMap::new();
        for sequence in sequences {
            for word in sequence.windows(k).filter(|word| word.iter().all(|&code| code < OTHER)) {
                let other = reverse_complement(word);
                *counts.entry(other.min(word.to_vec())).or_insert(0) += 1;
            }
        }
        counts
    }

    fn histogram(counts: &HashMap<Vec<u8>, u32>, most: usize) -> Vec<u64> {
        let mut histogram = vec![0; most + 1];
        for &count in counts.values() {
            histogram[(count as usize).min(most)] += 1;
        }
        histogram
    }

    #[test]
    fn histograms_are_those_of_a_naive_counter() {
        let mut bases = genome(60_000, 1);
        bases[1_000] = OTHER;
        bases[2_000..2_100].fill(OTHER);
        let reads = short_reads(&bases, 1_500, 100, 3);
        let mut sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
        sequences.extend([&bases[..], &[], &bases[..3]]);
        for k in [1, 5, 21, 31] {
            let expected = naive(&sequences, k);
            for threads in [1, 3] {
                let counts = count::<u64, _>(&sequences, k, threads).unwrap();
                assert_eq!(counts.histogram(300), histogram(&expected, 300), "k = {k}");
                assert_eq!(counts.distinct(), expected.len());
                assert_eq!(counts.total(), expected.values().map(|&count| u64::from(count)).sum::<u64>());
            }
        }
        for k in [31, 47, 63] {
            let counts = count::<u128, _>(&sequences, k, 2).unwrap();
            assert_eq!(counts.histogram(300), histogram(&naive(&sequences, k), 300), "k = {k}");
        }
    }

    #[test]
    fn long_sequences_are_cut_without_loss() {
        let bases = genome(2 * CHUNK + 77, 2);
        let counts = count::<u64, _>(&[&bases], 31, 2).unwrap();
        assert_eq!(counts.total(), bases.len() as u64 - 30);
        let mut first = None;
        each_kmer::<u64>(&bases[CHUNK - 15..CHUNK + 16], 31, |kmer| first = Some(kmer));
        assert!(counts.iter().any(|(kmer, count)| Some(kmer) == first && count >= 1));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        for k in [0, 2, 32, 33] {
            let error = count::<u64, &[u8]>(&[], k, 1).unwrap_err();
            assert!(error.to_string().contains(&format!("k is {k}")), "{error}");
        }
        assert_eq!(count::<u64, &[u8]>(&[], 31, 1).unwrap().total(), 0);
    }
}
