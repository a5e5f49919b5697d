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
    let padding = V::splat(V::Element::saturated(i32::from(pad)));
    let mut columns: Vec<V> = vec![padding; length];
    // Sixteen positions at a time, so that the arrays stay in the first cache.
    for (block, chunk) in columns.chunks_mut(16).enumerate() {
        let mut arrays: [V::Array; 16] = std::array::from_fn(|_| padding.to_array());
        for (lane, sequence) in sequences.clone().enumerate() {
            let part = sequence.get(block * 16..).unwrap_or(&[]);
            for (array, &code) in arrays.iter_mut().zip(part) {
                let code = if code < OTHER { code as i8 } else { other };
                array.as_mut()[lane] = V::Element::saturated(i32::from(code));
            }
        }
        for (column, array) in chunk.iter_mut().zip(arrays) {
            *column = V::from_array(array);
        }
    }
    columns
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
