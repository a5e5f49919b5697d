//! Loop nests: strided copies reduced to the fewest loops, and partitioned into tasks.

use super::error::{LayoutError, check_rank};
use super::strided;
use super::strided_loop::StridedLoop;
use super::transpose::TransposeKernel;

/// Approximate bytes of a task: enough to amortize scheduling, few enough for load balance.
pub(super) const TASK_BYTES: usize = 64 << 10;

/// Maximum bytes of a block.
const RUN_BYTES: usize = 64 << 10;

/// Sides of a transposed block, multiples of the side of every transpose kernel. Longer on the target side, whose rows
/// the hardware prefetcher follows.
const BLOCK: (usize, usize) = (64, 256);

/// Bytes of an output from which on non-temporal stores are used: it would be evicted before it is read.
pub(crate) const NONTEMPORAL_BYTES: usize = 8 << 20;

/// The kernel of the two innermost loops.
#[derive(Debug, Clone, Copy)]
enum Kernel {
    /// Runs of contiguous bytes.
    Runs,
    /// A transpose of elements of the given size: rows are contiguous in the source, columns in the target.
    Transpose(usize, TransposeKernel),
    /// Strided elements of the given size.
    Strided(usize),
}

/// A copy as loops over blocks of two inner loops.
#[derive(Debug, Clone)]
pub(super) struct LoopNest {
    /// Outer loops, then those over the blocks of rows and of columns.
    loops: Vec<StridedLoop>,
    rows: StridedLoop,
    columns: StridedLoop,
    /// Rows and columns of a block.
    block: (usize, usize),
    kernel: Kernel,
    /// Offsets of the first element: loops with a negative target stride are reversed.
    start: (isize, isize),
    blocks: usize,
    blocks_per_task: usize,
    bytes: usize,
}

impl LoopNest {
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
        // The innermost loop is over contiguous bytes.
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
        let blocks_per_task = blocks.div_ceil((bytes / TASK_BYTES).max(1));
        Ok(Some(Self { loops, rows, columns, block, kernel, start, blocks, blocks_per_task, bytes }))
    }

    /// How many bytes are copied.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The loop over runs of contiguous bytes and their length, where that is all there is.
    pub(super) fn runs(&self) -> Option<(StridedLoop, usize)> {
        let outer = &self.loops[..self.loops.len() - 2];
        let alone = outer.iter().all(|each| each.size == 1) && self.start == (0, 0);
        (alone && matches!(self.kernel, Kernel::Runs)).then_some((self.rows, self.columns.size))
    }

    /// Whether all bytes are contiguous on both sides.
    pub(super) fn is_one_run(&self) -> bool {
        matches!(self.kernel, Kernel::Runs) && self.columns.size == self.bytes
    }

    /// How many tasks there are.
    pub(super) fn tasks(&self) -> usize {
        self.blocks.div_ceil(self.blocks_per_task)
    }

    /// Copies one task.
    ///
    /// # Safety
    ///
    /// Every element of the source may be read, every element of the target may be written by this thread alone, and
    /// none is both.
    pub(super) unsafe fn run(&self, task: usize, source: *const u8, target: *mut u8) {
        let first = task * self.blocks_per_task;
        let count = self.blocks_per_task.min(self.blocks - first);
        let mut counter = LoopCounter::new(&self.loops, first);
        let whole = self.loops.len() - 2;
        for _ in 0..count {
            let (row, column) = (counter.at[whole] * self.block.0, counter.at[whole + 1] * self.block.1);
            let rows = StridedLoop { size: self.block.0.min(self.rows.size - row), ..self.rows };
            let columns = StridedLoop { size: self.block.1.min(self.columns.size - column), ..self.columns };
            // SAFETY: the block is inside the loops, whose elements the caller guarantees.
            unsafe {
                let from = source.offset(self.start.0 + counter.source);
                let to = target.offset(self.start.1 + counter.target);
                match self.kernel {
                    Kernel::Runs => strided::runs(rows, columns.size, from, to),
                    Kernel::Transpose(size, tile) => {
                        tile.transpose_block(
                            size,
                            (rows, columns),
                            from,
                            to,
                            self.bytes >= NONTEMPORAL_BYTES,
                        );
                    }
                    Kernel::Strided(size) => strided::elements(size, rows, columns, from, to),
                }
            }
            counter.advance();
        }
    }
}

/// The loops in bytes, by decreasing target stride, merged where possible, and their offsets. The last loop is over
/// contiguous bytes.
fn loops_of(
    element_size: usize,
    dims: &[usize],
    source: &[isize],
    target: &[isize],
) -> Result<(Vec<StridedLoop>, (isize, isize)), LayoutError> {
    let bytes = isize::try_from(element_size).map_err(|_| LayoutError::Overflow)?;
    let mut loops = Vec::with_capacity(dims.len() + 1);
    let mut start = (0isize, 0isize);
    // The sum of magnitudes bounds every offset and must not overflow.
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
            loops.push(StridedLoop { size, source: -from.0, target: -to.0 });
        } else {
            loops.push(StridedLoop { size, source: from.0, target: to.0 });
        }
    }
    loops.sort_by_key(|each| std::cmp::Reverse(each.target));
    loops.push(StridedLoop { size: element_size, source: 1, target: 1 });
    Ok((StridedLoop::merged(&loops), start))
}

/// Removes the loops of rows and columns from the outer ones; `run` contiguous bytes are inside them.
fn inner(loops: &mut Vec<StridedLoop>, run: usize) -> (StridedLoop, StridedLoop, Kernel) {
    let columns = match (run, loops.pop()) {
        (1 | 2 | 4 | 8 | 16, Some(columns)) => columns,
        (_, rows) => {
            let run = StridedLoop { size: run, source: 1, target: 1 };
            return (rows.unwrap_or(StridedLoop::ONCE), run, Kernel::Runs);
        }
    };
    let neighbours = loops.iter().rposition(|rows| rows.source == run as isize);
    match neighbours.filter(|_| columns.target == run as isize && columns.source != 0) {
        Some(at) => (loops.remove(at), columns, Kernel::Transpose(run, TransposeKernel::best(run))),
        None => (loops.pop().unwrap_or(StridedLoop::ONCE), columns, Kernel::Strided(run)),
    }
}

/// A counter over nested loops with the offsets on both sides.
pub(super) struct LoopCounter<'a> {
    loops: &'a [StridedLoop],
    at: Vec<usize>,
    pub(super) source: isize,
    pub(super) target: isize,
}

impl<'a> LoopCounter<'a> {
    pub(super) fn new(loops: &'a [StridedLoop], mut position: usize) -> Self {
        let mut counter = Self { loops, at: vec![0; loops.len()], source: 0, target: 0 };
        for (each, at) in loops.iter().zip(&mut counter.at).rev() {
            *at = position % each.size;
            position /= each.size;
            counter.source += *at as isize * each.source;
            counter.target += *at as isize * each.target;
        }
        counter
    }

    pub(super) fn advance(&mut self) {
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
