//! Several copies into one target, run as one job.

use super::loop_nest::LoopNest;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Minimum bytes for which a parallel job is faster.
pub(super) const SHARED_BYTES: usize = 128 << 10;

/// A copy from one of several sources; offsets in bytes.
#[derive(Debug, Clone)]
pub(super) struct CopyPart {
    pub(super) nest: LoopNest,
    pub(super) source: usize,
    pub(super) source_offset: usize,
    pub(super) target_offset: usize,
}

/// Copies with disjoint targets.
#[derive(Debug, Clone, Default)]
pub(super) struct CopyBatch {
    parts: Vec<CopyPart>,
    bytes: usize,
    tasks: usize,
}

impl CopyBatch {
    pub(super) fn push(&mut self, part: CopyPart) {
        self.bytes = self.bytes.saturating_add(part.nest.bytes());
        self.tasks += part.nest.tasks();
        self.parts.push(part);
    }

    /// The copies.
    pub(super) fn parts(&self) -> &[CopyPart] {
        &self.parts
    }

    /// How many bytes are written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Runs all copies.
    ///
    /// # Safety
    ///
    /// Each part's elements may be read from its source and written to the target, and no written element is read.
    pub(super) unsafe fn run(&self, pool: &Pool, sources: &[*const u8], target: *mut u8) {
        let (sources, target) = (SharedPtr::new(sources), SharedPtr::new(target));
        let task = |task: usize| {
            let mut left = task;
            for part in &self.parts {
                if left < part.nest.tasks() {
                    // SAFETY: the tasks of all parts are disjoint, and the caller guarantees the elements.
                    unsafe {
                        let from = sources.get()[part.source].add(part.source_offset);
                        part.nest.run(left, from, target.get().add(part.target_offset));
                    }
                    return;
                }
                left -= part.nest.tasks();
            }
        };
        if self.bytes < SHARED_BYTES {
            (0..self.tasks).for_each(task);
        } else {
            pool.run(self.tasks, &|at, _| task(at));
        }
    }
}
