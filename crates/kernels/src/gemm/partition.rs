//! The partition of a GEMM into tasks, which depends on its sizes alone.

use std::ops::Range;

use super::microkernel::WAITING_ROWS;
use super::operand::Shape;
use super::packed::PackedLayout;

/// Minimum rows of a task of a GEMM with few rows.
const MIN_TASK_ROWS: usize = 128;
/// Maximum rows of a GEMM that counts as having few: its tasks read each panel once or twice.
const FEW_ROWS: usize = 256;
/// Output bytes of a task, so that the block is in cache when it reaches its sink.
const RESULT_BYTES: usize = 256 << 10;
/// Minimum number of tasks of a large enough GEMM, for load balance.
const MIN_TASKS: usize = 24;
/// Bytes of the rows of a task that leave too little of an L2 cache: every task reads the rows again, so there are
/// fewer tasks.
const LARGE_LHS_BYTES: usize = 1 << 20;
/// Minimum number of tasks of such a GEMM.
const MIN_TASKS_LARGE_LHS: usize = 8;
/// Maximum bytes of the panels of a task where one kernel takes all rows: such a task takes as long as its panels are read, and
/// workers wait for the last one.
const STREAMED_BYTES: usize = 1 << 20;
/// Bytes of an accumulator.
const SUM_BYTES: usize = 4;

/// Rows of a task of a vector GEMM with many rows, by the size of the right-hand operand. Few rows make wide tasks,
/// which read their rows once and pass long rows to the sink; panels from outside the L2 cache need enough rows to hide
/// the prefetch of the next panel.
pub(super) fn task_rows(shape: Shape, packed_layout: &PackedLayout) -> usize {
    const SECOND_LEVEL: usize = 1 << 20;
    let rhs_bytes = shape.k.saturating_mul(shape.n).saturating_mul(packed_layout.format.bytes());
    if rhs_bytes < SECOND_LEVEL { 64 } else { MANY_ROWS }
}

/// Maximum rows of a task of a GEMM with many rows.
const MANY_ROWS: usize = 96;

/// Depth of a slice for a task with `rows` rows. Shallower slices load and store accumulators more often; deeper ones
/// evict the rows from the L2 cache before the last panel. Tasks of more than [`MANY_ROWS`] rows belong to GEMMs with
/// few rows, whose panels come from memory and are read once. One or two rows stay in cache beside a panel that is read to its end.
fn depth(rows: usize) -> usize {
    match rows {
        _ if rows <= WAITING_ROWS => usize::MAX,
        _ if rows <= MANY_ROWS => 1024,
        _ => 384,
    }
}

/// The tasks of a GEMM: blocks of rows and panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Rows of a task.
    pub(super) rows: usize,
    /// Panels of a task.
    pub(super) panels: usize,
    m: usize,
    n: usize,
    all_panels: usize,
    /// The order of tasks.
    order: TaskOrder,
}

/// The order of tasks: consecutive tasks share the operand that should stay in cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskOrder {
    /// Consecutive tasks share panels.
    Panels,
    /// Consecutive tasks share rows: kernels prefetch panels, but not rows.
    LhsRows,
}

/// Parameters of a partition besides the sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartitionParams {
    /// Rows of a micro-kernel.
    pub(crate) tile_rows: usize,
    /// Rows of a task of a GEMM with many rows.
    pub(crate) many_rows: usize,
    /// The order of tasks.
    pub(crate) order: TaskOrder,
}

impl Partition {
    /// Partitions a GEMM.
    pub(crate) fn new(shape: Shape, packed_layout: &PackedLayout, params: PartitionParams) -> Self {
        let PartitionParams { tile_rows, many_rows, order } = params;
        let all_panels = packed_layout.panels(shape.n).count();
        let even = |most: usize| {
            let tasks = shape.m.div_ceil(most).max(1);
            shape.m.div_ceil(tasks).next_multiple_of(tile_rows).max(tile_rows)
        };
        let rows = even(match shape.m <= FEW_ROWS {
            true => (shape.m * all_panels / MIN_TASKS).max(MIN_TASK_ROWS),
            false => many_rows,
        });
        let row_tasks = shape.m.div_ceil(rows).max(1);
        let width = packed_layout.lanes * packed_layout.vectors;
        let most_panels = (RESULT_BYTES / (rows * width * SUM_BYTES)).max(1);
        let left_bytes = rows.saturating_mul(shape.k).saturating_mul(packed_layout.format.of_rows().bytes());
        let tasks = if left_bytes > LARGE_LHS_BYTES { MIN_TASKS_LARGE_LHS } else { MIN_TASKS };
        let for_balance = (all_panels * row_tasks / tasks).max(1);
        let panel_bytes =
            packed_layout.units(shape.k).saturating_mul(packed_layout.format.unit_bytes() * width);
        let streamed = match shape.m <= tile_rows {
            true => (STREAMED_BYTES / panel_bytes.max(1)).max(1),
            false => usize::MAX,
        };
        let panel_tasks = all_panels.div_ceil(most_panels.min(for_balance).min(streamed)).max(1);
        Self {
            rows,
            panels: all_panels.div_ceil(panel_tasks).max(1),
            m: shape.m,
            n: shape.n,
            all_panels,
            order,
        }
    }

    /// The number of tasks.
    pub(super) fn tasks(&self) -> usize {
        self.row_tasks() * self.all_panels.div_ceil(self.panels)
    }

    /// The tasks of each of so many workers, where every panel is read once: the panels of a worker lie one after the other.
    pub(super) fn streams(&self, workers: usize) -> Option<impl Iterator<Item = Range<usize>> + use<>> {
        (self.row_tasks() == 1).then(|| divided(self.tasks(), workers))
    }

    /// The panels that each of so many workers reads first, where every panel is read once.
    pub(super) fn first_panels(&self, workers: usize) -> impl Iterator<Item = Range<usize>> {
        let streams = self.streams(workers).into_iter().flatten().filter(|tasks| !tasks.is_empty());
        streams.map(|tasks| self.task(tasks.start).1.start..self.task(tasks.end - 1).1.end)
    }

    /// Elements of the result.
    pub(super) fn elements(&self) -> usize {
        self.m.saturating_mul(self.n)
    }

    /// Number of tasks along the rows.
    pub(super) fn row_tasks(&self) -> usize {
        self.m.div_ceil(self.rows)
    }

    /// The rows of one row of tasks.
    pub(super) fn task_rows(&self, at: usize) -> Range<usize> {
        at * self.rows..self.m.min((at + 1) * self.rows)
    }

    /// The panels of each task of a row of tasks.
    pub(super) fn panel_tasks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (all, each) = (self.all_panels, self.panels);
        (0..all).step_by(each).map(move |first| first..all.min(first + each))
    }

    /// The rows and panels of a task.
    pub(super) fn task(&self, at: usize) -> (Range<usize>, Range<usize>) {
        let (row_tasks, panel_tasks) = (self.row_tasks(), self.all_panels.div_ceil(self.panels));
        let (row, panel) = match self.order {
            TaskOrder::Panels => (at % row_tasks, at / row_tasks),
            TaskOrder::LhsRows => (at / panel_tasks, at % panel_tasks),
        };
        let first = panel * self.panels;
        (self.task_rows(row), first..(first + self.panels).min(self.all_panels))
    }
}

/// The tasks of each of so many workers.
fn divided(tasks: usize, workers: usize) -> impl Iterator<Item = Range<usize>> {
    let start = move |worker: usize| worker * tasks / workers.max(1);
    (0..workers).map(move |worker| start(worker)..start(worker + 1))
}

/// A slice of the reduction depth: whole taps, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DepthSlice {
    /// The first tap.
    pub(super) tap: usize,
    /// How many taps.
    pub(super) taps: usize,
    /// The first element of each of their runs.
    pub(super) skip: usize,
    /// Elements of each of their runs.
    pub(super) run: usize,
    /// The row of the right-hand operand of the first element.
    pub(super) row: usize,
}

/// The depth slices of `taps` taps of `run` steps of `unit` elements, in order, for a task of `rows` rows.
pub(super) fn depth_slices(
    taps: usize,
    run: usize,
    unit: usize,
    rows: usize,
) -> impl Iterator<Item = DepthSlice> {
    let depth = (depth(rows) / unit.max(1)).max(1);
    let parts = run.div_ceil(depth).max(1);
    let part = run.div_ceil(parts);
    let together = if parts == 1 { (depth / run.max(1)).clamp(1, taps.max(1)) } else { 1 };
    (0..taps).step_by(together).flat_map(move |tap| {
        (0..parts).map(move |at| {
            let skip = at * part;
            DepthSlice {
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
    use super::super::packed::PackedFormat;
    use super::*;

    #[test]
    fn tasks_cover_a_gemm_once() {
        let packed_layout =
            PackedLayout { format: PackedFormat::F32, lanes: 16, vectors: 3, group: 1, row_multiple: 1 };
        for (m, n, k) in [
            (1, 1, 1),
            (128, 768, 768),
            (1024, 384, 384),
            (2048, 2048, 2048),
            (97, 33, 7),
            (5, 32000, 512),
            (3, 0, 2),
        ] {
            let order = if m > n { TaskOrder::LhsRows } else { TaskOrder::Panels };
            let params = PartitionParams { tile_rows: 8, many_rows: 96, order };
            let partition = Partition::new(Shape { m, n, k }, &packed_layout, params);
            let mut seen = vec![0; m * packed_layout.panels(n).count()];
            for at in 0..partition.tasks() {
                let (rows, panels) = partition.task(at);
                assert!(!rows.is_empty() && !panels.is_empty());
                for row in rows {
                    for panel in panels.clone() {
                        seen[row * packed_layout.panels(n).count() + panel] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{m}x{n}x{k}");
        }
    }

    #[test]
    fn workers_begin_with_the_panels_of_their_own_tasks() {
        let packed_layout =
            PackedLayout { format: PackedFormat::F32, lanes: 16, vectors: 3, group: 1, row_multiple: 1 };
        let params = PartitionParams { tile_rows: 8, many_rows: 96, order: TaskOrder::Panels };
        let first = |m, n, workers| -> Vec<Range<usize>> {
            Partition::new(Shape { m, n, k: 576 }, &packed_layout, params).first_panels(workers).collect()
        };
        assert_eq!(first(1, 48 * 8, 2), [0..4, 4..8]);
        assert_eq!(first(1, 48 * 8, 3), [0..2, 2..5, 5..8]);
        assert_eq!(first(1, 48 * 2, 5), [0..1, 1..2]);
        assert_eq!(first(600, 48 * 8, 2), []);
    }

    #[test]
    fn depth_slices_cover_all_rows_in_order() {
        for (taps, run) in [(1, 1), (1, 0), (0, 5), (9, 64), (9, 3), (1, 3072), (9, 700), (49, 3)] {
            for rows in [MANY_ROWS, 128] {
                let mut next = 0;
                for slice in depth_slices(taps, run, 1, rows) {
                    assert_eq!(slice.row, next, "{taps} taps of {run}, {rows} rows");
                    assert!(slice.taps * slice.run <= depth(rows), "{taps} taps of {run}, {rows} rows");
                    next += slice.taps * slice.run;
                }
                assert_eq!(next, taps * run);
            }
        }
    }
}
