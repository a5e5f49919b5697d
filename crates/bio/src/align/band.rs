//! Bands of diagonals that hold every alignment that may be the best one.
//!
//! The best path within a narrow band has a score that the best path of all reaches as well. A path that touches a diagonal
//! far out has few matches and many gaps, so it cannot reach that score: what is left is a band that is wide enough
//! (Ukkonen 1985, for edit distances). Two passes are therefore enough for the exact score of similar sequences.

use std::ops::Range;

use super::{Pair, Scoring};

/// The diagonals from `low` to `high`: position in the second sequence minus position in the first. Both corners of the
/// matrix are within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Band {
    /// Every diagonal of a pair.
    pub(super) fn whole((a, b): Pair<'_>) -> Self {
        Self { low: -(a.len() as i64), high: b.len() as i64 }
    }

    /// The diagonals between both corners of the matrix, and so many on either side.
    pub(super) fn around(pair: Pair<'_>, margin: usize) -> Self {
        let skew = pair.1.len() as i64 - pair.0.len() as i64;
        let margin = margin as i64;
        Self { low: skew.min(0) - margin, high: skew.max(0) + margin }.within(pair)
    }

    /// What of it the matrix of a pair has.
    fn within(self, pair: Pair<'_>) -> Self {
        let whole = Self::whole(pair);
        Self { low: self.low.max(whole.low), high: self.high.min(whole.high) }
    }

    /// The diagonals of both and those between.
    pub(super) fn union(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Whether it has every diagonal of another.
    pub(super) fn contains(self, other: Self) -> bool {
        self.low <= other.low && self.high >= other.high
    }

    /// How many diagonals there are.
    pub(super) fn width(self) -> i64 {
        self.high - self.low + 1
    }

    /// The rows of a column, both from 0, of a matrix with so many rows. It begins one row lower than that of the column
    /// before, or with the first row.
    #[inline]
    pub(super) fn rows(self, column: usize, rows: usize) -> Range<usize> {
        let first = (column as i64 - self.high).max(0) as usize;
        let end = (column as i64 - self.low + 1).clamp(0, rows as i64) as usize;
        first.min(end)..end
    }

    /// The band that every global alignment with at least this score is in.
    pub(super) fn of_global((a, b): Pair<'_>, scoring: &Scoring, score: i32) -> Self {
        let best = best_column(scoring);
        let reach = |rows: i64, columns: i64| {
            let skew = columns - rows;
            // A path that touches diagonal k needs a gap there and a gap back, and has at most `columns - k` matches.
            let most = |k: i64| {
                best * rows.min(columns - k)
                    - i64::from(scoring.gap(k as usize))
                    - i64::from(scoring.gap((k - skew) as usize))
            };
            last(skew.max(0), columns, |k| most(k) >= i64::from(score))
        };
        let (rows, columns) = (a.len() as i64, b.len() as i64);
        Self { low: -reach(columns, rows), high: reach(rows, columns) }
    }

    /// The band that every local alignment with at least this score is in.
    pub(super) fn of_local(pair: Pair<'_>, scoring: &Scoring, score: i32) -> Self {
        let best = best_column(scoring);
        if best == 0 {
            return Self::around(pair, 0);
        }
        // A path that touches diagonal k has at most the columns of that diagonal.
        let columns = i64::from(score) / best;
        let (rows, length) = (pair.0.len() as i64, pair.1.len() as i64);
        Self { low: (columns - rows).min(0), high: (length - columns).max(0) }
            .union(Self::around(pair, 0))
            .within(pair)
    }

    /// The band that every alignment with at most so many edits is in.
    pub(super) fn of_distance(pair: Pair<'_>, distance: u32) -> Self {
        let skew = pair.1.len() as i64 - pair.0.len() as i64;
        let distance = i64::from(distance);
        Self { low: -(distance - skew).max(0) / 2, high: (distance + skew).max(0) / 2 }
            .union(Self::around(pair, 0))
            .within(pair)
    }
}

/// The most that one base beside another is worth.
pub(super) fn best_column(scoring: &Scoring) -> i64 {
    i64::from(scoring.matching.max(scoring.mismatch).max(0))
}

/// The last number from `first`, which is taken for granted, to `end` that fits; all before it fit as well.
fn last(first: i64, end: i64, fits: impl Fn(i64) -> bool) -> i64 {
    let (mut known, mut end) = (first, end.max(first));
    while known < end {
        let middle = known + (end - known + 1) / 2;
        if fits(middle) {
            known = middle;
        } else {
            end = middle - 1;
        }
    }
    known
}

/// The exact results of pairs, a vector of `lanes` pairs at a time: within a narrow band first, and again within the band
/// that this result asks for, which holds this result's path as well. `run` gives the results of some pairs within a band,
/// in the place of those that are known.
pub(super) fn in_two_passes<T: Copy>(
    pairs: &[Pair<'_>],
    lanes: usize,
    needed: impl Fn(Pair<'_>, T) -> Band,
    run: impl Fn(&[Pair<'_>], Band, &mut [Option<T>]),
) -> Vec<Option<T>> {
    let mut results = vec![None; pairs.len()];
    let mut again: Vec<(Band, usize)> = Vec::new();
    let bands = |pairs: &[Pair<'_>]| pairs.iter().map(|&pair| narrow(pair)).reduce(Band::union);
    for (chunk, first) in pairs.chunks(lanes).zip((0..).step_by(lanes)) {
        let Some(band) = bands(chunk) else { continue };
        let found = &mut results[first..first + chunk.len()];
        run(chunk, band, found);
        for (index, (&pair, result)) in chunk.iter().zip(found.iter()).enumerate() {
            let wide = result.map_or_else(|| Band::whole(pair), |result| needed(pair, result));
            if !band.contains(wide) {
                again.push((wide, first + index));
            }
        }
    }
    // Bands of about one width together; among them pairs next to each other are alike, and so are the ends of their paths.
    again.sort_by_key(|(band, index)| (band.width().max(1).ilog2(), *index));
    for group in again.chunks(lanes) {
        let chosen: Vec<Pair<'_>> = group.iter().map(|&(_, index)| pairs[index]).collect();
        let Some(band) = group.iter().map(|&(band, _)| band).reduce(Band::union) else { continue };
        let mut found: Vec<Option<T>> = group.iter().map(|&(_, index)| results[index]).collect();
        run(&chosen, band, &mut found);
        for (&(_, index), result) in group.iter().zip(found) {
            results[index] = result;
        }
    }
    results
}

/// The band of the first pass: gaps of similar sequences that do not even out stay within it. They wander as the square root
/// of the length.
fn narrow(pair: Pair<'_>) -> Band {
    Band::around(pair, 10 + pair.0.len().min(pair.1.len()).isqrt() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_have_the_rows_of_their_diagonals() {
        let band = Band { low: -2, high: 1 };
        assert_eq!(band.rows(0, 9), 0..3);
        assert_eq!(band.rows(1, 9), 0..4);
        assert_eq!(band.rows(2, 9), 1..5);
        assert_eq!(band.rows(8, 9), 7..9);
        assert!(band.rows(20, 9).is_empty());
    }

    #[test]
    fn equal_sequences_need_one_diagonal_and_unlike_ones_all() {
        let (a, b) = ([1; 100], [2; 100]);
        assert_eq!(Band::of_global((&a, &a), &Scoring::READS, 200), Band { low: 0, high: 0 });
        assert_eq!(Band::of_local((&a, &a), &Scoring::READS, 200), Band { low: 0, high: 0 });
        assert_eq!(Band::of_distance((&a, &a), 0), Band { low: 0, high: 0 });
        assert_eq!(Band::of_global((&a, &b), &Scoring::READS, -402), Band { low: -99, high: 99 });
        assert_eq!(Band::of_local((&a, &b), &Scoring::READS, 0), Band::whole((&a, &b)));
        assert_eq!(Band::of_distance((&a, &b), 100), Band { low: -50, high: 50 });
        // One deletion: the gap there is enough.
        assert_eq!(Band::of_global((&a, &a[1..]), &Scoring::READS, 192), Band { low: -1, high: 0 });
    }
}
