//! Several copies into one target, done as one job.

use super::nest::Nest;
use super::pointer::Shared;
use crate::pool::Pool;

/// Fewest bytes for which waking the threads of a pool is worth it.
const SHARED_BYTES: usize = 128 << 10;

/// A copy from one of several sources; offsets in bytes.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) nest: Nest,
    pub(super) source: usize,
    pub(super) source_offset: usize,
    pub(super) target_offset: usize,
}

/// Copies whose targets have no element in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    parts: Vec<Part>,
    bytes: usize,
    pieces: usize,
}

impl Batch {
    pub(super) fn push(&mut self, part: Part) {
        self.bytes = self.bytes.saturating_add(part.nest.bytes());
        self.pieces += part.nest.pieces();
        self.parts.push(part);
    }

    /// How many bytes are written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Does all copies.
    ///
    /// # Safety
    ///
    /// Each part's elements may be read from its source and written to the target, and no written element is read.
    pub(super) unsafe fn run(&self, pool: &Pool, sources: &[*const u8], target: *mut u8) {
        let (sources, target) = (Shared::new(sources), Shared::new(target));
        let piece = |piece: usize| {
            let mut left = piece;
            for part in &self.parts {
                if left < part.nest.pieces() {
                    // SAFETY: the pieces of all parts are disjoint, and the caller vouches for the elements.
                    unsafe {
                        let from = sources.get()[part.source].add(part.source_offset);
                        part.nest.run(left, from, target.get().add(part.target_offset));
                    }
                    return;
                }
                left -= part.nest.pieces();
            }
        };
        if self.bytes < SHARED_BYTES {
            (0..self.pieces).for_each(piece);
        } else {
            pool.run(self.pieces, &|at, _| piece(at));
        }
    }
}
