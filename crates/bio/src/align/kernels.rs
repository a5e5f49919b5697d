//! Local alignment of a pair in each lane of a vector, within a band of diagonals; the sequences side by side.
//!
//! A shorter pair is padded with codes that match nothing. Beyond the band a kernel takes scores of paths that exist, so
//! that its result is never more than the best score.

use super::band::Band;
use super::simd::{Element as _, Lanes};
use super::{Pair, Scoring};
use crate::seq::OTHER;

/// Columns that are computed together: what one hands to the next stays in registers.
pub(super) const BLOCK: usize = 4;

/// Pads the first sequences of pairs.
const PAD: i8 = 6;
/// The code for a letter of the first sequence that is not a base.
const OTHER_FIRST: i8 = 5;
/// Pads the second sequences of pairs; differs from every code of a first one.
const PAD_SECOND: i8 = 7;

/// Sequences side by side: one vector for each position, padded to the longest.
#[inline(always)]
fn transposed<'a, V: Lanes>(
    sequences: &(impl Iterator<Item = &'a [u8]> + Clone),
    other: i8,
    pad: i8,
) -> Vec<V> {
    let length = sequences.clone().map(<[u8]>::len).max().unwrap_or(0);
    // One after the other first: memory is read in order then, not at as many places as there are sequences.
    let stride = length.next_multiple_of(8) + 8;
    let mut rows = vec![pad as u8; V::COUNT * stride];
    for (row, sequence) in rows.chunks_exact_mut(stride).zip(sequences.clone()) {
        for (byte, &code) in row.iter_mut().zip(sequence) {
            *byte = if code < OTHER { code } else { other as u8 };
        }
    }
    let mut columns = Vec::with_capacity(stride);
    // Eight positions at a time, those of eight sequences in eight words.
    for from in (0..length).step_by(8) {
        let mut arrays: [V::Array; 8] = std::array::from_fn(|_| V::zeros());
        for lane in (0..V::COUNT).step_by(8) {
            let word = |index: usize| {
                let place = (lane + index) * stride + from;
                rows[place..place + 8].try_into().map_or(0, u64::from_le_bytes)
            };
            for (array, word) in arrays.iter_mut().zip(exchanged(std::array::from_fn(word))) {
                for (lane, byte) in array.as_mut()[lane..lane + 8].iter_mut().zip(word.to_le_bytes()) {
                    *lane = V::Element::of_code(byte);
                }
            }
        }
        columns.extend(arrays.map(V::from_array));
    }
    columns.truncate(length);
    columns
}

/// Eight words of eight bytes, rows and columns exchanged.
#[inline(always)]
fn exchanged(words: [u64; 8]) -> [u64; 8] {
    let words = exchanged_by::<4>(words, 0x0000_0000_FFFF_FFFF);
    let words = exchanged_by::<2>(words, 0x0000_FFFF_0000_FFFF);
    exchanged_by::<1>(words, 0x00FF_00FF_00FF_00FF)
}

/// Exchanges the upper halves of the groups of bytes in each word with the lower halves in the word so many further.
#[inline(always)]
fn exchanged_by<const FURTHER: usize>(mut words: [u64; 8], lower: u64) -> [u64; 8] {
    for pair in 0..4 {
        let low = pair / FURTHER * 2 * FURTHER + pair % FURTHER;
        let (a, b) = (words[low], words[low + FURTHER]);
        words[low] = (a & lower) | (b & lower) << (8 * FURTHER);
        words[low + FURTHER] = (a >> (8 * FURTHER) & lower) | (b & !lower);
    }
    words
}

/// Both sequences of as many pairs as a vector has lanes.
#[inline(always)]
pub(super) fn sequences<V: Lanes>(pairs: &[Pair<'_>]) -> (Vec<V>, Vec<V>) {
    let first = transposed(&pairs.iter().map(|pair| pair.0), OTHER_FIRST, PAD);
    let second = transposed(&pairs.iter().map(|pair| pair.1), OTHER as i8, PAD_SECOND);
    (first, second)
}

/// Smith–Waterman–Gotoh. A score of 0 is the lowest value of a lane, so that saturation keeps scores from falling below 0.
#[inline(always)]
pub(super) fn local_kernel<V: Lanes>(
    pairs: &[Pair<'_>],
    scoring: &Scoring,
    band: Band,
    scores: &mut [Option<i32>],
) {
    let constant = |value: i32| V::splat(V::Element::saturated(value));
    let (matching, mismatch) = (constant(i32::from(scoring.matching)), constant(i32::from(scoring.mismatch)));
    let open = constant(i32::from(scoring.gap_open) + i32::from(scoring.gap_extend));
    let extend = constant(i32::from(scoring.gap_extend));
    let zero = V::splat(V::Element::LOWEST);
    let constants = LocalConstants { matching, mismatch, open, extend, zero };
    for (pairs, scores) in pairs.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let (first, second) = sequences::<V>(pairs);
        let mut cells = vec![(zero, zero); first.len()];
        let mut best = zero;
        let mut blocks = second.chunks_exact(BLOCK);
        let mut index = 0;
        for bases in &mut blocks {
            let bases: [V; BLOCK] = std::array::from_fn(|column| bases[column]);
            best = local_columns(&constants, bases, index, &first, band, &mut cells, best);
            index += BLOCK;
        }
        for &base in blocks.remainder() {
            best = local_columns(&constants, [base], index, &first, band, &mut cells, best);
            index += 1;
        }
        store_local::<V>(best, scores);
    }
}

/// The costs of the local kernel in all lanes.
#[derive(Debug, Clone, Copy)]
struct LocalConstants<V> {
    matching: V,
    mismatch: V,
    open: V,
    extend: V,
    zero: V,
}

/// N columns from `index` on, row by row, on the rows that the band has in any of them; the best score so far.
#[inline(always)]
fn local_columns<V: Lanes, const N: usize>(
    constants: &LocalConstants<V>,
    bases: [V; N],
    index: usize,
    first: &[V],
    band: Band,
    cells: &mut [(V, V)],
    mut best: V,
) -> V {
    let LocalConstants { matching, mismatch, open, extend, zero } = *constants;
    let rows = band.rows(index, first.len()).start..band.rows(index + N - 1, first.len()).end;
    let mut diagonal = [zero; N];
    if let Some(above) = rows.start.checked_sub(1) {
        diagonal[0] = cells[above].0;
    }
    let mut f = [zero; N];
    for (&other, cell) in first[rows.clone()].iter().zip(&mut cells[rows]) {
        let (mut left, mut e) = *cell;
        for column in 0..N {
            let score = V::if_equal(bases[column], other, matching, mismatch);
            let h = diagonal[column].add(score).max(e).max(f[column]);
            best = best.max(h);
            diagonal[column] = left;
            let opened = h.sub(open);
            f[column] = f[column].sub(extend).max(opened);
            e = e.sub(extend).max(opened);
            left = h;
        }
        *cell = (left, e);
    }
    best
}

/// Takes the best scores of a local kernel; one that reached the highest value may have been more.
#[inline(always)]
pub(super) fn store_local<V: Lanes>(best: V, scores: &mut [Option<i32>]) {
    for (score, &value) in scores.iter_mut().zip(best.to_array().as_ref()) {
        let number: i32 = value.into();
        *score = (value < V::Element::HIGHEST).then(|| number - V::Element::LOWEST.into());
    }
}
