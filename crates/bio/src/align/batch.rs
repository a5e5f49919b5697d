//! Scores of many pairs, one pair in each lane of a vector.
//!
//! Pairs are sorted by length, so that the pairs of a vector have about the same matrix. A shorter one is padded with codes
//! that match nothing.

use super::simd::{self, Element as _, InstructionSet, Lanes};
use super::{Pair, Scoring, plain};
use crate::parallel::map_chunks;
use crate::seq::OTHER;

/// What an alignment must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All of both sequences.
    Global,
    /// The best part of each.
    Local,
}

/// Pads the first sequences of pairs.
const PAD: i8 = 6;
/// The code for a letter of the first sequence that is not a base.
const OTHER_FIRST: i8 = 5;
/// Pads the second sequences of pairs; differs from every code of a first one.
const PAD_SECOND: i8 = 7;

/// The best score of each pair, exactly as [`plain`] has it.
#[must_use]
pub fn scores(pairs: &[Pair<'_>], mode: Mode, scoring: &Scoring, threads: usize) -> Vec<i32> {
    scores_with(InstructionSet::detect(), pairs, mode, scoring, threads)
}

pub(super) fn scores_with(
    set: InstructionSet,
    pairs: &[Pair<'_>],
    mode: Mode,
    scoring: &Scoring,
    threads: usize,
) -> Vec<i32> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|&index| (pairs[index].0.len(), pairs[index].1.len()));
    let lanes = simd::byte_lanes(set);
    let chunks = map_chunks(&order, 4 * lanes, threads, |chunk| {
        let chosen: Vec<Pair<'_>> = chunk.iter().map(|&index| pairs[index]).collect();
        let mut scores = vec![None; chosen.len()];
        match mode {
            Mode::Global => simd::global_bytes(set, &chosen, scoring, &mut scores),
            Mode::Local => local(set, &chosen, scoring, &mut scores),
        }
        let of = |(score, &(a, b)): (Option<i32>, &Pair<'_>)| {
            score.unwrap_or_else(|| match mode {
                Mode::Global => plain::global(a, b, scoring),
                Mode::Local => plain::local(a, b, scoring),
            })
        };
        scores.into_iter().zip(&chosen).map(of).collect::<Vec<i32>>()
    });
    let mut results = vec![0; pairs.len()];
    for (&index, score) in order.iter().zip(chunks.into_iter().flatten()) {
        results[index] = score;
    }
    results
}

/// Local scores: in bytes where no score can saturate, else in 16 bits.
fn local(set: InstructionSet, pairs: &[Pair<'_>], scoring: &Scoring, scores: &mut [Option<i32>]) {
    let shortest = pairs.iter().map(|(a, b)| a.len().min(b.len())).max().unwrap_or(0);
    if shortest as i64 * i64::from(scoring.matching) < 255 {
        simd::local_bytes(set, pairs, scoring, scores);
    } else {
        simd::local_shorts(set, pairs, scoring, scores);
    }
}

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

/// Smith–Waterman–Gotoh. A score of 0 is the lowest value of a lane, so that saturation keeps scores from falling below 0.
#[inline(always)]
pub(super) fn local_kernel<V: Lanes>(pairs: &[Pair<'_>], scoring: &Scoring, scores: &mut [Option<i32>]) {
    let constant = |value: i32| V::splat(V::Element::saturated(value));
    let (matching, mismatch) = (constant(i32::from(scoring.matching)), constant(i32::from(scoring.mismatch)));
    let open = constant(i32::from(scoring.gap_open) + i32::from(scoring.gap_extend));
    let extend = constant(i32::from(scoring.gap_extend));
    let zero = V::splat(V::Element::LOWEST);
    for (pairs, scores) in pairs.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let first: Vec<V> = transposed(&pairs.iter().map(|pair| pair.0), OTHER_FIRST, PAD);
        let second: Vec<V> = transposed(&pairs.iter().map(|pair| pair.1), OTHER as i8, PAD_SECOND);
        let mut column = vec![(zero, zero); first.len()];
        let mut best = zero;
        for &base in &second {
            let (mut diagonal, mut f) = (zero, zero);
            for (&other, cell) in first.iter().zip(&mut column) {
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
fn store_local<V: Lanes>(best: V, scores: &mut [Option<i32>]) {
    for (score, &value) in scores.iter_mut().zip(best.to_array().as_ref()) {
        let number: i32 = value.into();
        *score = (value < V::Element::HIGHEST).then(|| number - V::Element::LOWEST.into());
    }
}

/// Needleman–Wunsch–Gotoh on differences between neighbouring cells (Suzuki and Kasahara 2018), which fit into a byte
/// whatever the length.
///
/// With H the score of a cell and E, F those ending in a gap: u = H(i, j) − H(i−1, j), v = H(i, j) − H(i, j−1),
/// x = E(i+1, j) − H(i, j), y = F(i, j+1) − H(i, j).
#[inline(always)]
pub(super) fn global_kernel<V: Lanes>(pairs: &[Pair<'_>], scoring: &Scoring, scores: &mut [Option<i32>]) {
    let (gap_open, gap_extend) = (i32::from(scoring.gap_open), i32::from(scoring.gap_extend));
    // The sums x + v and the differences below stay within a byte only for scores such as people use.
    let highest = i32::from(scoring.matching).max(0);
    let lowest = -i32::from(scoring.mismatch).min(0);
    if highest + 2 * (gap_open + gap_extend) > 120 || lowest + gap_open + gap_extend > 120 {
        return;
    }
    let constant = |value: i32| V::splat(V::Element::saturated(value));
    let (matching, mismatch) = (constant(i32::from(scoring.matching)), constant(i32::from(scoring.mismatch)));
    let (open, zero) = (constant(gap_open), constant(0));
    let both = constant(gap_open + gap_extend);
    for (pairs, scores) in pairs.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let first: Vec<V> = transposed(&pairs.iter().map(|pair| pair.0), OTHER_FIRST, PAD);
        let second: Vec<V> = transposed(&pairs.iter().map(|pair| pair.1), OTHER as i8, PAD_SECOND);
        let extended = constant(-gap_extend);
        let opened = constant(-gap_open - gap_extend);
        let mut column = vec![(extended, opened); first.len()];
        if let Some(cell) = column.first_mut() {
            cell.0 = opened;
        }
        store_global::<V>(&column, 0, pairs, scoring, scores);
        for (index, &base) in second.iter().enumerate() {
            let mut v = if index == 0 { opened } else { extended };
            let mut x = opened;
            for (&other, cell) in first.iter().zip(&mut column) {
                let (u, y) = *cell;
                let score = V::if_equal(base, other, matching, mismatch);
                let a = x.add(v);
                let b = y.add(u);
                let z = score.max(a).max(b);
                let new_u = z.sub(v);
                v = z.sub(u);
                let base = z.sub(open);
                x = a.sub(base).max(zero).sub(both);
                *cell = (new_u, b.sub(base).max(zero).sub(both));
            }
            store_global::<V>(&column, index + 1, pairs, scoring, scores);
        }
    }
}

/// Adds up the differences along the last column of the pairs whose second sequence ends here.
#[inline(always)]
fn store_global<V: Lanes>(
    column: &[(V, V)],
    length: usize,
    pairs: &[Pair<'_>],
    scoring: &Scoring,
    scores: &mut [Option<i32>],
) {
    if !pairs.iter().any(|pair| pair.1.len() == length) {
        return;
    }
    let mut sums = vec![-scoring.gap(length); pairs.len()];
    for (row, &(u, _)) in column.iter().enumerate() {
        let values = u.to_array();
        for ((sum, pair), &value) in sums.iter_mut().zip(pairs).zip(values.as_ref()) {
            let value: i32 = value.into();
            *sum += if row < pair.0.len() { value } else { 0 };
        }
    }
    for ((score, pair), sum) in scores.iter_mut().zip(pairs).zip(sums) {
        if pair.1.len() == length {
            *score = Some(sum);
        }
    }
}

/// A protein query with its scores against every residue.
pub(crate) struct Profile<'a> {
    /// For each position of the query, the scores of the 32 codes; the last one pads targets and must be negative.
    pub(crate) rows: &'a [[i8; 32]],
    /// What a gap costs before its first residue.
    pub(crate) gap_open: u8,
    /// What each residue of a gap costs.
    pub(crate) gap_extend: u8,
}

/// The best local score of the query against each target: in bytes, and again in 16 bits where bytes saturated. A score
/// beyond 16 bits is given as the highest that fits.
pub(crate) fn local_against_profile(query: &Profile<'_>, targets: &[&[u8]]) -> Vec<i32> {
    let set = InstructionSet::detect();
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|&index| targets[index].len());
    let sorted: Vec<&[u8]> = order.iter().map(|&index| targets[index]).collect();
    let mut scores = vec![None; targets.len()];
    simd::profile_bytes(set, query, &sorted, &mut scores);
    let again: Vec<usize> = (0..sorted.len()).filter(|&index| scores[index].is_none()).collect();
    let longer: Vec<&[u8]> = again.iter().map(|&index| sorted[index]).collect();
    let mut rescored = vec![None; again.len()];
    simd::profile_shorts(set, query, &longer, &mut rescored);
    for (index, score) in again.into_iter().zip(rescored) {
        scores[index] = Some(score.unwrap_or(i32::from(u16::MAX)));
    }
    let mut results = vec![0; targets.len()];
    for (index, score) in order.into_iter().zip(scores) {
        results[index] = score.unwrap_or(0);
    }
    results
}

/// The code that pads targets of a profile; its scores are all low.
const PAD_TARGET: u8 = 31;

/// Smith–Waterman–Gotoh of one query against a target in each lane.
#[inline(always)]
pub(super) fn profile_kernel<V: Lanes>(query: &Profile<'_>, targets: &[&[u8]], scores: &mut [Option<i32>]) {
    let constant = |value: i32| V::splat(V::Element::saturated(value));
    let open = constant(i32::from(query.gap_open) + i32::from(query.gap_extend));
    let extend = constant(i32::from(query.gap_extend));
    let zero = V::splat(V::Element::LOWEST);
    let tables: Vec<V::Table> = query.rows.iter().map(|row| V::table(row)).collect();
    for (targets, scores) in targets.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let length = targets.iter().map(|target| target.len()).max().unwrap_or(0);
        let mut column = vec![(zero, zero); tables.len()];
        let mut best = zero;
        for position in 0..length {
            let mut codes = V::zeros();
            for (code, target) in codes.as_mut().iter_mut().zip(targets) {
                let residue = target.get(position).copied().unwrap_or(PAD_TARGET) & 31;
                *code = V::Element::saturated(i32::from(residue));
            }
            let codes = V::from_array(codes);
            let (mut diagonal, mut f) = (zero, zero);
            for (&table, cell) in tables.iter().zip(&mut column) {
                let (above, e) = *cell;
                let h = diagonal.add(V::lookup(table, codes)).max(e).max(f);
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
