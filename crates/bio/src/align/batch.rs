//! Scores of many pairs, one pair in each lane of a vector.
//!
//! Pairs are sorted by length, so that the pairs of a vector have about the same matrix, and computed in two passes over
//! bands of diagonals.

use super::band::{Band, in_two_passes};
use super::simd::{self, InstructionSet};
use super::{Pair, Scoring, plain};
use crate::parallel::map_chunks;

/// What an alignment must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All of both sequences.
    Global,
    /// The best part of each.
    Local,
}

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
    // Smaller numbers fit into smaller lanes.
    let factor = common_factor(scoring);
    let reduced = divided(scoring, factor);
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|&index| (pairs[index].0.len(), pairs[index].1.len()));
    let lanes = simd::byte_lanes(set);
    // Some chunks for each thread, of whole vectors.
    let vectors = (pairs.len() / (8 * threads.max(1) * lanes)).clamp(1, 8);
    let chunks = map_chunks(&order, vectors * lanes, threads, |chunk| {
        let chosen: Vec<Pair<'_>> = chunk.iter().map(|&index| pairs[index]).collect();
        let scores = match mode {
            Mode::Global => global(set, &chosen, &reduced),
            Mode::Local => local(set, &chosen, &reduced),
        };
        let of = |(score, &(a, b)): (Option<i32>, &Pair<'_>)| match (score, mode) {
            (Some(score), _) => score * factor,
            (None, Mode::Global) => plain::global(a, b, scoring),
            (None, Mode::Local) => plain::local(a, b, scoring),
        };
        scores.into_iter().zip(&chosen).map(of).collect::<Vec<i32>>()
    });
    let mut results = vec![0; pairs.len()];
    for (&index, score) in order.iter().zip(chunks.into_iter().flatten()) {
        results[index] = score;
    }
    results
}

/// The largest number that divides all scores and costs.
fn common_factor(scoring: &Scoring) -> i32 {
    let divisor = |mut a: u8, mut b: u8| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let Scoring { matching, mismatch, gap_open, gap_extend } = *scoring;
    let numbers = [matching.unsigned_abs(), mismatch.unsigned_abs(), gap_open, gap_extend];
    i32::from(numbers.into_iter().fold(0, divisor).max(1))
}

fn divided(scoring: &Scoring, factor: i32) -> Scoring {
    let part = |score: i8| (i32::from(score) / factor) as i8;
    let cost = |cost: u8| (i32::from(cost) / factor) as u8;
    Scoring {
        matching: part(scoring.matching),
        mismatch: part(scoring.mismatch),
        gap_open: cost(scoring.gap_open),
        gap_extend: cost(scoring.gap_extend),
    }
}

/// Global scores, in bytes.
fn global(set: InstructionSet, pairs: &[Pair<'_>], scoring: &Scoring) -> Vec<Option<i32>> {
    let needed = |pair: Pair<'_>, score: i32| Band::of_global(pair, scoring, score);
    in_two_passes(pairs, simd::byte_lanes(set), needed, |pairs, band, scores| {
        simd::global_bytes(set, pairs, scoring, band, scores);
    })
}

/// Local scores: in bytes where no score can saturate, else in 16 bits.
fn local(set: InstructionSet, pairs: &[Pair<'_>], scoring: &Scoring) -> Vec<Option<i32>> {
    let needed = |pair: Pair<'_>, score: i32| Band::of_local(pair, scoring, score);
    let lanes = simd::byte_lanes(set);
    let shortest = pairs.iter().map(|(a, b)| a.len().min(b.len())).max().unwrap_or(0);
    if shortest as i64 * i64::from(scoring.matching) < 255 {
        in_two_passes(pairs, lanes, needed, |pairs, band, scores| {
            simd::local_bytes(set, pairs, scoring, band, scores);
        })
    } else {
        in_two_passes(pairs, lanes / 2, needed, |pairs, band, scores| {
            simd::local_shorts(set, pairs, scoring, band, scores);
        })
    }
}
