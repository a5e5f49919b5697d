//! GEMMs of many rows that must be copied: each worker copies a stripe of rows and multiplies it by all panels while it
//! is in its own L2 cache.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::drive::{GemmTarget, WorkerScratch, run_task};
use super::microkernel::KernelFamily;
use super::packed::PackedView;
use super::partition::Partition;
use super::row_copier::RowCopier;
use crate::buffer::{AllocationError, BufferPool};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Maximum bytes of a stripe: half of an L2 cache.
const MAX_STRIPE_BYTES: usize = 1 << 20;
/// Minimum stripes per worker; with fewer, all workers share copied rows.
const STRIPES_PER_WORKER: usize = 4;
/// Stripes per worker that are split among all workers, for load balance.
const SHARED_STRIPES_PER_WORKER: usize = 2;

/// The jobs of a GEMM: whole stripes, then parts of the last ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stripes {
    stripes: usize,
    /// Stripes that one worker computes as a whole.
    whole: usize,
    /// Parts of a stripe that is shared.
    parts: usize,
}

impl Stripes {
    /// The stripes of a GEMM, one per row of tasks; none where they are too large or too few.
    pub(super) fn of(partition: &Partition, row_bytes: usize, threads: usize) -> Option<Self> {
        let stripes = partition.row_tasks();
        let fit = partition.rows.saturating_mul(row_bytes) <= MAX_STRIPE_BYTES
            && stripes >= STRIPES_PER_WORKER * threads;
        let whole = stripes - (SHARED_STRIPES_PER_WORKER * threads).min(stripes);
        fit.then_some(Self { stripes, whole, parts: partition.panel_tasks().count() })
    }

    fn jobs(self) -> usize {
        self.whole + (self.stripes - self.whole) * self.parts
    }

    /// The stripe of a job and which of its parts.
    fn job(self, at: usize) -> (usize, Range<usize>) {
        match at.checked_sub(self.whole) {
            None => (at, 0..self.parts),
            Some(part) => (self.whole + part / self.parts, part % self.parts..part % self.parts + 1),
        }
    }
}

/// Computes a GEMM stripe by stripe.
///
/// # Safety
///
/// All pointers of the rows and the target are valid for the given sizes; nothing else uses the target during the call.
#[allow(clippy::too_many_arguments, reason = "the parameters of a GEMM and its kernels")]
pub(super) unsafe fn drive(
    pool: &Pool,
    buffers: &BufferPool,
    family: &KernelFamily,
    partition: &Partition,
    stripes: Stripes,
    lhs: &RowCopier<'_>,
    rhs: PackedView<'_>,
    target: GemmTarget<'_>,
) -> Result<(), AllocationError> {
    let scratch_space = WorkerScratch::of(partition, 1, family, &target);
    let copy_bytes = partition.rows * lhs.stride;
    let each = copy_bytes + scratch_space.bytes(family.bytes);
    let memory = buffers.take(each * pool.threads())?;
    let scratch_spaces = SharedPtr::new(memory.as_ptr());
    let parts: Vec<Range<usize>> = partition.panel_tasks().collect();
    // The stripe whose copy each worker holds.
    let copied: Vec<AtomicUsize> = (0..pool.threads()).map(|_| AtomicUsize::new(usize::MAX)).collect();
    pool.run(stripes.jobs(), &|at, worker| {
        let (stripe, these) = stripes.job(at);
        let rows = partition.task_rows(stripe);
        // SAFETY: each worker has its own scratch space for copied rows and for a task; the rest is guaranteed by the
        // caller.
        unsafe {
            let copy = scratch_spaces.get().add(worker * each);
            if copied[worker].swap(stripe, Ordering::Relaxed) != stripe {
                lhs.copy(rows.clone(), copy);
            }
            // Row indices are absolute.
            let lhs = lhs.rows(copy.wrapping_sub(rows.start * lhs.stride));
            for panels in &parts[these] {
                let space = copy.add(copy_bytes);
                run_task(
                    family,
                    &lhs,
                    rhs,
                    &target,
                    rows.clone(),
                    panels.clone(),
                    scratch_space,
                    space,
                    worker,
                );
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_cover_all_parts_of_all_stripes() {
        for (stripes, whole, parts) in [(22, 18, 4), (8, 0, 3), (9, 9, 2)] {
            let stripes = Stripes { stripes, whole, parts };
            let mut done = vec![0; stripes.stripes * parts];
            for (stripe, these) in (0..stripes.jobs()).map(|at| stripes.job(at)) {
                these.for_each(|part| done[stripe * parts + part] += 1);
            }
            assert!(done.iter().all(|&times| times == 1), "{stripes:?}");
        }
    }
}
