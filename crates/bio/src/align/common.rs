//! What every path of some pairs is certain to lose ahead: the bases outside a longest common subsequence.
//!
//! A base that is in no match is in a gap or in a mismatch. From a cell on, a path has at least as many of those as both
//! rests of the sequences have beside their longest common subsequence. Its length is computed with bit vectors (Hyyrö 2004),
//! 64 rows in a word, from the end of the sequences to their begin, within the band that holds the paths.

use std::ops::Range;

use super::Pair;
use super::band::Band;
use super::simd::Words;
use crate::seq::OTHER;

/// Columns between two that are kept.
pub(super) const INTERVAL: usize = 32;

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
    /// For each of those words and each pair, the rows that make the length one more.
    words: Vec<u64>,
}

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
        let planes = self.planes::<W>(pairs);
        let none = W::splat(0);
        let bits: [W; 3] = [1, 2, 4].map(|bit| W::splat(bit));
        // Rows that make the length one more have no bit.
        let mut state = vec![W::splat(u64::MAX); self.blocks];
        let mut below = vec![0; pairs.len()];
        let mut first = 0;
        for column in (0..columns).rev() {
            let words = span(column);
            while first < words.start {
                for (below, word) in below.iter_mut().zip(state[first].to_array().as_ref()) {
                    *below += word.count_zeros() as i32;
                }
                first += 1;
            }
            let mut codes = W::zeros();
            for (code, pair) in codes.as_mut().iter_mut().zip(pairs) {
                *code = u64::from(pair.1.get(column).copied().unwrap_or(OTHER));
            }
            let code = W::from_array(codes);
            let code = bits.map(|bit| W::if_equal(code.and(bit), bit, W::splat(u64::MAX), none));
            let mut carry = none;
            for (rows, word) in planes[words.clone()].iter().zip(&mut state[words.clone()]) {
                let unequal = rows[0].xor(code[0]).or(rows[1].xor(code[1])).or(rows[2].xor(code[2]));
                let matched = word.and(unequal.not());
                let sum = word.add(matched).add(carry);
                carry = matched.or(word.and(sum.not())).top_bit();
                *word = sum.or(word.and(unequal));
            }
            if column % INTERVAL == 0 {
                let Some(kept) = self.kept.get_mut(column / INTERVAL) else { continue };
                kept.below[lane..lane + pairs.len()].copy_from_slice(&below);
                let lanes = kept.below.len();
                for (row, word) in kept.words.chunks_exact_mut(lanes).zip(&state[words]) {
                    for (bits, word) in row[lane..].iter_mut().zip(word.to_array().as_ref()).take(pairs.len())
                    {
                        *bits = !word;
                    }
                }
            }
        }
    }

    /// For each word, the three bits of the codes in its rows. A row without a base has a code that no column has.
    #[inline(always)]
    fn planes<W: Words>(&self, pairs: &[Pair<'_>]) -> Vec<[W; 3]> {
        let mut planes: Vec<[W::Array; 3]> =
            (0..self.blocks).map(|_| std::array::from_fn(|_| W::zeros())).collect();
        for (lane, &(rows, _)) in pairs.iter().enumerate() {
            for (block, planes) in planes.iter_mut().rev().enumerate() {
                let part = &rows[(64 * block).min(rows.len())..(64 * block + 64).min(rows.len())];
                let mut words = [0u64, 0, 0];
                for &code in part {
                    let code = u64::from(if code < OTHER { code } else { OTHER + 1 });
                    for (bit, word) in words.iter_mut().enumerate() {
                        *word = *word << 1 | (code >> bit & 1);
                    }
                }
                // What is left of the word is after the end.
                let left = 64 - part.len() as u32;
                for (bit, (word, plane)) in words.into_iter().zip(planes.iter_mut()).enumerate() {
                    let after = if u64::from(OTHER + 1) >> bit & 1 == 1 {
                        !u64::MAX.checked_shl(left).unwrap_or(0)
                    } else {
                        0
                    };
                    plane.as_mut()[lane] = word.checked_shl(left).unwrap_or(0) | after;
                }
            }
        }
        planes.into_iter().map(|planes| planes.map(W::from_array)).collect()
    }

    /// The last kept column that is not after this one.
    pub(super) fn before(&self, column: usize) -> Option<CommonColumn<'_>> {
        let kept = self.kept.get(column / INTERVAL)?;
        Some(CommonColumn { common: self, kept })
    }
}

/// The lengths in a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommonColumn<'a> {
    common: &'a Common,
    kept: &'a Kept,
}

impl CommonColumn<'_> {
    /// For each pair, the length after so many rows.
    pub(super) fn lengths_after(&self, row: usize) -> Vec<i32> {
        let mut lengths = self.kept.below.clone();
        let bits = (64 * self.common.blocks).saturating_sub(row);
        for (word, words) in self.kept.span.clone().zip(self.kept.words.chunks_exact(lengths.len())) {
            let mask = match bits.saturating_sub(64 * word) {
                0 => break,
                bits => u64::MAX >> (64 - bits.min(64)),
            };
            for (length, word) in lengths.iter_mut().zip(words) {
                *length += (word & mask).count_ones() as i32;
            }
        }
        lengths
    }

    /// For each pair a word, how far down to shift it, and what to take of it: the bits are the rows among these that are in
    /// the subsequence. The rows have a multiple of 64 only at an end.
    #[inline]
    pub(super) fn rows(&self, rows: Range<usize>) -> (&[u64], u32, u64) {
        let place = (64 * self.common.blocks).saturating_sub(rows.end);
        let lanes = self.kept.below.len();
        let words = (place / 64).checked_sub(self.kept.span.start);
        let words = words.and_then(|word| self.kept.words.get(word * lanes..(word + 1) * lanes));
        let mask = u64::MAX >> (64 - rows.len().clamp(1, 64));
        (words.unwrap_or(&self.common.zeros), (place % 64) as u32, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::InstructionSet;
    use super::super::tests::pairs;
    use super::*;

    /// The length of the longest common subsequence from each cell on, row by row.
    fn plain(a: &[u8], b: &[u8]) -> Vec<Vec<i32>> {
        let mut lengths = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                let matched = i32::from(a[i] == b[j] && a[i] < OTHER) + lengths[i + 1][j + 1];
                lengths[i][j] = matched.max(lengths[i + 1][j]).max(lengths[i][j + 1]);
            }
        }
        lengths
    }

    #[test]
    fn lengths_are_those_of_plain_dynamic_programming_from_every_row_on() {
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
                        for (row, right) in right.iter().enumerate() {
                            assert_eq!(length, right[column], "{set:?}, row {row}, column {column}");
                            assert_eq!(kept.lengths_after(row)[lane], length);
                            let (words, shift, mask) = kept.rows(row..row + 1);
                            length -= (words[lane] >> shift & mask).count_ones() as i32;
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
                    let equal = i < a.len() && j < b.len() && a[i] == b[j] && a[i] < OTHER;
                    let step = lengths[i + 1][j]
                        .max(lengths[i][j + 1])
                        .max(lengths[i + 1][j + 1] + i32::from(equal));
                    lengths[i][j] = step.max(0);
                    if j % INTERVAL == 0 {
                        assert!(
                            common.before(j).unwrap().lengths_after(i)[0] >= lengths[i][j],
                            "{i} {j} {a:?} {b:?}"
                        );
                    }
                }
            }
        }
    }
}
