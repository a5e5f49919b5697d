//! Which cells the best global path can still be in, given a score that it reaches at least.
//!
//! With M the most that a column of an alignment is worth, count what a path has lost in a cell: M(i + j) − 2H. A match
//! loses nothing, a base of a gap M + 2 · `gap_extend`. Over all, a path that reaches the score S loses at most
//! M(n + m) − 2S. What it has left in a cell, its spare, must pay for the bases ahead that can be in no match
//! ([`Common`]). A cell that cannot pay is on no best path.

use std::ops::Range;

use super::band::{Band, best_column};
use super::common::{Common, CommonColumn, GROUP};
use super::simd::Lanes;
use super::{Pair, Scoring};

/// Narrower bands are not worth the search.
const WIDTH: i64 = 512;

/// What each pair of a vector may lose.
#[derive(Debug)]
pub(super) struct Pruning {
    /// The most that a column of an alignment is worth.
    best: i32,
    /// What a base of a gap loses.
    extend: i32,
    /// What a gap loses before its first base.
    open: i32,
    /// What a base without a match loses at least.
    unit: i32,
    /// For each pair, what its path may lose over all.
    most: Vec<i32>,
    /// For each pair, the bases of both sequences.
    rows: Vec<i32>,
    columns: Vec<i32>,
    common: Common,
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
}

impl Pruning {
    /// For pairs that are computed within a band, with the most that a difference between neighbours can be. None if a pair has
    /// no known score, if bases without a match lose nothing, if the differences of a group of rows do not fit into a lane, or
    /// if the band is narrow.
    #[inline(always)]
    pub(super) fn of<V: Lanes>(
        pairs: &[Pair<'_>],
        scoring: &Scoring,
        band: Band,
        largest: i32,
        known: &[Option<i32>],
    ) -> Option<Self> {
        let best = best_column(scoring);
        let (open, extend) = (2 * i64::from(scoring.gap_open), best + 2 * i64::from(scoring.gap_extend));
        // Two bases of a mismatch, one of a gap.
        let unit = extend.min(best - i64::from(scoring.mismatch));
        if unit <= 0 || band.width() < WIDTH || largest * GROUP as i32 > i32::from(i8::MAX) {
            return None;
        }
        let mut most = Vec::with_capacity(pairs.len());
        for ((a, b), score) in pairs.iter().zip(known) {
            let bases = (a.len() + b.len()) as i64;
            // No sum below is more than this.
            i32::try_from(8 * (bases + 256) * (best + extend + open)).ok()?;
            most.push((best * bases - 2 * i64::from((*score)?)) as i32);
        }
        Some(Self {
            best: best as i32,
            extend: extend as i32,
            open: open as i32,
            unit: unit as i32,
            most,
            rows: pairs.iter().map(|pair| pair.0.len() as i32).collect(),
            columns: pairs.iter().map(|pair| pair.1.len() as i32).collect(),
            common: Common::of::<V::Words>(pairs, band),
        })
    }

    /// The rows that the best path of some pair may touch from this column on to the one that is `next` columns further.
    /// None if no path is left.
    ///
    /// Going down loses at most `open + extend` for each row and makes at most `unit` more of what is ahead, so that a cell
    /// within a group is alive only if its last one is, with a slack. The column begins with a group.
    #[inline(always)]
    pub(super) fn reach<V: Lanes>(&self, column: &Column<'_, V>, next: usize) -> Option<Range<usize>> {
        let Column { bases, start, mut cells, shift, .. } = *column;
        let further = bases + next;
        let here = self.common.before(bases)?;
        // Where the sequences have ended, the last row is all that is needed.
        let there = self.common.before(further);
        let mut lanes = LaneStates::new(self, column, here, there, further);
        let last_rows = self.rows.iter().zip(&self.columns);
        let ending = last_rows.filter(|(_, columns)| (bases as i32 + 1..=further as i32).contains(columns));
        let mut end = ending.map(|(&rows, _)| rows as usize).max().unwrap_or(0);
        let mut first = None;
        let height = self.rows.iter().copied().max().unwrap_or(0) as usize;
        let mut row = start;
        while row < height {
            let rows = row..(row + GROUP).min(height);
            row = rows.end;
            let (chunk, rest) = cells.split_at(rows.len().min(cells.len()));
            cells = rest;
            let step = Step { pruning: self, rows: rows.len() as i32, gained: self.extend * next as i32 };
            let group = rows.start / GROUP;
            let ahead = there.unwrap_or(here).group(group);
            let reached = if let Some((top, others)) = chunk.split_first() {
                let total = others.iter().fold(top.0, |total, &(u, _)| total.wrapping_add(u)).to_array();
                let lost = (2 * shift + self.best) * rows.len() as i32;
                let (alive, reached) = lanes.cells(&step, total.as_ref(), lost, here.group(group), ahead);
                if alive && first.is_none() {
                    first = Some(rows.start);
                }
                reached
            } else {
                lanes.below(&step, ahead)
            };
            if reached && there.is_some() {
                end = end.max(row);
            } else if cells.is_empty() {
                // Further down, what is ahead becomes less by no more than what is lost.
                break;
            }
        }
        first.map(|first| first..end.max(first))
    }

    /// For each pair, what is certain to be lost after so many rows in a column that is not before the kept one.
    #[inline(always)]
    fn losses(&self, kept: CommonColumn<'_>, column: usize, row: usize) -> Vec<i32> {
        let past = (row + column) as i32;
        let mut losses = kept.lengths_after(row / GROUP);
        for ((loss, rows), columns) in losses.iter_mut().zip(&self.rows).zip(&self.columns) {
            *loss = self.unit * (rows + columns - past - 2 * *loss);
        }
        losses
    }
}

/// Where a search down a column is, for each pair.
struct LaneStates {
    /// What is left to lose in the last row, with the slack of a group.
    spare: Vec<i32>,
    /// What is left to a path that goes down from one of the rows so far, if it need not go to the right.
    falling: Vec<i32>,
    /// What is certain to be lost from the last row on, in this column and in the further one.
    here: Vec<i32>,
    there: Vec<i32>,
}

/// A step down by some rows.
struct Step<'a> {
    pruning: &'a Pruning,
    rows: i32,
    /// What paths need not lose because the further column is to the right.
    gained: i32,
}

/// For each pair a word, and how far down to shift it for the rows of a group that are in a longest common subsequence.
type Counts<'a> = (&'a [u64], u32);

impl LaneStates {
    #[inline(always)]
    fn new<V: Lanes>(
        pruning: &Pruning,
        column: &Column<'_, V>,
        here: CommonColumn<'_>,
        there: Option<CommonColumn<'_>>,
        further: usize,
    ) -> Self {
        let &Column { bases, start, above, .. } = column;
        let slack = GROUP as i32 * (pruning.extend + pruning.unit) + pruning.open;
        let past = pruning.best * (start + bases) as i32;
        let mut spare = pruning.most.clone();
        for ((spare, above), &columns) in spare.iter_mut().zip(above).zip(&pruning.columns) {
            let left = *spare - past + 2 * above + slack;
            *spare = if columns <= bases as i32 { i32::MIN / 2 } else { left };
        }
        Self {
            falling: vec![i32::MIN / 2; spare.len()],
            spare,
            here: pruning.losses(here, bases, start),
            there: pruning.losses(there.unwrap_or(here), further, start),
        }
    }

    /// Goes down over rows that have been computed: `total` are the sums of their differences. Whether a path may be there, and
    /// whether one may be there in the further column.
    #[inline(always)]
    fn cells<E: Copy + Into<i32>>(
        &mut self,
        step: &Step<'_>,
        total: &[E],
        lost: i32,
        (here, shift): Counts<'_>,
        (there, shift_there): Counts<'_>,
    ) -> (bool, bool) {
        let &Step { pruning: &Pruning { unit, extend, .. }, rows, gained } = step;
        let (mut alive, mut reached) = (false, false);
        let lanes = self.spare.iter_mut().zip(&mut self.falling).zip(&mut self.here).zip(&mut self.there);
        for ((((spare, falling), loss), loss_there), ((&total, here), there)) in
            lanes.zip(total.iter().zip(here).zip(there))
        {
            let total: i32 = total.into();
            *spare += 2 * total - lost;
            *falling = (*falling - extend * rows).max(*spare);
            *loss += unit * (2 * (here >> shift & 15) as i32 - rows);
            *loss_there += unit * (2 * (there >> shift_there & 15) as i32 - rows);
            alive |= *spare >= *loss;
            reached |= *falling + gained >= *loss_there;
        }
        (alive, reached)
    }

    /// Goes down over rows that have not been computed: whether a path may be there in the further column.
    #[inline(always)]
    fn below(&mut self, step: &Step<'_>, (there, shift): Counts<'_>) -> bool {
        let &Step { pruning: &Pruning { unit, extend, .. }, rows, gained } = step;
        let mut reached = false;
        for ((falling, loss), there) in self.falling.iter_mut().zip(&mut self.there).zip(there) {
            *falling -= extend * rows;
            *loss += unit * (2 * (there >> shift & 15) as i32 - rows);
            reached |= *falling + gained >= *loss;
        }
        reached
    }
}
