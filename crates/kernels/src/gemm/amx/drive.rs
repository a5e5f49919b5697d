//! Runs the tasks of an AMX GEMM on a thread pool.

use std::ptr::null;

use half::bf16;

use super::lhs::{TileLhs, pack_rows};
use super::multiply::{BUFFERED_BLOCKS, SUM_BYTES, StoreMode, TileOutput, multiply};
use super::task::TileTask;
use super::{Amx, BLOCK_ROWS, ROW_BYTES, stripes};
use crate::buffer::{AllocationError, BufferPool};
use crate::data_movement::NONTEMPORAL_BYTES;
use crate::gemm::drive::GemmTarget;
use crate::gemm::operand::Shape;
use crate::gemm::packed::PackedView;
use crate::gemm::partition::{Partition, PartitionParams, TaskOrder};
use crate::gemm::rows::LhsRows;
use crate::gemm::streams::Streams;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Bytes of rows that are packed at a time, so that they are in cache when they are multiplied.
const MAX_PACKED_BYTES: usize = 4 << 20;

/// Rows of a task of a GEMM with many rows: many, since they are multiplied by a part of a panel while it is in the L1
/// cache, unless there would be too few tasks.
fn task_rows(shape: Shape) -> usize {
    const MANY: usize = 1 << 21;
    if shape.m.saturating_mul(shape.n) < MANY {
        BUFFERED_BLOCKS * BLOCK_ROWS / 2
    } else {
        BUFFERED_BLOCKS * BLOCK_ROWS
    }
}

/// Multiplies rows, in place or packed, by the packed operand, task by task.
///
/// # Safety
///
/// All pointers of the rows and the target are valid for the given sizes; nothing else uses the target during the call.
pub(crate) unsafe fn drive(
    pool: &Pool,
    buffers: &BufferPool,
    tiles: Amx,
    shape: Shape,
    lhs: &dyn LhsRows,
    rhs: PackedView<'_>,
    target: GemmTarget<'_>,
) -> Result<(), AllocationError> {
    let steps = shape.k.div_ceil(tiles.depth());
    let block_bytes = steps * BLOCK_ROWS * ROW_BYTES;
    let table_len = BLOCK_ROWS * lhs.taps();
    let in_place = TileLhs::in_place(tiles, lhs);
    let nontemporal = is_nontemporal(&target, shape);
    let task =
        |first, lhs_source| TileTask { tiles, steps, rhs, target: &target, nontemporal, first, lhs_source };
    let whole = partition(shape, &rhs);
    if in_place.is_none() && stripes::fit(&whole, shape, steps, pool.threads()) {
        let task = task(0, TileLhs::packed(null(), steps));
        // SAFETY: guaranteed by the caller.
        return unsafe { stripes::drive(pool, buffers, &whole, shape, lhs, &task) };
    }
    let blocks = match in_place {
        Some(_) => shape.m.div_ceil(BLOCK_ROWS),
        None => shape.m.div_ceil(BLOCK_ROWS).min((MAX_PACKED_BYTES / block_bytes.max(1)).max(4)),
    };
    let packed = buffers.take(if in_place.is_some() { 1 } else { blocks }.saturating_mul(block_bytes))?;
    let packed_rows = SharedPtr::new(packed.as_ptr());
    for first in (0..shape.m).step_by(blocks * BLOCK_ROWS) {
        let m = (blocks * BLOCK_ROWS).min(shape.m - first);
        let tables = buffers.take(pool.threads() * table_len * size_of::<*const u8>())?;
        let all_tables = SharedPtr::new(tables.as_ptr());
        let pack = |row: usize, to: usize, worker: usize| {
            let count = BLOCK_ROWS.min(m - row);
            // SAFETY: each worker has its own table, each task its own block; the rest is guaranteed by the caller.
            unsafe {
                let table = all_tables.get().cast::<*const u8>().add(worker * table_len);
                let table = std::slice::from_raw_parts_mut(table, table_len);
                pack_rows(lhs, first + row, count, table, steps, packed_rows.get().add(to * block_bytes));
            }
        };
        let lhs_source = match in_place {
            Some(lhs_source) if m.is_multiple_of(BLOCK_ROWS) => lhs_source,
            Some(lhs_source) => {
                let row = m / BLOCK_ROWS * BLOCK_ROWS;
                pack(row, 0, 0);
                lhs_source.with_rest(row, packed.as_ptr())
            }
            None => {
                pool.run(m.div_ceil(BLOCK_ROWS), &|at, worker| pack(at * BLOCK_ROWS, at, worker));
                TileLhs::packed(packed.as_ptr(), steps)
            }
        };
        drop(tables);
        // SAFETY: tasks do not overlap; the rest is guaranteed by the caller.
        unsafe { tasks(pool, buffers, &partition(Shape { m, ..shape }, &rhs), &task(first, lhs_source))? };
    }
    Ok(())
}

/// The partition of an AMX GEMM.
pub(in crate::gemm) fn partition(shape: Shape, rhs: &PackedView<'_>) -> Partition {
    let params =
        PartitionParams { tile_rows: BLOCK_ROWS, many_rows: task_rows(shape), order: TaskOrder::LhsRows };
    Partition::new(shape, &rhs.packed_layout, params)
}

/// Whether to use non-temporal stores: the output is larger than the caches and no sink reads it.
fn is_nontemporal(target: &GemmTarget<'_>, shape: Shape) -> bool {
    let element = if target.rounded { size_of::<bf16>() } else { SUM_BYTES };
    target.sink.is_none() && shape.m.saturating_mul(shape.n * element) >= NONTEMPORAL_BYTES
}

unsafe fn tasks(
    pool: &Pool,
    buffers: &BufferPool,
    partition: &Partition,
    task: &TileTask<'_>,
) -> Result<(), AllocationError> {
    let workers = pool.threads();
    let each = task.scratch_bytes(partition);
    let memory = buffers.take(each * workers)?;
    let scratch_spaces = SharedPtr::new(memory.as_ptr());
    let streams = Streams::of(partition, workers);
    pool.run(partition.tasks(), &|at, worker| {
        let (rows, panels) = partition.task(streams.claim(at, worker));
        // SAFETY: each worker has its own scratch space; the rest is guaranteed by the caller.
        unsafe {
            let scratch_space = scratch_spaces.get().add(worker * each);
            task.compute(rows, panels, scratch_space, worker);
        }
    });
    Ok(())
}

/// Computes a GEMM on the calling thread; `packed` has space for the packed rows, `table` for the pointers of 32 rows.
///
/// # Safety
///
/// As for [`drive`].
#[allow(clippy::too_many_arguments, reason = "the usual parameters of a GEMM")]
pub(crate) unsafe fn block(
    tiles: Amx,
    shape: Shape,
    lhs: &dyn LhsRows,
    rhs: PackedView<'_>,
    packed: *mut u8,
    table: &mut [*const u8],
    out: *mut u8,
    stride: usize,
    accumulate: bool,
) {
    let steps = shape.k.div_ceil(tiles.depth());
    let in_place = TileLhs::in_place(tiles, lhs);
    let whole = if in_place.is_some() { shape.m / BLOCK_ROWS * BLOCK_ROWS } else { 0 };
    for (at, first) in (whole..shape.m).step_by(BLOCK_ROWS).enumerate() {
        let to = packed.wrapping_add(at * BLOCK_ROWS * steps * ROW_BYTES);
        // SAFETY: guaranteed by the caller.
        unsafe { pack_rows(lhs, first, BLOCK_ROWS.min(shape.m - first), table, steps, to) };
    }
    let lhs_source = match in_place {
        Some(lhs_source) => lhs_source.with_rest(whole, packed),
        None => TileLhs::packed(packed, steps),
    };
    let config = tiles.configure();
    let (rows, panels) = (0..shape.m, 0..rhs.panels());
    let mode = if accumulate { StoreMode::Accumulate } else { StoreMode::Overwrite };
    // SAFETY: guaranteed by the caller; what is not read in place has just been packed.
    unsafe {
        multiply(
            &config,
            &lhs_source,
            rows,
            steps,
            rhs,
            panels,
            TileOutput { out, stride, mode, nontemporal: false },
        );
    };
}
