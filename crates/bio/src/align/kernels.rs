//! Dynamic programming of a pair in each lane of a vector, within a band of diagonals.
//!
//! A shorter pair is padded with codes that match nothing. Beyond the band a kernel takes scores of paths that exist, so
//! that its result is never more than the best score.

use super::band::Band;
use super::simd::{Element as _, Lanes};
use super::{Pair, Scoring};
use crate::seq::OTHER;

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
fn sequences<V: Lanes>(pairs: &[Pair<'_>]) -> (Vec<V>, Vec<V>) {
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
    for (pairs, scores) in pairs.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let (first, second) = sequences::<V>(pairs);
        let mut column = vec![(zero, zero); first.len()];
        let mut best = zero;
        for (index, &base) in second.iter().enumerate() {
            let rows = band.rows(index, first.len());
            let mut diagonal = rows.start.checked_sub(1).map_or(zero, |above| column[above].0);
            let mut f = zero;
            for (&other, cell) in first[rows.clone()].iter().zip(&mut column[rows]) {
                let (above, e) = *cell;
                let score = V::if_equal(base, other, matching, mismatch);
                let h = diagonal.add(score).max(e).max(f);
                best = best.max(h);
                diagonal = above;
                let opened = h.sub(open);
                f = f.sub(extend).max(opened);
                *cell = (h, e.sub(extend).max(opened));
            }
        }
        store_local::<V>(best, scores);
    }
}

/// Takes the best scores of a local kernel; one that reached the highest value may have been more.
#[inline(always)]
pub(super) fn store_local<V: Lanes>(best: V, scores: &mut [Option<i32>]) {
    for (score, &value) in scores.iter_mut().zip(best.to_array().as_ref()) {
        let number: i32 = value.into();
        *score = (value < V::Element::HIGHEST).then(|| number - V::Element::LOWEST.into());
    }
}

/// The constants of the global kernel, for scores whose differences fit into a lane.
#[derive(Debug, Clone, Copy)]
struct Differences {
    /// What a gap costs before its first base.
    open: i32,
    /// What a gap of one base costs.
    both: i32,
    matching: i32,
    mismatch: i32,
    /// The most that a shifted difference between neighbours can be.
    most: i32,
}

impl Differences {
    fn of(scoring: &Scoring) -> Option<Self> {
        let open = i32::from(scoring.gap_open);
        let both = open + i32::from(scoring.gap_extend);
        let (matching, mismatch) = (i32::from(scoring.matching), i32::from(scoring.mismatch));
        let most = matching.max(mismatch).max(0) + 2 * both;
        // A gap on both sides is never worse than 0 here, so a mismatch below it counts as that.
        let shifted = |score: i32| (score + 2 * both).max(0);
        (most + open <= i32::from(i8::MAX)).then(|| Self {
            open,
            both,
            matching: shifted(matching),
            mismatch: shifted(mismatch),
            most,
        })
    }
}

/// Needleman–Wunsch–Gotoh on differences between neighbouring cells (Suzuki and Kasahara 2018), which fit into a byte
/// whatever the length.
///
/// With H the score of a cell, E and F those ending in a gap, and c the cost of a gap of one base:
/// u = H(i, j) − H(i−1, j) + c, v = H(i, j) − H(i, j−1) + c, x = E(i+1, j) − H(i, j) + c, y = F(i, j+1) − H(i, j) + c.
/// None of these is negative.
#[inline(always)]
pub(super) fn global_kernel<V: Lanes>(
    pairs: &[Pair<'_>],
    scoring: &Scoring,
    band: Band,
    scores: &mut [Option<i32>],
) {
    let Some(differences) = Differences::of(scoring) else { return };
    let constant = |value: i32| V::splat(V::Element::saturated(value));
    let (matching, mismatch) = (constant(differences.matching), constant(differences.mismatch));
    let (open, zero) = (constant(differences.open), constant(0));
    for (pairs, scores) in pairs.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let (first, second) = sequences::<V>(pairs);
        // The column before the first: a gap that goes on. Below the band every row opens a gap of its own.
        let mut column = vec![(zero, zero); first.len()];
        let known = band.rows(0, first.len()).end;
        for cell in column[..known].iter_mut().skip(1) {
            cell.0 = open;
        }
        for (score, pair) in scores.iter_mut().zip(pairs).filter(|(_, pair)| pair.1.is_empty()) {
            *score = Some(-scoring.gap(pair.0.len()));
        }
        // The scores above the first row of the band.
        let mut above = vec![0i32; V::COUNT];
        for (index, &base) in second.iter().enumerate() {
            let rows = band.rows(index, first.len());
            let mut v = zero;
            if let Some(last) = rows.start.checked_sub(1) {
                // The band leaves a row behind; above it a gap opens to the right.
                let step = column[last].0.to_array();
                for (above, &value) in above.iter_mut().zip(step.as_ref()) {
                    let value: i32 = value.into();
                    *above += value - 2 * differences.both;
                }
            } else {
                above.fill(-scoring.gap(index + 1));
                if index > 0 {
                    v = open;
                }
            }
            let mut x = zero;
            for (&other, cell) in first[rows.clone()].iter().zip(&mut column[rows.clone()]) {
                let (u, y) = *cell;
                let score = V::if_equal(base, other, matching, mismatch);
                let b = y.add(u);
                let a = x.add(v);
                let z = score.max(b).max(a);
                let opened = z.sub(open);
                x = a.sub_to_zero(opened);
                *cell = (z.sub(v), b.sub_to_zero(opened));
                v = z.sub(u);
            }
            if pairs.iter().any(|pair| pair.1.len() == index + 1) {
                store_global::<V>(
                    &column[rows.start..],
                    rows.start,
                    &above,
                    pairs,
                    &differences,
                    |lane, sum| {
                        if pairs[lane].1.len() == index + 1 {
                            scores[lane] = Some(sum);
                        }
                    },
                );
            }
        }
    }
}

/// Adds up the differences along a column, from its row `start` to the last row of each pair.
#[inline(always)]
fn store_global<V: Lanes>(
    column: &[(V, V)],
    start: usize,
    above: &[i32],
    pairs: &[Pair<'_>],
    differences: &Differences,
    mut give: impl FnMut(usize, i32),
) {
    let rows_of = |pair: &Pair<'_>| pair.0.len().saturating_sub(start);
    let mut sums = above.to_vec();
    let shortest = pairs.iter().map(rows_of).min().unwrap_or(0).min(column.len());
    // As many rows as surely fit into a lane.
    let block = (i32::from(i8::MAX) / differences.most.max(1)).max(1) as usize;
    for cells in column[..shortest].chunks(block) {
        let total = cells[1..].iter().fold(cells[0].0, |total, &(u, _)| total.add(u)).to_array();
        for (sum, &value) in sums.iter_mut().zip(total.as_ref()) {
            let value: i32 = value.into();
            *sum += value - differences.both * cells.len() as i32;
        }
    }
    for (row, &(u, _)) in column.iter().enumerate().skip(shortest) {
        let values = u.to_array();
        for ((sum, pair), &value) in sums.iter_mut().zip(pairs).zip(values.as_ref()) {
            let value: i32 = value.into();
            *sum += if row < rows_of(pair) { value - differences.both } else { 0 };
        }
    }
    for (lane, sum) in sums.into_iter().take(pairs.len()).enumerate() {
        give(lane, sum);
    }
}
