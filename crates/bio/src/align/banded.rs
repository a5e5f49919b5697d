//! Alignments with their path, within a band of diagonals: what read mapping needs between and beyond seeds.

use super::Scoring;

/// One kind of step in an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// A base of the query beside a base of the target, equal or not: `M`.
    Match,
    /// A base of the query only: `I`.
    Insert,
    /// A base of the target only: `D`.
    Delete,
    /// A base of the query that is not aligned: `S`.
    Clip,
}

/// Steps with their lengths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cigar(Vec<(u32, Op)>);

impl Cigar {
    /// Adds steps at the end.
    pub fn push(&mut self, length: usize, op: Op) {
        if length == 0 {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.1 == op => last.0 += length as u32,
            _ => self.0.push((length as u32, op)),
        }
    }

    /// Adds the steps of another at the end.
    pub fn append(&mut self, other: &Self) {
        for &(length, op) in &other.0 {
            self.push(length as usize, op);
        }
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[(u32, Op)] {
        &self.0
    }

    /// Bases of the query, clipped ones too.
    #[must_use]
    pub fn query_length(&self) -> usize {
        self.sum(|op| op != Op::Delete)
    }

    /// Bases of the target.
    #[must_use]
    pub fn target_length(&self) -> usize {
        self.sum(|op| matches!(op, Op::Match | Op::Delete))
    }

    fn sum(&self, counts: impl Fn(Op) -> bool) -> usize {
        self.0.iter().filter(|(_, op)| counts(*op)).map(|(length, _)| *length as usize).sum()
    }

    /// The steps in the opposite order.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let mut cigar = Self::default();
        for &(length, op) in self.0.iter().rev() {
            cigar.push(length as usize, op);
        }
        cigar
    }

    /// The score of this path between two sequences; `None` if it does not fit them.
    #[must_use]
    pub fn score(&self, query: &[u8], target: &[u8], scoring: &Scoring) -> Option<i32> {
        let (mut i, mut j, mut score) = (0, 0, 0);
        for &(length, op) in &self.0 {
            let length = length as usize;
            match op {
                Op::Match => {
                    let (a, b) = (query.get(i..i + length)?, target.get(j..j + length)?);
                    score += a.iter().zip(b).map(|(&a, &b)| scoring.of(a, b)).sum::<i32>();
                    (i, j) = (i + length, j + length);
                }
                Op::Insert => (i, score) = (i + length, score - scoring.gap(length)),
                Op::Delete => (j, score) = (j + length, score - scoring.gap(length)),
                Op::Clip => i += length,
            }
        }
        (i == query.len() && j == target.len()).then_some(score)
    }
}

/// An alignment that begins at the begin of both sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Its score, without the bonus.
    pub score: i32,
    /// Bases of the query in it.
    pub query: usize,
    /// Bases of the target in it.
    pub target: usize,
    /// Its steps.
    pub cigar: Cigar,
}

/// Far below any score, and far from overflow.
const LOWEST: i32 = i32::MIN / 4;

/// How a cell was reached.
const FROM_DIAGONAL: u8 = 0;
const FROM_INSERT: u8 = 1;
const FROM_DELETE: u8 = 2;
const FROM: u8 = 3;
/// The insertion that ends in this cell was longer than one base.
const INSERT_EXTENDS: u8 = 4;
/// The deletion that ends in this cell was longer than one base.
const DELETE_EXTENDS: u8 = 8;

/// Aligns within a band; keeps its memory between calls.
#[derive(Debug, Default)]
pub struct BandedAligner {
    h: Vec<i32>,
    e: Vec<i32>,
    trace: Vec<u8>,
}

/// The diagonals of a band: target position minus query position.
#[derive(Debug, Clone, Copy)]
struct Band {
    low: i32,
    width: usize,
}

impl BandedAligner {
    /// The best alignment of all of both sequences that strays at most `margin` diagonals from the straight ones.
    pub fn global(&mut self, query: &[u8], target: &[u8], scoring: &Scoring, margin: usize) -> Extension {
        let difference = target.len() as i32 - query.len() as i32;
        let low = difference.min(0) - margin as i32;
        let width = (difference.max(0) + margin as i32 - low) as usize + 1;
        let band = Band { low, width };
        self.begin(band, scoring, target.len());
        let mut score = 0;
        for row in 1..=query.len() {
            self.row(row, query, target, scoring, band);
        }
        let last = (difference - low) as usize;
        if let Some(&value) = self.h.get(last) {
            score = value;
        }
        let cigar = self.path(query.len(), target.len(), band);
        Extension { score, query: query.len(), target: target.len(), cigar }
    }

    /// The best alignment of the beginnings of both sequences. Reaching the end of the query is worth `bonus`; the search
    /// ends where every path is `drop` below the best.
    pub fn extend(
        &mut self,
        query: &[u8],
        target: &[u8],
        scoring: &Scoring,
        margin: usize,
        bonus: i32,
        drop: i32,
    ) -> Extension {
        let band = Band { low: -(margin as i32), width: 2 * margin + 1 };
        self.begin(band, scoring, target.len());
        let mut best = (0, 0, 0);
        let mut whole = (LOWEST, 0);
        for row in 1..=query.len() {
            let (score, column) = self.row(row, query, target, scoring, band);
            if score > best.0 {
                best = (score, row, column);
            }
            if row == query.len() {
                whole = (score, column);
            }
            if score < best.0 - drop {
                break;
            }
        }
        let (score, rows, columns) = if whole.0 + bonus >= best.0 && whole.0 > LOWEST / 2 {
            (whole.0, query.len(), whole.1)
        } else {
            best
        };
        Extension { score, query: rows, target: columns, cigar: self.path(rows, columns, band) }
    }

    /// The row before the first base of the query.
    fn begin(&mut self, band: Band, scoring: &Scoring, columns: usize) {
        self.h.clear();
        self.h.resize(band.width + 1, LOWEST);
        self.e.clear();
        self.e.resize(band.width + 1, LOWEST);
        self.trace.clear();
        self.trace.resize(band.width, FROM_DELETE | DELETE_EXTENDS);
        for index in 0..band.width {
            let column = band.low + index as i32;
            if (0..=columns as i32).contains(&column) {
                self.h[index] = -scoring.gap(column as usize);
            }
        }
    }

    /// One row; its best score and the column of it.
    fn row(
        &mut self,
        row: usize,
        query: &[u8],
        target: &[u8],
        scoring: &Scoring,
        band: Band,
    ) -> (i32, usize) {
        let extend = i32::from(scoring.gap_extend);
        let open = i32::from(scoring.gap_open) + extend;
        let base = query[row - 1];
        let first = row as i32 + band.low;
        let start = self.trace.len();
        self.trace.resize(start + band.width, 0);
        let trace = &mut self.trace[start..];
        let mut best = (LOWEST, 0);
        let mut delete = LOWEST;
        let mut left = LOWEST;
        // Columns before the first and after the last are not there.
        let from = (-first).clamp(0, band.width as i32) as usize;
        let to = (target.len() as i32 - first + 1).clamp(0, band.width as i32) as usize;
        self.h[..from].fill(LOWEST);
        self.e[..from].fill(LOWEST);
        for (index, step) in trace.iter_mut().enumerate().take(to).skip(from) {
            let column = (first + index as i32) as usize;
            let mut how = FROM_DIAGONAL;
            let (opened, extended) = (self.h[index + 1] - open, self.e[index + 1] - extend);
            let insert = opened.max(extended);
            if extended > opened {
                how |= INSERT_EXTENDS;
            }
            let (opened, extended) = (left - open, delete - extend);
            delete = opened.max(extended);
            if extended > opened {
                how |= DELETE_EXTENDS;
            }
            let mut score =
                if column == 0 { LOWEST } else { self.h[index] + scoring.of(base, target[column - 1]) };
            if insert > score {
                score = insert;
                how |= FROM_INSERT;
            }
            if delete > score {
                score = delete;
                how = (how & !FROM) | FROM_DELETE;
            }
            *step = how;
            self.h[index] = score;
            self.e[index] = insert;
            left = score;
            if score > best.0 {
                best = (score, column);
            }
        }
        // The last of these was the cell above the last column.
        self.h[to..].fill(LOWEST);
        self.e[to..].fill(LOWEST);
        best
    }

    /// The steps from the begin of both sequences to this cell.
    fn path(&self, mut row: usize, mut column: usize, band: Band) -> Cigar {
        let at = |row: usize, column: usize| {
            let index = column as i32 - row as i32 - band.low;
            usize::try_from(index)
                .ok()
                .filter(|&index| index < band.width)
                .and_then(|index| self.trace.get(row * band.width + index))
                .copied()
        };
        let mut cigar = Cigar::default();
        let mut state = FROM_DIAGONAL;
        while row > 0 && column > 0 {
            let Some(how) = at(row, column) else { break };
            if state == FROM_DIAGONAL {
                state = how & FROM;
            }
            match state {
                FROM_INSERT => {
                    cigar.push(1, Op::Insert);
                    row -= 1;
                    state = if how & INSERT_EXTENDS != 0 { FROM_INSERT } else { FROM_DIAGONAL };
                }
                FROM_DELETE => {
                    cigar.push(1, Op::Delete);
                    column -= 1;
                    state = if how & DELETE_EXTENDS != 0 { FROM_DELETE } else { FROM_DIAGONAL };
                }
                _ => {
                    cigar.push(1, Op::Match);
                    (row, column) = (row - 1, column - 1);
                }
            }
        }
        cigar.push(row, Op::Insert);
        cigar.push(column, Op::Delete);
        cigar.reversed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{plain, tests::pairs};
    use super::*;

    #[test]
    fn a_band_that_holds_everything_gives_the_plain_score_and_a_path_of_that_score() {
        let mut aligner = BandedAligner::default();
        for (a, b) in pairs(1_500, 3) {
            let found = aligner.global(&a, &b, &Scoring::READS, a.len().max(b.len()) + 1);
            assert_eq!(found.score, plain::global(&a, &b, &Scoring::READS), "{a:?} {b:?}");
            assert_eq!(found.cigar.score(&a, &b, &Scoring::READS), Some(found.score), "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_narrow_band_still_gives_a_path_of_its_score() {
        let mut aligner = BandedAligner::default();
        for (a, b) in pairs(1_500, 4) {
            let found = aligner.global(&a, &b, &Scoring::READS, 5);
            assert!(found.score <= plain::global(&a, &b, &Scoring::READS));
            assert_eq!(found.cigar.score(&a, &b, &Scoring::READS), Some(found.score), "{a:?} {b:?}");
            let found = aligner.extend(&a, &b, &Scoring::READS, 9, 5, 100);
            let (a, b) = (&a[..found.query], &b[..found.target]);
            assert_eq!(found.cigar.score(a, b, &Scoring::READS), Some(found.score), "{a:?} {b:?}");
        }
    }

    #[test]
    fn an_extension_ends_where_the_sequences_part() {
        let a = [[0, 1, 2, 3].repeat(10), vec![0; 30]].concat();
        let b = [[0, 1, 2, 3].repeat(10), vec![1; 30]].concat();
        let found = BandedAligner::default().extend(&a, &b, &Scoring::READS, 10, 5, 50);
        assert_eq!((found.score, found.query, found.target), (80, 40, 40));
        assert_eq!(found.cigar.steps(), [(40, Op::Match)]);
    }
}
