//! AMX GEMMs of many rows that must be packed: each worker packs a stripe of rows and multiplies it by all panels while
//! it is in its own L2 cache.

use super::lhs::{TileLhs, pack_rows};
use super::task::TileTask;
use super::{BLOCK_ROWS, ROW_BYTES};
use crate::buffer::{AllocationError, BufferPool};
use crate::gemm::operand::Shape;
use crate::gemm::partition::Partition;
use crate::gemm::rows::LhsRows;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Maximum bytes of a packed stripe: half of an L2 cache.
const MAX_STRIPE_BYTES: usize = 1 << 20;
/// Minimum stripes per worker, for load balance.
const STRIPES_PER_WORKER: usize = 4;

/// Whether to partition a GEMM into stripes: they fit into a cache, and there are enough of them.
pub(super) fn fit(partition: &Partition, shape: Shape, steps: usize, threads: usize) -> bool {
    let bytes = steps.saturating_mul(partition.rows * ROW_BYTES);
    bytes <= MAX_STRIPE_BYTES && shape.m / partition.rows >= STRIPES_PER_WORKER * threads
}

/// Computes a GEMM stripe by stripe. `task` is the context of the tasks, without rows.
///
/// # Safety
///
/// All pointers of the rows and the target are valid for the given sizes; nothing else uses the target during the call.
pub(super) unsafe fn drive(
    pool: &Pool,
    buffers: &BufferPool,
    partition: &Partition,
    shape: Shape,
    lhs: &dyn LhsRows,
    task: &TileTask<'_>,
) -> Result<(), AllocationError> {
    let block_bytes = task.steps * BLOCK_ROWS * ROW_BYTES;
    let packed_bytes = partition.rows / BLOCK_ROWS * block_bytes;
    let table_len = BLOCK_ROWS * lhs.taps();
    let table_bytes = (table_len * size_of::<*const u8>()).next_multiple_of(ROW_BYTES);
    let each = packed_bytes + table_bytes + task.scratch_bytes(partition);
    let memory = buffers.take(each * pool.threads())?;
    let scratch_spaces = SharedPtr::new(memory.as_ptr());
    pool.run(shape.m.div_ceil(partition.rows), &|at, worker| {
        let rows = at * partition.rows..shape.m.min((at + 1) * partition.rows);
        // SAFETY: each worker has its own scratch space for packed rows, row pointers and sums; the rest is guaranteed
        // by the caller.
        unsafe {
            let packed = scratch_spaces.get().add(worker * each);
            let table = packed.add(packed_bytes);
            let sums = table.add(table_bytes);
            let table = std::slice::from_raw_parts_mut(table.cast::<*const u8>(), table_len);
            for (block, first) in rows.clone().step_by(BLOCK_ROWS).enumerate() {
                let count = BLOCK_ROWS.min(rows.end - first);
                pack_rows(lhs, first, count, table, task.steps, packed.add(block * block_bytes));
            }
            let task = task.of_rows(rows.start, TileLhs::packed(packed, task.steps));
            for panels in partition.panel_tasks() {
                task.compute(0..rows.len(), panels, sums, worker);
            }
        }
    });
    Ok(())
}
