//! What every path of some pairs is certain to lose ahead: the bases outside a longest common subsequence.
//!
//! A base that is in no match is in a gap or in a mismatch. From a cell on, a path has at least as many of those as both
//! rests of the sequences have beside their longest common subsequence. Its length is computed with bit vectors (Hyyrö 2004),
//! 64 rows in a word, from the end of the sequences to their begin, within the band that holds the paths. An unknown base
//! counts as an A here, which only makes a length larger.

use std::ops::Range;

use super::Pair;
use super::band::Band;
use super::simd::Words;

/// Columns between two that are kept.
pub(super) const INTERVAL: usize = 32;
/// Rows whose part of a length is kept as one number.
pub(super) const GROUP: usize = 4;
/// Columns that are computed together: what one hands to the next stays in registers.
const BLOCK: usize = 4;

/// The lengths of the longest common subsequences of the rests of some pairs.
#[derive(Debug)]
pub(super) struct Common {
    /// Words over all rows. Bits are in the order of the computation: the last row is the first one.
    blocks: usize,
    /// A word of zeros for each pair.
    zeros: Vec<u64>,
    /// Every [`INTERVAL`]th column, from the first one on.
    kept: Vec<Kept>,
}

/// A column.
#[derive(Debug, Clone)]
struct Kept {
    /// The words that the band has in this column.
    span: Range<usize>,
    /// For each pair, the length below those words.
    below: Vec<i32>,
    /// For each of those words and each pair, how many of each [`GROUP`] of rows make the length one more; four bits a group.
    words: Vec<u64>,
}

/// The sequences of a vector of pairs, and the column that was computed last.
struct Vectors<W> {
    /// For each word, the two bits of the codes in its rows.
    planes: Vec<[W; 2]>,
    /// The rows that a pair has.
    rows: Vec<W>,
    /// For each column, the code of each pair in a byte; [`ENDED`] where a pair has no base.
    columns: Vec<u64>,
    /// For each pair, the bits of its byte that are the bits of a code, and the one of [`ENDED`].
    bits: [W; 3],
    /// Rows that make the length one more have no bit, and rows that a pair does not have.
    state: Vec<W>,
}

/// In place of a code, after the end.
const ENDED: u8 = 4;

impl Common {
    /// Of pairs whose paths stay within a band.
    #[inline(always)]
    pub(super) fn of<W: Words>(pairs: &[Pair<'_>], band: Band) -> Self {
        let rows = pairs.iter().map(|pair| pair.0.len()).max().unwrap_or(0);
        let columns = pairs.iter().map(|pair| pair.1.len()).max().unwrap_or(0);
        let blocks = rows.div_ceil(64);
        let span = |column: usize| {
            let first = (column as i64 - band.high).clamp(0, rows as i64) as usize;
            // With the base after the last cell of the band, which a match goes over.
            let last = (column as i64 - band.low + 1).clamp(0, rows as i64) as usize;
            (64 * blocks - last) / 64..(64 * blocks - first).div_ceil(64)
        };
        let kept = (0..=columns / INTERVAL).map(|index| {
            let span = span(index * INTERVAL);
            let words = vec![0; span.len() * pairs.len()];
            Kept { span, below: vec![0; pairs.len()], words }
        });
        let mut common = Self { blocks, zeros: vec![0; pairs.len()], kept: kept.collect() };
        for (group, chunk) in pairs.chunks(W::COUNT).enumerate() {
            common.compute::<W>(chunk, group * W::COUNT, columns, &span);
        }
        common
    }

    /// The columns of the pairs of a vector, the first of which has this number.
    #[inline(always)]
    fn compute<W: Words>(
        &mut self,
        pairs: &[Pair<'_>],
        lane: usize,
        columns: usize,
        span: &impl Fn(usize) -> Range<usize>,
    ) {
        let mut vectors = Vectors::<W>::new(pairs, self.blocks, columns);
        let shortest = pairs.iter().map(|pair| pair.1.len()).min().unwrap_or(0);
        let mut below = vec![0; pairs.len()];
        let (mut first, mut column) = (0, columns);
        while column > 0 {
            let count = if column.is_multiple_of(BLOCK) && column <= shortest { BLOCK } else { 1 };
            column -= count;
            let words = span(column + count - 1).start..span(column).end;
            while first < words.start {
                vectors.add_word(first, &mut below);
                first += 1;
            }
            if count == BLOCK {
                vectors.advance::<BLOCK>(column, words);
            } else {
                vectors.advance::<1>(column, words);
            }
            if !column.is_multiple_of(INTERVAL) {
                continue;
            }
            let Some(kept) = self.kept.get_mut(column / INTERVAL) else { continue };
            let lanes = kept.below.len();
            let here = &mut kept.below[lane..lane + pairs.len()];
            here.copy_from_slice(&below);
            for word in first..kept.span.start {
                vectors.add_word(word, here);
            }
            for (row, word) in kept.words.chunks_exact_mut(lanes).zip(kept.span.clone()) {
                let bits = vectors.one_more(word);
                for (counts, &bits) in row[lane..lane + pairs.len()].iter_mut().zip(bits.as_ref()) {
                    let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
                    *counts = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
                }
            }
        }
    }

    /// The last kept column that is not after this one.
    pub(super) fn before(&self, column: usize) -> Option<CommonColumn<'_>> {
        let kept = self.kept.get(column / INTERVAL)?;
        Some(CommonColumn { common: self, kept })
    }
}

impl<W: Words> Vectors<W> {
    /// The column after the last one: no length is more than 0.
    #[inline(always)]
    fn new(pairs: &[Pair<'_>], blocks: usize, length: usize) -> Self {
        let (mut planes, mut rows) = (Vec::with_capacity(blocks), Vec::with_capacity(blocks));
        for block in (0..blocks).rev() {
            let (mut low, mut high, mut known) = (W::zeros(), W::zeros(), W::zeros());
            for (lane, &(bases, _)) in pairs.iter().enumerate() {
                let part = &bases[(64 * block).min(bases.len())..(64 * block + 64).min(bases.len())];
                let mut words = [0u64, 0];
                for &code in part {
                    words[0] = words[0] << 1 | u64::from(code & 1);
                    words[1] = words[1] << 1 | u64::from(code >> 1 & 1);
                }
                // What is left of the word is after the end.
                let left = 64 - part.len() as u32;
                low.as_mut()[lane] = words[0].checked_shl(left).unwrap_or(0);
                high.as_mut()[lane] = words[1].checked_shl(left).unwrap_or(0);
                known.as_mut()[lane] = u64::MAX.checked_shl(left).unwrap_or(0);
            }
            planes.push([W::from_array(low), W::from_array(high)]);
            rows.push(W::from_array(known));
        }
        let mut columns = vec![0; length];
        for (lane, &(_, bases)) in pairs.iter().enumerate() {
            let (codes, ended) = columns.split_at_mut(bases.len());
            for (column, &base) in codes.iter_mut().zip(bases) {
                *column |= u64::from(base & 3) << (8 * lane);
            }
            ended.iter_mut().for_each(|column| *column |= u64::from(ENDED) << (8 * lane));
        }
        let (mut low, mut high, mut ended) = (W::zeros(), W::zeros(), W::zeros());
        for lane in 0..W::COUNT {
            low.as_mut()[lane] = 1 << (8 * lane);
            high.as_mut()[lane] = 2 << (8 * lane);
            ended.as_mut()[lane] = u64::from(ENDED) << (8 * lane);
        }
        let bits = [W::from_array(low), W::from_array(high), W::from_array(ended)];
        Self { planes, columns, bits, state: rows.clone(), rows }
    }

    /// Computes N columns from the last to `column`, in these words. A column that a pair does not have is one by itself.
    #[inline(always)]
    fn advance<const N: usize>(&mut self, column: usize, words: Range<usize>) {
        let (none, all) = (W::splat(0), W::splat(u64::MAX));
        let [low, high, ended] = self.bits;
        let mut codes = [[none; 2]; N];
        let mut missing = none;
        // Loops, because closures given to functions of arrays do not have the kernel's target features.
        for (code, &bases) in codes.iter_mut().zip(self.columns[column..column + N].iter().rev()) {
            let bases = W::splat(bases);
            code[0] = W::if_equal(bases.and(low), low, all, none);
            code[1] = W::if_equal(bases.and(high), high, all, none);
            if N == 1 {
                missing = W::if_equal(bases.and(ended), ended, all, none);
            }
        }
        let mut carry = [none; N];
        for (rows, state) in self.planes[words.clone()].iter().zip(&mut self.state[words]) {
            let mut word = *state;
            for place in 0..N {
                let mut unequal = rows[0].xor(codes[place][0]).or(rows[1].xor(codes[place][1]));
                if N == 1 {
                    unequal = unequal.or(missing);
                }
                let matched = word.and(unequal.not());
                let sum = word.add(matched).add(carry[place]);
                carry[place] = matched.or(word.and(sum.not())).top_bit();
                word = sum.or(word.and(unequal));
            }
            *state = word;
        }
    }

    /// For each pair, the rows of a word that make the length one more.
    #[inline(always)]
    fn one_more(&self, word: usize) -> W::Array {
        self.rows[word].and(self.state[word].not()).to_array()
    }

    /// Adds what the rows of a word make of the lengths.
    #[inline(always)]
    fn add_word(&self, word: usize, lengths: &mut [i32]) {
        for (length, bits) in lengths.iter_mut().zip(self.one_more(word).as_ref()) {
            *length += bits.count_ones() as i32;
        }
    }
}

/// The lengths in a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommonColumn<'a> {
    common: &'a Common,
    kept: &'a Kept,
}

impl<'a> CommonColumn<'a> {
    /// For each pair, the length after so many groups of rows.
    #[inline(always)]
    pub(super) fn lengths_after(&self, groups: usize) -> Vec<i32> {
        let mut lengths = self.kept.below.clone();
        let bits = (64 * self.common.blocks).saturating_sub(GROUP * groups);
        for (word, words) in self.kept.span.clone().zip(self.kept.words.chunks_exact(lengths.len())) {
            let mask = match bits.saturating_sub(64 * word) {
                0 => break,
                bits => u64::MAX >> (64 - bits.min(64)),
            };
            for (length, word) in lengths.iter_mut().zip(words) {
                let counts = word & mask;
                let bytes = (counts & 0x0F0F_0F0F_0F0F_0F0F) + (counts >> 4 & 0x0F0F_0F0F_0F0F_0F0F);
                let shorts = bytes + (bytes >> 8);
                let words = shorts + (shorts >> 16);
                *length += ((words + (words >> 32)) & 0xFF) as i32;
            }
        }
        lengths
    }

    /// For each pair a word, and how far down to shift it: its lowest four bits are the rows of this group that make the length
    /// one more.
    #[inline(always)]
    pub(super) fn group(self, group: usize) -> (&'a [u64], u32) {
        let place = (64 * self.common.blocks).saturating_sub(GROUP * (group + 1));
        let lanes = self.kept.below.len();
        let words = (place / 64).checked_sub(self.kept.span.start);
        let words = words.and_then(|word| self.kept.words.get(word * lanes..(word + 1) * lanes));
        (words.unwrap_or(&self.common.zeros), (place % 64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::InstructionSet;
    use super::super::tests::pairs;
    use super::*;

    /// Whether two bases match here.
    fn equal(a: u8, b: u8) -> bool {
        a & 3 == b & 3
    }

    /// The length of the longest common subsequence from each cell on, row by row.
    fn plain(a: &[u8], b: &[u8]) -> Vec<Vec<i32>> {
        let mut lengths = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                let matched = i32::from(equal(a[i], b[j])) + lengths[i + 1][j + 1];
                lengths[i][j] = matched.max(lengths[i + 1][j]).max(lengths[i][j + 1]);
            }
        }
        lengths
    }

    #[test]
    fn lengths_are_those_of_plain_dynamic_programming_from_every_group_on() {
        let owned = pairs(240, 8);
        for chunk in owned.chunks(13) {
            let pairs: Vec<Pair<'_>> = chunk.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
            let Some(band) = pairs.iter().map(|&pair| Band::whole(pair)).reduce(Band::union) else {
                continue;
            };
            for set in InstructionSet::all() {
                let common = super::super::simd::common(set, &pairs, band);
                for (lane, (a, b)) in pairs.iter().enumerate() {
                    let right = plain(a, b);
                    for column in (0..=b.len()).step_by(INTERVAL) {
                        let kept = common.before(column).unwrap();
                        let mut length = kept.lengths_after(0)[lane];
                        for (group, right) in right.iter().step_by(GROUP).enumerate() {
                            assert_eq!(length, right[column], "{set:?}, group {group}, column {column}");
                            assert_eq!(kept.lengths_after(group)[lane], length);
                            let (words, shift) = kept.group(group);
                            length -= (words[lane] >> shift & 15) as i32;
                        }
                    }
                }
            }
        }
    }

    /// Paths that stay within the band are never worth more than the lengths.
    #[test]
    fn lengths_within_a_band_are_at_least_those_of_paths_that_stay_in_it() {
        let band = Band { low: -9, high: 14 };
        for (a, b) in pairs(300, 9) {
            let common = super::super::simd::common(InstructionSet::detect(), &[(&a, &b)], band);
            let inside = |i: usize, j: usize| (band.low..=band.high).contains(&(j as i64 - i as i64));
            let mut lengths = vec![vec![i32::MIN / 2; b.len() + 2]; a.len() + 2];
            for i in (0..=a.len()).rev() {
                for j in (0..=b.len()).rev().filter(|&j| inside(i, j)) {
                    let equal = i < a.len() && j < b.len() && equal(a[i], b[j]);
                    let step = lengths[i + 1][j]
                        .max(lengths[i][j + 1])
                        .max(lengths[i + 1][j + 1] + i32::from(equal));
                    lengths[i][j] = step.max(0);
                    if j % INTERVAL == 0 && i % GROUP == 0 {
                        assert!(
                            common.before(j).unwrap().lengths_after(i / GROUP)[0] >= lengths[i][j],
                            "{i} {j} {a:?} {b:?}"
                        );
                    }
                }
            }
        }
    }
}
