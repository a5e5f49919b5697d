//! Which diagonals the best global path can still reach, given a score that it reaches at least.
//!
//! With M the most that a column of an alignment is worth, count what a path has lost in a cell: M(i + j) − 2H. A match
//! loses nothing, a base of a gap M + 2 · `gap_extend`. Over all, a path that reaches the score S loses at most
//! M(n + m) − 2S. What it has left in a cell, its spare, must pay for what is certain to come: the way back to the diagonal
//! of the last corner, and the seeds ahead that have no match ([`Losses`]). A cell that cannot pay is on no best path.

use super::band::{Band, best_column};
use super::losses::Losses;
use super::simd::Lanes;
use super::{Pair, Scoring};

/// What each pair of a vector may lose.
#[derive(Debug)]
pub(super) struct Pruning {
    /// The most that a column of an alignment is worth.
    best: i32,
    /// What a base of a gap loses.
    extend: i32,
    /// What a gap loses before its first base.
    open: i32,
    /// For each pair, what its path may lose over all.
    most: Vec<i32>,
    /// For each pair, the diagonal of its last corner.
    skew: Vec<i32>,
    /// What is certain to be lost ahead.
    losses: Losses,
}

/// A column of some matrices, as differences between its cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column<'a, V> {
    /// Bases of the second sequences up to it.
    pub(super) bases: usize,
    /// Rows above its first cell.
    pub(super) start: usize,
    /// The scores above its first cell.
    pub(super) above: &'a [i32],
    /// The cells; first of each the difference to the score above.
    pub(super) cells: &'a [(V, V)],
    /// What differences are more than those of scores.
    pub(super) shift: i32,
    /// The most that a difference can be.
    pub(super) largest: i32,
}

/// Rows of which only the last is looked at.
const STRIDE: usize = 4;

impl Pruning {
    /// For pairs that are computed within a band. None if a pair has no known score, or if gaps lose nothing.
    pub(super) fn of(
        pairs: &[Pair<'_>],
        scoring: &Scoring,
        band: Band,
        known: &[Option<i32>],
    ) -> Option<Self> {
        let best = best_column(scoring);
        let (open, extend) = (2 * i64::from(scoring.gap_open), best + 2 * i64::from(scoring.gap_extend));
        let mut most = Vec::with_capacity(pairs.len());
        let mut skew = Vec::with_capacity(pairs.len());
        for ((a, b), score) in pairs.iter().zip(known) {
            let (rows, columns) = (a.len() as i64, b.len() as i64);
            // No sum below is more than this.
            i32::try_from(8 * (rows + columns + 256) * (best + extend + open)).ok()?;
            most.push((best * (rows + columns) - 2 * i64::from((*score)?)) as i32);
            skew.push((columns - rows) as i32);
        }
        if extend == 0 {
            return None;
        }
        // A gap in one sequence breaks a seed of the other, and pays for that by opening; a gap of g bases breaks at most g
        // seeds, and leads away from where it must come back to.
        let mismatch = 2 * (best - i64::from(scoring.mismatch));
        let weight = mismatch.min(open).min(2 * extend).max(0);
        let losses = Losses::of(pairs, band, weight as i32);
        Some(Self { best: best as i32, extend: extend as i32, open: open as i32, most, skew, losses })
    }

    /// The diagonals that the best path of some pair may touch within the next columns. None if no path is left.
    #[inline(always)]
    pub(super) fn reach<V: Lanes>(&self, column: &Column<'_, V>, next: usize) -> Option<Band> {
        let Column { bases, start, above, cells, shift, largest } = *column;
        let stride = STRIDE.min((i32::from(i8::MAX) / largest.max(1)).max(1) as usize);
        // What a path gains at most from a cell to one above it is added, for the cells between those that are looked at;
        // and what a gap has paid for that is on its way.
        let step = 2 * shift + self.best;
        let slack = stride as i32 * (step + self.extend) + self.open;
        let begin =
            |(&most, &above): (&i32, &i32)| most - self.best * (start + bases) as i32 + 2 * above + slack;
        let mut spare: Vec<i32> = self.most.iter().zip(above).map(begin).collect();
        let home: Vec<i32> = self.skew.iter().map(|&skew| self.extend * skew).collect();
        let (mut left, mut right) = (vec![-1; spare.len()], vec![-1; spare.len()]);
        let ahead = self.losses.after_columns(bases);
        let mut row = start;
        for cells in cells.chunks(stride) {
            let total = cells[1..].iter().fold(cells[0].0, |total, &(u, _)| total.wrapping_add(u)).to_array();
            row += cells.len();
            let place = self.extend * (bases as i32 - row as i32);
            let steps = step * cells.len() as i32;
            let certain = self.losses.after_rows(row).iter().zip(ahead);
            let sides = left.iter_mut().zip(&mut right);
            for ((((spare, &home), (left, right)), (&below, &beyond)), &total) in
                spare.iter_mut().zip(&home).zip(sides).zip(certain).zip(total.as_ref())
            {
                let total: i32 = total.into();
                *spare += 2 * total - steps;
                let back = place - home;
                let (rightwards, downwards) = (*spare - beyond - back, *spare - below + back);
                let lives = rightwards.min(downwards) >= 0;
                *right = (*right).max(if lives { rightwards + 2 * back } else { -1 });
                *left = (*left).max(if lives { downwards - 2 * back } else { -1 });
            }
        }
        // On the way, a path leaves seeds behind, which the spare need not pay for any more: those of `next` columns, and
        // of as many rows as well as those that it goes down.
        let (length, weight) = (self.losses.length() as i64, i64::from(self.losses.weight()));
        let passed = weight * ((next as i64 + length - 1) / length + 1);
        let back = 2 * i64::from(self.extend);
        let reached = |((&left, &right), &skew): ((&i32, &i32), &i32)| {
            let (left, right, skew) = (i64::from(left) + passed, i64::from(right) + passed, i64::from(skew));
            Band { low: skew - left * length / (back * length - weight), high: skew + right / back }
        };
        let lives = |&((&left, &right), _): &((&i32, &i32), &i32)| left >= 0 || right >= 0;
        left.iter().zip(&right).zip(&self.skew).filter(lives).map(reached).reduce(Band::union)
    }
}
