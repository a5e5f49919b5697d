//! Global alignment of a pair in each lane of a vector, within a band of diagonals that narrows as it goes on.

use super::band::Band;
use super::common::{GROUP, INTERVAL};
use super::kernels::{BLOCK, sequences};
use super::prune::{Column, Pruning};
use super::simd::{Element as _, Lanes};
use super::{Pair, Scoring};

/// The constants of the kernel, for scores whose differences fit into a lane.
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
        let shifted = |score: i32| score + 2 * both;
        // Then no cell is less than `open`, which a difference of two unsigned lanes needs.
        let fits = shifted(matching.min(mismatch)) >= open && most + open <= i32::from(i8::MAX);
        fits.then(|| Self { open, both, matching: shifted(matching), mismatch: shifted(mismatch), most })
    }
}

/// [`Differences`] in all lanes.
#[derive(Debug, Clone, Copy)]
struct Constants<V> {
    open: V,
    matching: V,
    mismatch: V,
    zero: V,
}

/// Needleman–Wunsch–Gotoh on differences between neighbouring cells (Suzuki and Kasahara 2018), which fit into a byte
/// whatever the length.
///
/// With H the score of a cell, E and F those ending in a gap, and c the cost of a gap of one base:
/// u = H(i, j) − H(i−1, j) + c, v = H(i, j) − H(i, j−1) + c, x = E(i+1, j) − H(i, j) + c, y = F(i, j+1) − H(i, j) + c.
/// None of these is negative.
///
/// A score that is there at the start is one that the pair reaches. If every pair has one, the band is narrowed by them.
#[inline(always)]
pub(super) fn global_kernel<V: Lanes>(
    pairs: &[Pair<'_>],
    scoring: &Scoring,
    band: Band,
    scores: &mut [Option<i32>],
) {
    let Some(differences) = Differences::of(scoring) else { return };
    for (pairs, scores) in pairs.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let pruning = Pruning::of::<V>(pairs, scoring, band, differences.most, scores);
        let (first, second) = sequences::<V>(pairs);
        for (score, pair) in scores.iter_mut().zip(pairs).filter(|(_, pair)| pair.1.is_empty()) {
            *score = Some(-scoring.gap(pair.0.len()));
        }
        let mut ends: Vec<usize> = pairs.iter().map(|pair| pair.1.len()).filter(|&end| end > 0).collect();
        ends.sort_unstable();
        ends.dedup();
        let group = if pruning.is_some() { GROUP } else { 1 };
        let mut matrix = Matrix::<V>::new(&first, scoring, &differences, band, group);
        let mut look = 0;
        let mut index = 0;
        for end in ends {
            while index < end {
                if let Some(pruning) = pruning.as_ref().filter(|_| index >= look) {
                    matrix.narrow(pruning, index);
                    look = (index / INTERVAL + 1) * INTERVAL;
                }
                if let Some(bases) = second[..end].get(index..index + BLOCK) {
                    matrix.advance::<BLOCK>(index, std::array::from_fn(|column| bases[column]));
                    index += BLOCK;
                } else {
                    matrix.advance::<1>(index, [second[index]]);
                    index += 1;
                }
            }
            matrix.scores(pairs, |lane, score| {
                if pairs[lane].1.len() == end {
                    scores[lane] = Some(score);
                }
            });
        }
    }
}

/// A column of the matrices of some pairs.
struct Matrix<'a, V> {
    /// The first sequences, a base of each in a vector.
    first: &'a [V],
    /// u and y of each row. Where no row has been computed both are 0: every row opens a gap of its own.
    cells: Vec<(V, V)>,
    /// The rows of the band.
    rows: std::ops::Range<usize>,
    /// The scores above the first row of the band.
    above: Vec<i32>,
    /// The band that holds every best path.
    band: Band,
    /// What rows of it the next columns need.
    window: std::ops::Range<usize>,
    /// Rows begin at a multiple of this, and end at one or with the last row.
    group: usize,
    scoring: &'a Scoring,
    differences: &'a Differences,
    constants: Constants<V>,
}

impl<'a, V: Lanes> Matrix<'a, V> {
    /// The column before the first: a gap that goes on.
    #[inline(always)]
    fn new(
        first: &'a [V],
        scoring: &'a Scoring,
        differences: &'a Differences,
        band: Band,
        group: usize,
    ) -> Self {
        let constant = |value: i32| V::splat(V::Element::saturated(value));
        let constants = Constants {
            open: constant(differences.open),
            matching: constant(differences.matching),
            mismatch: constant(differences.mismatch),
            zero: constant(0),
        };
        let mut cells = vec![(constants.zero, constants.zero); first.len()];
        let end = band.rows(0, first.len()).end.next_multiple_of(group).min(first.len());
        for cell in cells[..end].iter_mut().skip(1) {
            cell.0 = constants.open;
        }
        let (above, window) = (vec![0; V::COUNT], 0..first.len());
        Self { first, cells, rows: 0..end, above, band, window, group, scoring, differences, constants }
    }

    /// Computes the next N columns, from `index` on, on the rows that the band has in any of them.
    #[inline(always)]
    fn advance<const N: usize>(&mut self, index: usize, bases: [V; N]) {
        let height = self.first.len();
        let start = self.band.rows(index, height).start.max(self.window.start).max(self.rows.start);
        let start = start - start % self.group;
        let end = self.band.rows(index + N - 1, height).end.min(self.window.end).max(start);
        let end = end.next_multiple_of(self.group).min(height);
        self.reach_down_to(end);
        let mut v = [self.constants.open; N];
        if start == 0 {
            // The first row of the matrix: a gap that goes on.
            self.above.fill(-self.scoring.gap(index + N));
            if index == 0 {
                v[0] = self.constants.zero;
            }
        } else {
            // Above the rows that are left behind a gap goes on; it opens where rows are left.
            let mut lost = i32::from(self.scoring.gap_extend) * N as i32;
            if start > self.rows.start {
                self.leave(start);
                v[0] = self.constants.zero;
                lost += self.differences.open;
            }
            self.above.iter_mut().for_each(|above| *above -= lost);
        }
        self.rows = start..end;
        columns(&self.constants, bases, v, &self.first[start..end], &mut self.cells[start..end]);
    }

    /// Begins or ends rows at the bottom: below the rows so far is a gap that goes on down the column.
    #[inline(always)]
    fn reach_down_to(&mut self, end: usize) {
        let Constants { zero, open, .. } = self.constants;
        if end < self.rows.end {
            self.cells[end..self.rows.end].fill((zero, zero));
        } else if let Some((first, rest)) = self.cells[self.rows.end..end].split_first_mut() {
            *first = (zero, zero);
            rest.fill((open, zero));
        }
    }

    /// Adds the rows above `start` to the scores above the band.
    #[inline(always)]
    fn leave(&mut self, start: usize) {
        for (u, _) in &self.cells[self.rows.start..start] {
            for (above, &value) in self.above.iter_mut().zip(u.to_array().as_ref()) {
                let value: i32 = value.into();
                *above += value - self.differences.both;
            }
        }
        self.rows.start = start;
    }

    /// Leaves the rows that the best path of no pair touches within the next columns.
    #[inline(always)]
    fn narrow(&mut self, pruning: &Pruning, index: usize) {
        let column = Column {
            bases: index,
            start: self.rows.start,
            above: &self.above,
            cells: &self.cells[self.rows.clone()],
            shift: self.differences.both,
        };
        if let Some(reach) = pruning.reach(&column, INTERVAL + BLOCK) {
            self.window = reach;
        }
    }

    /// The scores of this column in the last row of each pair.
    #[inline(always)]
    fn scores(&self, pairs: &[Pair<'_>], mut give: impl FnMut(usize, i32)) {
        let (start, both) = (self.rows.start, self.differences.both);
        let rows_of = |pair: &Pair<'_>| pair.0.len().saturating_sub(start);
        let column = &self.cells[start..];
        let mut sums = self.above.clone();
        let shortest = pairs.iter().map(rows_of).min().unwrap_or(0).min(column.len());
        // As many rows as surely fit into a lane.
        let block = (i32::from(i8::MAX) / self.differences.most.max(1)).max(1) as usize;
        for cells in column[..shortest].chunks(block) {
            let total = cells[1..].iter().fold(cells[0].0, |total, &(u, _)| total.add(u)).to_array();
            for (sum, &value) in sums.iter_mut().zip(total.as_ref()) {
                let value: i32 = value.into();
                *sum += value - both * cells.len() as i32;
            }
        }
        for (row, &(u, _)) in column.iter().enumerate().skip(shortest) {
            let values = u.to_array();
            for ((sum, pair), &value) in sums.iter_mut().zip(pairs).zip(values.as_ref()) {
                let value: i32 = value.into();
                *sum += if row < rows_of(pair) { value - both } else { 0 };
            }
        }
        for (lane, sum) in sums.into_iter().take(pairs.len()).enumerate() {
            give(lane, sum);
        }
    }
}

/// The cells of N columns, row by row. No sum or difference leaves the range of a lane.
#[inline(always)]
fn columns<V: Lanes, const N: usize>(
    constants: &Constants<V>,
    bases: [V; N],
    mut v: [V; N],
    first: &[V],
    cells: &mut [(V, V)],
) {
    let Constants { open, matching, mismatch, zero } = *constants;
    let mut x = [zero; N];
    for (&other, cell) in first.iter().zip(cells) {
        let (mut u, mut y) = *cell;
        for column in 0..N {
            let score = V::if_equal(bases[column], other, matching, mismatch);
            let b = y.wrapping_add(u);
            let a = x[column].wrapping_add(v[column]);
            let z = score.max(b).max(a);
            let opened = z.wrapping_sub(open);
            x[column] = a.sub_to_zero(opened);
            y = b.sub_to_zero(opened);
            let below = z.wrapping_sub(v[column]);
            v[column] = z.wrapping_sub(u);
            u = below;
        }
        *cell = (u, y);
    }
}
