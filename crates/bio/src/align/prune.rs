//! Which cells the best global path can still be in, given a score that it reaches at least.
//!
//! With M the most that a column of an alignment is worth, count what a path has lost in a cell: M(i + j) − 2H. A match
//! loses nothing, a base of a gap M + 2 · `gap_extend`. Over all, a path that reaches the score S loses at most
//! M(n + m) − 2S. What it has left in a cell, its spare, must pay for the bases ahead that can be in no match
//! ([`Common`]). A cell that cannot pay is on no best path.

use std::ops::Range;

use super::band::{Band, best_column};
use super::common::{Common, CommonColumn};
use super::simd::Lanes;
use super::{Pair, Scoring};

/// Narrower bands are not worth the search.
const WIDTH: i64 = 512;
/// Rows of which only the last is looked at.
const STRIDE: usize = 4;

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
    /// The most that a difference can be.
    pub(super) largest: i32,
}

impl Pruning {
    /// For pairs that are computed within a band. None if a pair has no known score, if bases without a match lose nothing, or
    /// if the band is narrow.
    #[inline(always)]
    pub(super) fn of<V: Lanes>(
        pairs: &[Pair<'_>],
        scoring: &Scoring,
        band: Band,
        known: &[Option<i32>],
    ) -> Option<Self> {
        let best = best_column(scoring);
        let (open, extend) = (2 * i64::from(scoring.gap_open), best + 2 * i64::from(scoring.gap_extend));
        // Two bases of a mismatch, one of a gap.
        let unit = extend.min(best - i64::from(scoring.mismatch));
        if unit <= 0 || band.width() < WIDTH {
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
    /// between two that are looked at is alive only if the lower one is, with a slack.
    #[inline(always)]
    pub(super) fn reach<V: Lanes>(&self, column: &Column<'_, V>, next: usize) -> Option<Range<usize>> {
        let Column { bases, start, above, cells, shift, largest } = *column;
        let fits = (i32::from(i8::MAX) / largest.max(1)).max(1) as usize;
        let stride = [STRIDE, 2].into_iter().find(|&stride| stride <= fits).unwrap_or(1);
        let slack = stride as i32 * (self.extend + self.unit) + self.open;
        let begin =
            |(&most, &above): (&i32, &i32)| most - self.best * (start + bases) as i32 + 2 * above + slack;
        let mut spare: Vec<i32> = self.most.iter().zip(above).map(begin).collect();
        // The spare of a path that goes down from one of the cells so far, if it need not go to the right.
        let mut falling = vec![i32::MIN / 2; spare.len()];
        let further = bases + next;
        let mut here = Ahead::new(self, self.common.before(bases)?, bases, start);
        // Where the sequences have ended, the last row is all that is needed.
        let mut there = self.common.before(further).map(|kept| Ahead::new(self, kept, further, start));
        let gained = self.extend * next as i32;
        let (mut first, mut end) = (None, 0);
        for ((&rows, &columns), lane) in self.rows.iter().zip(&self.columns).zip(0..) {
            if (bases as i32) < columns && columns <= further as i32 {
                end = end.max(rows as usize);
            } else if columns <= bases as i32 {
                spare[lane] = i32::MIN / 2;
            }
        }
        let step = 2 * shift + self.best;
        let (mut row, mut cells) = (start, cells);
        let height = self.rows.iter().copied().max().unwrap_or(0) as usize;
        while row < height {
            let left = if cells.is_empty() { height - row } else { cells.len() };
            let count = (stride - row % stride).min(left);
            let rows = row..row + count;
            row = rows.end;
            if !cells.is_empty() {
                let (chunk, rest) = cells.split_at(count);
                cells = rest;
                let total =
                    chunk[1..].iter().fold(chunk[0].0, |total, &(u, _)| total.wrapping_add(u)).to_array();
                let steps = step * count as i32;
                let mut alive = false;
                let ahead = here.after(&rows);
                let lanes = spare.iter_mut().zip(&mut falling).zip(ahead).zip(total.as_ref());
                for (((spare, falling), &ahead), &total) in lanes {
                    let total: i32 = total.into();
                    *spare += 2 * total - steps;
                    *falling = (*falling - self.extend * count as i32).max(*spare);
                    alive |= *spare >= ahead;
                }
                if alive && first.is_none() {
                    first = Some(rows.start);
                }
            } else {
                falling.iter_mut().for_each(|falling| *falling -= self.extend * count as i32);
            }
            let Some(there) = &mut there else { continue };
            let mut alive = false;
            for (&falling, &ahead) in falling.iter().zip(there.after(&rows)) {
                alive |= falling + gained >= ahead;
            }
            if alive {
                end = end.max(row);
            } else if cells.is_empty() {
                // Further down, what is ahead becomes less by no more than what is lost.
                break;
            }
        }
        first.map(|first| first..end.max(first))
    }
}

/// What is certain to be lost from the cells of a column on, row by row.
struct Ahead<'a> {
    kept: CommonColumn<'a>,
    unit: i32,
    losses: Vec<i32>,
}

impl<'a> Ahead<'a> {
    /// From so many rows on, in a column that is not before the kept one.
    fn new(pruning: &'a Pruning, kept: CommonColumn<'a>, column: usize, row: usize) -> Self {
        let lengths = kept.lengths_after(row);
        let past = (row + column) as i32;
        let rests = pruning.rows.iter().zip(&pruning.columns).map(|(rows, columns)| rows + columns - past);
        let losses = rests.zip(lengths).map(|(rest, length)| pruning.unit * (rest - 2 * length)).collect();
        Self { kept, unit: pruning.unit, losses }
    }

    /// For each pair, what is lost after these rows.
    #[inline(always)]
    fn after(&mut self, rows: &Range<usize>) -> &[i32] {
        let (words, shift, mask) = self.kept.rows(rows.clone());
        let count = rows.len() as i32;
        for (loss, word) in self.losses.iter_mut().zip(words) {
            *loss += self.unit * (2 * (word >> shift & mask).count_ones() as i32 - count);
        }
        &self.losses
    }
}
