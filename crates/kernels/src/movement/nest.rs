//! Loop nests: any strided copy brought to the fewest loops, and cut into pieces.

use super::error::{LayoutError, check_rank};
use super::strided;
use super::tile::Tile;

/// Bytes of a piece, more or less: enough to be worth handing to a thread, few enough to share evenly.
const PIECE_BYTES: usize = 64 << 10;

/// Longest run that one step copies.
const RUN_BYTES: usize = 64 << 10;

/// Elements along the sides of what a transposing step moves; multiples of every tile's side. Longer on the target's
/// side: rows that are written for a while are foreseen.
const BLOCK: (usize, usize) = (64, 256);

/// Bytes of a result from which on it is written past the caches where that is possible: too many to be still there
/// when they are read.
pub(crate) const PAST_CACHES: usize = 8 << 20;

/// One loop: how often, and how many bytes further each time on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loop {
    pub(crate) size: usize,
    pub(crate) source: isize,
    pub(crate) target: isize,
}

impl Loop {
    const ONCE: Self = Self { size: 1, source: 0, target: 0 };

    /// The loop over blocks of so many iterations.
    fn blocks(self, of: usize) -> Self {
        let step = |stride: isize| stride.saturating_mul(of as isize);
        Self { size: self.size.div_ceil(of), source: step(self.source), target: step(self.target) }
    }
}

/// How the two innermost loops are done.
#[derive(Debug, Clone, Copy)]
enum Kernel {
    /// Bytes that are neighbours on both sides.
    Runs,
    /// Elements of so many bytes; neighbours on the source's side in rows, on the target's side in columns.
    Transpose(usize, Tile),
    /// Elements of so many bytes, anywhere.
    Strided(usize),
}

/// A copy as loops over blocks of two inner loops.
#[derive(Debug, Clone)]
pub(super) struct Nest {
    /// Outer loops, then those over the blocks of rows and of columns.
    loops: Vec<Loop>,
    rows: Loop,
    columns: Loop,
    /// Rows and columns of a block.
    block: (usize, usize),
    kernel: Kernel,
    /// Where the first element is: loops that went downwards in the target were turned round.
    start: (isize, isize),
    blocks: usize,
    blocks_in_piece: usize,
    bytes: usize,
}

impl Nest {
    /// The copy of `dims` elements of a size from one layout to the other; `None` when there is nothing to copy.
    pub(super) fn new(
        element_size: usize,
        dims: &[usize],
        source: &[isize],
        target: &[isize],
    ) -> Result<Option<Self>, LayoutError> {
        check_rank("source strides", source.len(), dims.len())?;
        check_rank("target strides", target.len(), dims.len())?;
        if element_size == 0 || dims.contains(&0) {
            return Ok(None);
        }
        let (mut loops, start) = loops_of(element_size, dims, source, target)?;
        let bytes = dims.iter().try_fold(element_size, |bytes, &size| bytes.checked_mul(size));
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(LayoutError::Overflow)?;
        // What is last are neighbouring bytes.
        let run = loops.pop().map_or(element_size, |run| run.size);
        let (rows, columns, kernel) = inner(&mut loops, run);
        let block = match kernel {
            Kernel::Runs => {
                let columns = columns.size.min(RUN_BYTES);
                ((RUN_BYTES / columns).clamp(1, rows.size), columns)
            }
            Kernel::Transpose(..) => (rows.size.min(BLOCK.0), columns.size.min(BLOCK.1)),
            Kernel::Strided(size) => {
                let columns = columns.size.min(RUN_BYTES / size);
                ((RUN_BYTES / size / columns).clamp(1, rows.size), columns)
            }
        };
        loops.extend([rows.blocks(block.0), columns.blocks(block.1)]);
        let blocks: usize = loops.iter().map(|each| each.size).product();
        let blocks_in_piece = blocks.div_ceil((bytes / PIECE_BYTES).max(1));
        Ok(Some(Self { loops, rows, columns, block, kernel, start, blocks, blocks_in_piece, bytes }))
    }

    /// How many bytes are copied.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all bytes are neighbours on both sides.
    pub(super) fn is_one_run(&self) -> bool {
        matches!(self.kernel, Kernel::Runs) && self.columns.size == self.bytes
    }

    /// How many pieces there are.
    pub(super) fn pieces(&self) -> usize {
        self.blocks.div_ceil(self.blocks_in_piece)
    }

    /// Copies one piece.
    ///
    /// # Safety
    ///
    /// Every element of the source may be read, every element of the target may be written by this thread alone, and
    /// none is both.
    pub(super) unsafe fn run(&self, piece: usize, source: *const u8, target: *mut u8) {
        let first = piece * self.blocks_in_piece;
        let count = self.blocks_in_piece.min(self.blocks - first);
        let mut odometer = Odometer::new(&self.loops, first);
        let whole = self.loops.len() - 2;
        for _ in 0..count {
            let (row, column) = (odometer.at[whole] * self.block.0, odometer.at[whole + 1] * self.block.1);
            let rows = Loop { size: self.block.0.min(self.rows.size - row), ..self.rows };
            let columns = Loop { size: self.block.1.min(self.columns.size - column), ..self.columns };
            // SAFETY: the block lies inside the loops, whose elements the caller vouches for.
            unsafe {
                let from = source.offset(self.start.0 + odometer.source);
                let to = target.offset(self.start.1 + odometer.target);
                match self.kernel {
                    Kernel::Runs => strided::runs(rows, columns.size, from, to),
                    Kernel::Transpose(size, tile) => {
                        tile.block(size, (rows, columns), from, to, self.bytes >= PAST_CACHES);
                    }
                    Kernel::Strided(size) => strided::elements(size, rows, columns, from, to),
                }
            }
            odometer.advance();
        }
    }
}

/// The loops in bytes, the largest step in the target first, joined where two are one, and where they start. The last
/// is over neighbouring bytes.
fn loops_of(
    element_size: usize,
    dims: &[usize],
    source: &[isize],
    target: &[isize],
) -> Result<(Vec<Loop>, (isize, isize)), LayoutError> {
    let bytes = isize::try_from(element_size).map_err(|_| LayoutError::Overflow)?;
    let mut loops = Vec::with_capacity(dims.len() + 1);
    let mut start = (0isize, 0isize);
    // How far the loops reach must be a number; the sum of magnitudes bounds every offset.
    let mut reach = (bytes, bytes);
    for ((&size, &source), &target) in
        dims.iter().zip(source).zip(target).filter(|((size, _), _)| **size != 1)
    {
        let far = |stride: isize, reach: isize| {
            let step = stride.checked_mul(bytes)?;
            let last = step.checked_mul(isize::try_from(size - 1).ok()?)?;
            Some((step, last, reach.checked_add(last.checked_abs()?)?))
        };
        let (Some(from), Some(to)) = (far(source, reach.0), far(target, reach.1)) else {
            return Err(LayoutError::Overflow);
        };
        reach = (from.2, to.2);
        if to.0 < 0 {
            start = (start.0 + from.1, start.1 + to.1);
            loops.push(Loop { size, source: -from.0, target: -to.0 });
        } else {
            loops.push(Loop { size, source: from.0, target: to.0 });
        }
    }
    loops.sort_by_key(|each| std::cmp::Reverse(each.target));
    loops.push(Loop { size: element_size, source: 1, target: 1 });
    let mut joined: Vec<Loop> = Vec::with_capacity(loops.len());
    for inner in loops {
        let span = |stride: isize| stride.checked_mul(inner.size as isize);
        match joined.last_mut() {
            Some(outer)
                if span(inner.source) == Some(outer.source) && span(inner.target) == Some(outer.target) =>
            {
                *outer = Loop { size: outer.size * inner.size, ..inner };
            }
            _ => joined.push(inner),
        }
    }
    Ok((joined, start))
}

/// Takes the loops of rows and columns from the outer ones; `run` neighbouring bytes are inside them.
fn inner(loops: &mut Vec<Loop>, run: usize) -> (Loop, Loop, Kernel) {
    let columns = match (run, loops.pop()) {
        (1 | 2 | 4 | 8 | 16, Some(columns)) => columns,
        (_, rows) => {
            let run = Loop { size: run, source: 1, target: 1 };
            return (rows.unwrap_or(Loop::ONCE), run, Kernel::Runs);
        }
    };
    let neighbours = loops.iter().rposition(|rows| rows.source == run as isize);
    match neighbours.filter(|_| columns.target == run as isize && columns.source != 0) {
        Some(at) => (loops.remove(at), columns, Kernel::Transpose(run, Tile::best(run))),
        None => (loops.pop().unwrap_or(Loop::ONCE), columns, Kernel::Strided(run)),
    }
}

/// Goes through loops in order, with the offsets on both sides.
struct Odometer<'a> {
    loops: &'a [Loop],
    at: Vec<usize>,
    source: isize,
    target: isize,
}

impl<'a> Odometer<'a> {
    fn new(loops: &'a [Loop], mut position: usize) -> Self {
        let mut odometer = Self { loops, at: vec![0; loops.len()], source: 0, target: 0 };
        for (each, at) in loops.iter().zip(&mut odometer.at).rev() {
            *at = position % each.size;
            position /= each.size;
            odometer.source += *at as isize * each.source;
            odometer.target += *at as isize * each.target;
        }
        odometer
    }

    fn advance(&mut self) {
        for (each, at) in self.loops.iter().zip(&mut self.at).rev() {
            *at += 1;
            if *at < each.size {
                self.source += each.source;
                self.target += each.target;
                return;
            }
            *at = 0;
            self.source -= (each.size - 1) as isize * each.source;
            self.target -= (each.size - 1) as isize * each.target;
        }
    }
}
