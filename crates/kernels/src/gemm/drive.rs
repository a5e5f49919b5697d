//! Runs the tasks of a GEMM on a thread pool.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr;

use super::microkernel::{KernelArgs, KernelFamily, PREFETCH_BYTES};
use super::packed::PackedView;
use super::partition::{Partition, depth_slices};
use super::rows::LhsRows;
use super::streams::Streams;
use crate::buffer::{AllocationError, BufferPool};
use crate::data_movement::{NONTEMPORAL_BYTES, copy_nontemporal};
use crate::output_block::{BlockSink, OutputBlock};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// The output of a GEMM.
#[derive(Clone, Copy)]
pub(crate) struct GemmTarget<'a> {
    /// The first element, or none where blocks exist only for the sink.
    pub(crate) out: Option<*mut u8>,
    /// The row stride, in elements.
    pub(crate) stride: usize,
    /// Whether sums are stored as bf16; only AMX kernels support that, and without a sink.
    pub(crate) rounded: bool,
    /// Whether to add to what the output holds; only vector kernels support that, and with an output.
    pub(crate) accumulate: bool,
    /// Receives every block as soon as it is complete.
    pub(crate) sink: Option<&'a BlockSink<'a>>,
    /// The first row and column, as reported to the sink.
    pub(crate) origin: (usize, usize),
}

// SAFETY: tasks write to disjoint blocks of the output; the sink may be called from any thread.
unsafe impl Sync for GemmTarget<'_> {}

/// Scratch memory of one worker: row pointers, then a block of the output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerScratch {
    /// Number of row pointers.
    pub(crate) addresses: usize,
    /// Number of output elements.
    pub(crate) elements: usize,
}

impl WorkerScratch {
    /// The scratch memory of a task. An output too large for the caches is computed in blocks that are then copied with
    /// non-temporal stores: its rows are too far apart to accumulate in place.
    pub(crate) fn of(
        partition: &Partition,
        taps: usize,
        family: &KernelFamily,
        target: &GemmTarget<'_>,
    ) -> Self {
        let in_place = target.out.is_some()
            && (target.sink.is_some()
                || target.accumulate
                || partition.elements() < NONTEMPORAL_BYTES / family.bytes);
        let columns = partition.panels * family.lanes * family.vectors;
        Self {
            addresses: partition.rows * taps,
            elements: if in_place { 0 } else { partition.rows * columns },
        }
    }

    /// Size in bytes, a multiple of a cache line.
    pub(crate) fn bytes(self, element: usize) -> usize {
        self.block_offset() + (self.elements * element).next_multiple_of(64)
    }

    fn block_offset(self) -> usize {
        (self.addresses * size_of::<*const u8>()).next_multiple_of(64)
    }
}

/// Multiplies the rows by the packed operand, task by task.
///
/// # Safety
///
/// All pointers of the rows and the target are valid for the given sizes; nothing else uses the target during the call.
pub(crate) unsafe fn drive(
    pool: &Pool,
    buffers: &BufferPool,
    family: &KernelFamily,
    partition: &Partition,
    lhs: &dyn LhsRows,
    rhs: PackedView<'_>,
    target: GemmTarget<'_>,
) -> Result<(), AllocationError> {
    let workers = pool.threads();
    let scratch_space = WorkerScratch::of(partition, lhs.taps(), family, &target);
    let each = scratch_space.bytes(family.bytes);
    let memory = buffers.take(each * workers)?;
    let scratch_spaces = SharedPtr::new(memory.as_ptr());
    let streams = Streams::of(partition, workers);
    pool.run(partition.tasks(), &|at, worker| {
        let (rows, panels) = partition.task(streams.claim(at, worker));
        // SAFETY: each worker has its own part of the buffer; tasks do not overlap; the rest is guaranteed by the
        // caller.
        unsafe {
            let space = scratch_spaces.get().add(worker * each);
            run_task(family, lhs, rhs, &target, rows, panels, scratch_space, space, worker);
        }
    });
    Ok(())
}

/// Computes one block of the output and passes it to the sink.
///
/// # Safety
///
/// As for [`drive`]; `space` has as many bytes as `scratch_space` says, for this call alone.
#[allow(
    clippy::too_many_arguments,
    reason = "the loop's invariants; a struct of them would be built for one call"
)]
pub(crate) unsafe fn run_task(
    family: &KernelFamily,
    lhs: &dyn LhsRows,
    rhs: PackedView<'_>,
    target: &GemmTarget<'_>,
    rows: Range<usize>,
    panels: Range<usize>,
    scratch_space: WorkerScratch,
    space: *mut u8,
    worker: usize,
) {
    let count = rows.len();
    let first_column = rhs.panel(panels.start).0.first;
    let last = rhs.panel(panels.end - 1).0;
    let columns = first_column..last.first + last.columns;
    // SAFETY: the space starts with the row pointers, the block follows; the target is as the caller specifies.
    let (table, out, stride) = unsafe {
        let table = std::slice::from_raw_parts_mut(space.cast::<*const u8>(), scratch_space.addresses);
        match target.out {
            Some(out) if scratch_space.elements == 0 => {
                let at = rows.start * target.stride + columns.start;
                (table, out.add(at * family.bytes), target.stride)
            }
            _ => (table, space.add(scratch_space.block_offset()), (last.first + last.width) - columns.start),
        }
    };
    lhs.addresses(rows.start, count, table);
    // SAFETY: the addresses have just been written; the rest is guaranteed by the caller.
    unsafe { multiply(family, lhs, rhs, table, count, panels, out, stride, target.accumulate) };
    match (target.sink, target.out) {
        (Some(sink), _) => {
            let shift = |range: Range<usize>, by: usize| range.start + by..range.end + by;
            let (rows, columns) = (shift(rows, target.origin.0), shift(columns, target.origin.1));
            sink(&OutputBlock { rows, columns, data: out, stride, worker });
        }
        (None, Some(result)) if scratch_space.elements > 0 => {
            let at = (rows.start * target.stride + columns.start) * family.bytes;
            let [from_stride, to_stride, bytes] =
                [stride, target.stride, columns.len()].map(|n| n * family.bytes);
            // SAFETY: the block has just been computed; the target is as the caller specifies.
            unsafe { copy_nontemporal(out, from_stride, result.add(at), to_stride, count, bytes) };
        }
        (None, _) => {}
    }
}

/// Multiplies the rows by some panels. `out` is the element of the first row and the first column of the first panel.
///
/// # Safety
///
/// The pointers are valid for the runs of `lhs`, the result for that many rows and columns.
#[allow(clippy::too_many_arguments, reason = "as above")]
pub(crate) unsafe fn multiply(
    family: &KernelFamily,
    lhs: &dyn LhsRows,
    rhs: PackedView<'_>,
    table: &[*const u8],
    count: usize,
    panels: Range<usize>,
    out: *mut u8,
    stride: usize,
    accumulate: bool,
) {
    let first_column = rhs.panel(panels.start).0.first;
    let format = rhs.packed_layout.format;
    let (taps, run) = (lhs.taps(), format.lead() + lhs.run().div_ceil(format.unit()));
    let stored = format.unit_bytes();
    let widening = (count > WIDENED_ROWS).then(|| KernelFamily::widening(format, family.lanes)).flatten();
    let (family, unit) = match widening {
        Some((_, family)) => (family, 1),
        None => (family, format.unit()),
    };
    // Balanced groups: a single remaining row would leave the FMA units idle.
    let groups = count.div_ceil(family.rows);
    let none = taps * run == 0;
    // Sums over an empty depth are zero, which kernels write when they are called without taps.
    let nothing = none.then_some(super::partition::DepthSlice { tap: 0, taps: 0, skip: 0, run: 0, row: 0 });
    let slices = depth_slices(taps, run, format.slice_unit(), count).filter(|_| !none);
    for slice in nothing.into_iter().chain(slices) {
        for at in panels.clone() {
            let (panel, data) = rhs.panel(at);
            let here = data.wrapping_add(slice.row * panel.width * stored);
            let bytes = slice.taps * slice.run * panel.width * stored;
            let next = match at + 1 < panels.end {
                true => {
                    let (panel, data) = rhs.panel(at + 1);
                    data.wrapping_add(slice.row * panel.width * stored)
                }
                false => {
                    let (panel, data) = rhs.panel(panels.start);
                    let row = slice.row + slice.taps * slice.run;
                    data.wrapping_add(row * panel.width * stored)
                }
            };
            let each = slice.taps * slice.run * PREFETCH_BYTES;
            let elements = format.unit() / unit;
            let mut args = KernelArgs {
                rows: table.as_ptr(),
                pitch: count,
                taps: slice.taps,
                skip: slice.skip * elements,
                run: slice.run * elements,
                unit,
                rhs: here,
                prefetch: next,
                out: out.wrapping_add((panel.first - first_column) * family.bytes),
                out_stride: stride,
                columns: panel.columns,
                accumulate: accumulate || slice.row > 0,
                next_out: ptr::null(),
            };
            args.rows = args.rows.wrapping_add(slice.tap * count);
            let vectors = panel.width / family.lanes;
            let mut tiles = |rhs: *const u8| {
                args.rhs = rhs;
                for group in 0..groups {
                    let rows = (group + 1) * count / groups - group * count / groups;
                    args.prefetch = if group * each < bytes { next.wrapping_add(group * each) } else { here };
                    if args.accumulate {
                        args.next_out = match group + 1 < groups {
                            true => args.out.wrapping_add(rows * stride * family.bytes),
                            false => {
                                out.wrapping_add((panel.first + panel.width - first_column) * family.bytes)
                            }
                        };
                    }
                    // SAFETY: the family was selected by the features of the CPU; the pointers are valid for these
                    // rows, panels and elements.
                    unsafe { family.kernel(rows, vectors)(&args) };
                    args.rows = args.rows.wrapping_add(rows);
                    args.out = args.out.wrapping_add(rows * stride * family.bytes);
                }
            };
            match widening {
                None => tiles(here),
                Some((widen, _)) => {
                    with_widened(slice.taps * slice.run * format.unit() * panel.width, |to| {
                        // SAFETY: the panel has that many steps, and the memory as many elements.
                        unsafe { widen(here, slice.taps * slice.run, format.unit(), panel.width, to) };
                        tiles(to.cast());
                    });
                }
            }
        }
    }
}

/// Rows from which on panels of few bits are widened once for all rows, not by every kernel.
pub(super) const WIDENED_ROWS: usize = 16;

thread_local! {
    static WIDENED: RefCell<Vec<[f32; 16]>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function with memory of the thread for so many elements, aligned to a cache line.
pub(super) fn with_widened(elements: usize, work: impl FnOnce(*mut f32)) {
    WIDENED.with_borrow_mut(|memory| {
        memory.resize(memory.len().max(elements.div_ceil(16) + 1), [0.0; 16]);
        let start = memory.as_mut_ptr().cast::<u8>();
        work(start.wrapping_add(start.align_offset(64)).cast());
    });
}
