//! Alignment of a read to the graph, end to end, within a band that follows the best cells.

use super::PoaScoring;
use super::graph::{Graph, NONE};

/// Far below any score, and far from overflow.
const LOWEST: i32 = i32::MIN / 4;

/// A node's row of the matrix: the columns of the band.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// First column.
    first: usize,
    /// Where its scores begin.
    offset: usize,
    /// Columns.
    length: usize,
    /// The column of its best score.
    best: usize,
}

/// Aligns reads; keeps its memory between calls.
#[derive(Debug, Default)]
pub(super) struct GraphAligner {
    scores: Vec<i32>,
    /// By node; the last one is the row before every node.
    rows: Vec<Row>,
    profile: [Vec<i32>; 5],
}

impl GraphAligner {
    /// For each base of the read the node that it is aligned to, or none.
    pub(super) fn align(&mut self, graph: &Graph, read: &[u8], scoring: &PoaScoring) -> Vec<u32> {
        if graph.order().is_empty() || read.is_empty() {
            return vec![NONE; read.len()];
        }
        let narrow = 20 + read.len() / 20;
        self.try_band(graph, read, scoring, narrow)
            .or_else(|| self.try_band(graph, read, scoring, usize::MAX / 4))
            .unwrap_or_else(|| vec![NONE; read.len()])
    }

    /// The path within a band of so many columns on either side; `None` if no end of the graph is within it.
    fn try_band(
        &mut self,
        graph: &Graph,
        read: &[u8],
        scoring: &PoaScoring,
        margin: usize,
    ) -> Option<Vec<u32>> {
        self.begin(graph, read, scoring, margin);
        for &node in graph.order() {
            self.row(graph, node, read, scoring, margin);
        }
        let end = graph
            .order()
            .iter()
            .copied()
            .filter(|&node| graph.is_end(node))
            .max_by_key(|&node| self.at(node as usize, read.len()))?;
        if self.at(end as usize, read.len()) <= LOWEST / 2 {
            return None;
        }
        Some(self.path(graph, end, read, scoring))
    }

    fn begin(&mut self, graph: &Graph, read: &[u8], scoring: &PoaScoring, margin: usize) {
        for (base, scores) in self.profile.iter_mut().enumerate() {
            scores.clear();
            let score = |&other: &u8| {
                if other as usize == base && base < 4 { scoring.matching } else { scoring.mismatch }
            };
            scores.extend(read.iter().map(score));
        }
        let length = (margin + 1).min(read.len() + 1);
        self.scores.clear();
        self.scores.extend((0..length).map(|column| scoring.gap * column as i32));
        self.rows.clear();
        self.rows.resize(graph.order().len() + 1, Row::default());
        if let Some(first) = self.rows.last_mut() {
            *first = Row { first: 0, offset: 0, length, best: 0 };
        }
    }

    /// The row before every node.
    fn origin(&self) -> usize {
        self.rows.len() - 1
    }

    /// The score of a cell.
    #[inline]
    fn at(&self, row: usize, column: usize) -> i32 {
        let row = self.rows[row];
        match column.checked_sub(row.first) {
            Some(index) if index < row.length => self.scores[row.offset + index],
            _ => LOWEST,
        }
    }

    fn row(&mut self, graph: &Graph, node: u32, read: &[u8], scoring: &PoaScoring, margin: usize) {
        let before = &graph.node(node).before;
        let origin = [(self.origin() as u32, 0)];
        let before: &[(u32, u32)] = if before.is_empty() { &origin } else { before };
        let bests = before.iter().map(|&(index, _)| self.rows[index as usize].best);
        let (low, high) = bests.fold((usize::MAX, 0), |(low, high), best| (low.min(best), high.max(best)));
        let first = (low + 1).saturating_sub(margin).min(read.len());
        let last = high.saturating_add(1).saturating_add(margin).min(read.len());
        let offset = self.scores.len();
        let length = last - first + 1;
        self.scores.resize(offset + length, LOWEST);
        let (known, new) = self.scores.split_at_mut(offset);
        let profile = &self.profile[graph.node(node).base.min(4) as usize];
        for &(index, _) in before {
            let row = self.rows[index as usize];
            let above = &known[row.offset..row.offset + row.length];
            // Columns that both rows have: straight down is a deletion, from one to the left a match.
            let (from, to) = (first.max(row.first), (last + 1).min(row.first + row.length));
            if from < to {
                let old = &above[from - row.first..to - row.first];
                for (cell, &score) in new[from - first..to - first].iter_mut().zip(old) {
                    *cell = (*cell).max(score + scoring.gap);
                }
            }
            let (from, to) = (first.max(row.first + 1), (last + 1).min(row.first + row.length + 1));
            if from < to {
                let old = &above[from - row.first - 1..to - row.first - 1];
                let scores = &profile[from - 1..to - 1];
                for ((cell, &score), &here) in new[from - first..to - first].iter_mut().zip(old).zip(scores) {
                    *cell = (*cell).max(score + here);
                }
            }
        }
        let (mut left, mut best, mut column) = (LOWEST, LOWEST, first);
        for (index, cell) in new.iter_mut().enumerate() {
            left = (left + scoring.gap).max(*cell);
            *cell = left;
            if left > best {
                (best, column) = (left, first + index);
            }
        }
        self.rows[node as usize] = Row { first, offset, length, best: column };
    }

    /// Walks back from the end of the read at a node.
    fn path(&self, graph: &Graph, end: u32, read: &[u8], scoring: &PoaScoring) -> Vec<u32> {
        let mut path = vec![NONE; read.len()];
        let (mut node, mut column) = (end as usize, read.len());
        while node != self.origin() {
            let score = self.at(node, column);
            let before = &graph.node(node as u32).before;
            let origin = [(self.origin() as u32, 0)];
            let before: &[(u32, u32)] = if before.is_empty() { &origin } else { before };
            let base = graph.node(node as u32).base.min(4) as usize;
            let reached = |step: usize, change: i32| {
                let column = column.checked_sub(step)?;
                let from = |&&(index, _): &&(u32, u32)| self.at(index as usize, column) + change == score;
                before.iter().find(from).map(|&(index, _)| index as usize)
            };
            let diagonal = column.checked_sub(1).and_then(|last| reached(1, self.profile[base][last]));
            if let Some(index) = diagonal {
                path[column - 1] = node as u32;
                (node, column) = (index, column - 1);
            } else if let Some(index) = reached(0, scoring.gap) {
                node = index;
            } else if column > 0 {
                column -= 1;
            } else {
                break;
            }
        }
        path
    }
}
