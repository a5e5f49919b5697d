//! Convolutions of several groups of channels: the groups of a block of pixels are computed by one task, so that epilogues get
//! long rows and workers meet once for all groups.

use std::ops::Range;

use super::ConvError;
use super::tap_rows::TapRows;
use crate::gemm::drive::{GemmTarget, multiply};
use crate::gemm::rows::LhsRows;
use crate::gemm::{Gemm, PackedView, Shape};
use crate::output_block::OutputBlock;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Most pixels of a task. The addresses of their taps serve all groups of the task.
const TASK_ROWS: usize = 64;
/// Most bytes of the result of a task: its block is in the L1 cache or close to it when it reaches the sink.
const TASK_BYTES: usize = 64 << 10;
/// Fewest tasks of a large enough convolution.
const MIN_TASKS: usize = 16;
/// Multiplications that are worth a task.
const TASK_WORK: usize = 1 << 18;
/// Bytes of an accumulator.
const SUM_BYTES: usize = 4;

/// The tasks of a convolution: blocks of pixels by ranges of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupTasks {
    /// Pixels of the result, and of a task.
    m: usize,
    rows: usize,
    /// All groups, and those of a task.
    groups: usize,
    together: usize,
}

impl GroupTasks {
    /// Divides so many groups of GEMMs of a shape, for kernels of so many rows.
    fn new(shape: Shape, groups: usize, tile_rows: usize) -> Self {
        let Shape { m, n, k } = shape;
        let row_tasks = m.div_ceil(TASK_ROWS).max(1);
        let rows = m.div_ceil(row_tasks).next_multiple_of(tile_rows).max(tile_rows);
        let row_tasks = m.div_ceil(rows).max(1);
        let work = m.saturating_mul(n).saturating_mul(k).saturating_mul(groups);
        let wanted = (work / TASK_WORK).clamp(1, MIN_TASKS);
        let fitting = (TASK_BYTES / (rows * n.max(1) * SUM_BYTES).max(1)).max(1);
        let ranges = wanted.div_ceil(row_tasks).max(groups.div_ceil(fitting)).min(groups);
        Self { m, rows, groups, together: (groups / ranges.max(1)).max(1) }
    }

    fn ranges(&self) -> usize {
        self.groups.div_ceil(self.together)
    }

    fn count(&self) -> usize {
        self.m.div_ceil(self.rows) * self.ranges()
    }

    /// The pixels and groups of a task. Consecutive tasks share pixels.
    fn task(&self, at: usize) -> (Range<usize>, Range<usize>) {
        let (row, range) = (at / self.ranges() * self.rows, at % self.ranges() * self.together);
        (row..self.m.min(row + self.rows), range..self.groups.min(range + self.together))
    }
}

/// Multiplies the taps of each group by its weights. `taps` are those of the first group; all elements of a pixel can be read behind
/// each address, zeros too. Nothing is done where the kernels are none that multiply few columns by vectors.
///
/// # Safety
///
/// As for [`Convolution::run`](super::Convolution::run).
pub(super) unsafe fn multiply_groups(
    gemm: &Gemm,
    pool: &Pool,
    shape: Shape,
    taps: &TapRows<'_>,
    weights: &[PackedView<'_>],
    target: GemmTarget<'_>,
) -> Result<bool, ConvError> {
    let Some(family) = gemm.vector_kernels() else { return Ok(false) };
    let Some(panels) = weights.first().map(PackedView::panels) else { return Ok(false) };
    if shape.m == 0 || shape.n == 0 {
        return Ok(true);
    }
    for weights in weights {
        gemm.check(weights, shape.k, Some(shape.n))?;
    }
    let tasks = GroupTasks::new(shape, weights.len(), family.rows);
    let n = shape.n;
    let window = taps.taps();
    let table_bytes = (tasks.rows * window * size_of::<*const u8>()).next_multiple_of(64);
    let block = if target.out.is_some() { 0 } else { tasks.rows * tasks.together * n * family.bytes };
    let each = table_bytes + block.next_multiple_of(64);
    let memory = gemm.scratch_buffer(each.saturating_mul(pool.threads()))?;
    let memory = SharedPtr::new(memory.as_ptr());
    let step = taps.run() * taps.element().byte_width();
    let whole = &target;
    pool.run(tasks.count(), &|at, worker| {
        // The target as a whole can be shared between threads, its parts cannot.
        let target: &GemmTarget<'_> = whole;
        let (rows, groups) = tasks.task(at);
        let count = rows.len();
        let first_column = groups.start * n;
        // SAFETY: each worker has its own part of the memory; tasks do not overlap; the rest is guaranteed by the caller.
        unsafe {
            let space = memory.get().add(worker * each);
            let table = std::slice::from_raw_parts_mut(space.cast::<*const u8>(), count * window);
            let (out, stride) = match target.out {
                Some(out) => {
                    let at = rows.start * target.stride + first_column;
                    (out.add(at * family.bytes), target.stride)
                }
                None => (space.add(table_bytes), groups.len() * n),
            };
            taps.addresses(rows.start, count, table);
            advance(table, groups.start * step);
            for (at, group) in groups.clone().enumerate() {
                if at > 0 {
                    advance(table, step);
                }
                let out = out.add(at * n * family.bytes);
                multiply(family, taps, weights[group], table, count, 0..panels, out, stride, false);
            }
            if let Some(sink) = target.sink {
                let columns = first_column..groups.end * n;
                sink(&OutputBlock { rows, columns, data: out, stride, worker });
            }
        }
    });
    Ok(true)
}

/// Moves all addresses by so many bytes.
fn advance(table: &mut [*const u8], bytes: usize) {
    table.iter_mut().for_each(|address| *address = address.wrapping_add(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_cover_all_groups_of_all_pixels_once() {
        for (m, n, k, groups) in [
            (1, 1, 1, 2),
            (196, 16, 144, 20),
            (49, 16, 144, 49),
            (3136, 4, 36, 32),
            (12544, 8, 72, 3),
            (0, 4, 9, 2),
        ] {
            let tasks = GroupTasks::new(Shape { m, n, k }, groups, 8);
            let mut seen = vec![0; m * groups];
            for at in 0..tasks.count() {
                let (rows, groups_of_task) = tasks.task(at);
                assert!(rows.len() * groups_of_task.len() > 0 && rows.len() <= TASK_ROWS);
                rows.for_each(|row| groups_of_task.clone().for_each(|group| seen[row * groups + group] += 1));
            }
            assert!(seen.iter().all(|&times| times == 1), "{m}x{n}x{k} of {groups}");
        }
        // Small images of many groups have tasks for all workers.
        assert!(GroupTasks::new(Shape { m: 49, n: 16, k: 144 }, 49, 8).count() >= MIN_TASKS);
    }
}
