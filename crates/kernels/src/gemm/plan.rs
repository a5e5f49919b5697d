//! How a product is cut into pieces, by its sizes alone.

use std::ops::Range;

use super::operand::Shape;
use super::packed::Arrangement;

/// The fewest rows that pieces of a product of few rows are cut to so that there are enough of them.
const FEWEST_ROWS: usize = 128;
/// The most rows of a product of few rows: its pieces read each panel once or twice.
const FEW_ROWS: usize = 256;
/// Bytes of a piece's result, so that it is in cache when it goes to its sink.
const RESULT_BYTES: usize = 256 << 10;
/// How many pieces a product has at least, where it is large enough, so that threads finish together.
const PIECES: usize = 24;
/// Bytes of a piece's rows that leave too little of a second-level cache: the rows are read anew for each piece, so that
/// there are fewer of them.
const LARGE_LEFT: usize = 1 << 20;
/// How many pieces such a product has at least.
const LARGE_PIECES: usize = 8;
/// Bytes of a sum of most products.
const SUM_BYTES: usize = 4;

/// The rows of a piece of a product of many rows that vectors compute, by the bytes of the right operand. Few rows make
/// wide pieces, whose left operand is read once and whose sink sees long rows; a panel that comes from far away wants so
/// many rows to be multiplied with that the next one is fetched meanwhile.
pub(super) fn piece_rows(shape: Shape, arrangement: &Arrangement) -> usize {
    const SECOND_LEVEL: usize = 1 << 20;
    let rhs_bytes = shape.k.saturating_mul(shape.n).saturating_mul(arrangement.format.bytes());
    if rhs_bytes < SECOND_LEVEL { 64 } else { MANY_ROWS }
}

/// The most rows of a piece of a product of many rows.
const MANY_ROWS: usize = 96;

/// Elements of a row that are multiplied before the next panel is read, in a piece of so many rows. With fewer, sums are
/// loaded and stored more often; with more, the rows leave the second-level cache before the last panel. Pieces of more rows
/// than [`MANY_ROWS`] are those of products of few rows, whose panels come from far away and are read once.
fn depth(rows: usize) -> usize {
    if rows <= MANY_ROWS { 1024 } else { 384 }
}

/// The pieces of a product: rectangles of rows and panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Rows of a piece.
    pub(super) rows: usize,
    /// Panels of a piece.
    pub(super) panels: usize,
    m: usize,
    n: usize,
    all_panels: usize,
    /// Which pieces follow each other.
    order: Order,
}

/// Which pieces follow each other: those whose common operand is to stay in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those that share panels.
    Panels,
    /// Those that share rows: kernels fetch panels ahead, and rows only where they are.
    Rows,
}

/// What decides how a product is cut, beside its sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes {
    /// The rows that a kernel does at once.
    pub(crate) tile_rows: usize,
    /// The rows of a piece where there are many.
    pub(crate) many_rows: usize,
    /// Which pieces follow each other.
    pub(crate) order: Order,
}

impl Cut {
    /// Cuts a product.
    pub(crate) fn new(shape: Shape, arrangement: &Arrangement, wishes: Wishes) -> Self {
        let Wishes { tile_rows, many_rows, order } = wishes;
        let all_panels = arrangement.panels(shape.n);
        let even = |most: usize| {
            let pieces = shape.m.div_ceil(most).max(1);
            shape.m.div_ceil(pieces).next_multiple_of(tile_rows).max(tile_rows)
        };
        let rows = even(match shape.m <= FEW_ROWS {
            true => (shape.m * all_panels / PIECES).max(FEWEST_ROWS),
            false => many_rows,
        });
        let row_pieces = shape.m.div_ceil(rows).max(1);
        let width = arrangement.lanes * arrangement.vectors;
        let most_panels = (RESULT_BYTES / (rows * width * SUM_BYTES)).max(1);
        let left_bytes = rows.saturating_mul(shape.k).saturating_mul(arrangement.format.bytes());
        let pieces = if left_bytes > LARGE_LEFT { LARGE_PIECES } else { PIECES };
        let for_balance = (all_panels * row_pieces / pieces).max(1);
        let panel_pieces = all_panels.div_ceil(most_panels.min(for_balance)).max(1);
        Self {
            rows,
            panels: all_panels.div_ceil(panel_pieces).max(1),
            m: shape.m,
            n: shape.n,
            all_panels,
            order,
        }
    }

    /// How many pieces there are.
    pub(super) fn pieces(&self) -> usize {
        self.row_pieces() * self.all_panels.div_ceil(self.panels)
    }

    /// Elements of the result.
    pub(super) fn elements(&self) -> usize {
        self.m.saturating_mul(self.n)
    }

    /// How many pieces there are below each other.
    pub(super) fn row_pieces(&self) -> usize {
        self.m.div_ceil(self.rows)
    }

    /// The rows of the pieces beside each other.
    pub(super) fn piece_rows(&self, at: usize) -> Range<usize> {
        at * self.rows..self.m.min((at + 1) * self.rows)
    }

    /// The panels of the pieces of a row.
    pub(super) fn panel_pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (all, each) = (self.all_panels, self.panels);
        (0..all).step_by(each).map(move |first| first..all.min(first + each))
    }

    /// The rows and panels of a piece.
    pub(super) fn piece(&self, at: usize) -> (Range<usize>, Range<usize>) {
        let (row_pieces, panel_pieces) = (self.row_pieces(), self.all_panels.div_ceil(self.panels));
        let (row, panel) = match self.order {
            Order::Panels => (at % row_pieces, at / row_pieces),
            Order::Rows => (at / panel_pieces, at % panel_pieces),
        };
        let first = panel * self.panels;
        (self.piece_rows(row), first..(first + self.panels).min(self.all_panels))
    }
}

/// A stretch of the sums: whole taps, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The first tap.
    pub(super) tap: usize,
    /// How many taps.
    pub(super) taps: usize,
    /// The first element of each of their runs.
    pub(super) skip: usize,
    /// Elements of each of their runs.
    pub(super) run: usize,
    /// The row of the right operand that belongs to the first element.
    pub(super) row: usize,
}

/// The stretches of sums over so many taps of so many elements, in order, for a piece of so many rows.
pub(super) fn stretches(taps: usize, run: usize, rows: usize) -> impl Iterator<Item = Stretch> {
    let depth = depth(rows);
    let parts = run.div_ceil(depth).max(1);
    let part = run.div_ceil(parts);
    let together = if parts == 1 { (depth / run.max(1)).clamp(1, taps.max(1)) } else { 1 };
    (0..taps).step_by(together).flat_map(move |tap| {
        (0..parts).map(move |at| {
            let skip = at * part;
            Stretch {
                tap,
                taps: together.min(taps - tap),
                skip,
                run: part.min(run - skip),
                row: tap * run + skip,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::packed::Format;
    use super::*;

    #[test]
    fn pieces_cover_a_product_once() {
        let arrangement =
            Arrangement { format: Format::F32, lanes: 16, vectors: 3, group: 1, row_multiple: 1 };
        for (m, n, k) in [
            (1, 1, 1),
            (128, 768, 768),
            (1024, 384, 384),
            (2048, 2048, 2048),
            (97, 33, 7),
            (5, 32000, 512),
            (3, 0, 2),
        ] {
            let order = if m > n { Order::Rows } else { Order::Panels };
            let wishes = Wishes { tile_rows: 8, many_rows: 96, order };
            let cut = Cut::new(Shape { m, n, k }, &arrangement, wishes);
            let mut seen = vec![0; m * arrangement.panels(n)];
            for at in 0..cut.pieces() {
                let (rows, panels) = cut.piece(at);
                assert!(!rows.is_empty() && !panels.is_empty());
                for row in rows {
                    for panel in panels.clone() {
                        seen[row * arrangement.panels(n) + panel] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{m}x{n}x{k}");
        }
    }

    #[test]
    fn stretches_cover_all_rows_in_order() {
        for (taps, run) in [(1, 1), (1, 0), (0, 5), (9, 64), (9, 3), (1, 3072), (9, 700), (49, 3)] {
            for rows in [MANY_ROWS, 128] {
                let mut next = 0;
                for stretch in stretches(taps, run, rows) {
                    assert_eq!(stretch.row, next, "{taps} taps of {run}, {rows} rows");
                    assert!(stretch.taps * stretch.run <= depth(rows), "{taps} taps of {run}, {rows} rows");
                    next += stretch.taps * stretch.run;
                }
                assert_eq!(next, taps * run);
            }
        }
    }
}
