//! Products of many rows that kernels do not read where they lie: each worker copies a stripe of them, and multiplies it
//! with all panels while it is in its own second-level cache.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::drive::{Room, Shared, Target, piece};
use super::kernel::Family;
use super::lhs::RowCopy;
use super::memory::{MemoryError, Store};
use super::packed::PackedView;
use super::plan::Cut;
use crate::pool::Pool;

/// Bytes of a stripe at most: half of a second-level cache.
const MOST_BYTES: usize = 1 << 20;
/// How many stripes there are for each worker at least; with fewer, all workers copy the same rows.
const STRIPES_EACH: usize = 4;
/// How many stripes for each worker are shared by all workers, so that they finish together.
const SHARED_EACH: usize = 2;

/// The jobs of a product: whole stripes, then parts of the last ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stripes {
    stripes: usize,
    /// Those that are computed by one worker each.
    whole: usize,
    /// Parts of a stripe that is shared.
    parts: usize,
}

impl Stripes {
    /// The stripes of a product, one for each row of pieces; none where they are too large or too few.
    pub(super) fn of(cut: &Cut, row_bytes: usize, threads: usize) -> Option<Self> {
        let stripes = cut.row_pieces();
        let fit = cut.rows.saturating_mul(row_bytes) <= MOST_BYTES && stripes >= STRIPES_EACH * threads;
        let whole = stripes - (SHARED_EACH * threads).min(stripes);
        fit.then_some(Self { stripes, whole, parts: cut.panel_pieces().count() })
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

/// Computes a product stripe by stripe.
///
/// # Safety
///
/// All addresses of the rows and the target are good for the sizes given; nobody else uses the target meanwhile.
#[allow(clippy::too_many_arguments, reason = "those of a product and of its machine")]
pub(super) unsafe fn drive(
    pool: &Pool,
    store: &Store,
    family: &Family,
    cut: &Cut,
    stripes: Stripes,
    lhs: &RowCopy<'_>,
    rhs: PackedView<'_>,
    target: Target<'_>,
) -> Result<(), MemoryError> {
    let room = Room::of(cut, 1, family, &target);
    let copy_bytes = cut.rows * lhs.stride;
    let each = copy_bytes + room.bytes(family.bytes);
    let memory = store.take(each * pool.threads())?;
    let rooms = Shared(memory.as_ptr());
    let parts: Vec<Range<usize>> = cut.panel_pieces().collect();
    // The stripe that each worker has a copy of.
    let copied: Vec<AtomicUsize> = (0..pool.threads()).map(|_| AtomicUsize::new(usize::MAX)).collect();
    pool.run(stripes.jobs(), &|at, worker| {
        let (stripe, these) = stripes.job(at);
        let rows = cut.piece_rows(stripe);
        // SAFETY: each worker has its own room, of copied rows and what a piece needs; the rest is as the caller
        // promises.
        unsafe {
            let copy = rooms.get().add(worker * each);
            if copied[worker].swap(stripe, Ordering::Relaxed) != stripe {
                lhs.copy(rows.clone(), copy);
            }
            // Rows are counted from the first of all.
            let lhs = lhs.rows(copy.wrapping_sub(rows.start * lhs.stride));
            for panels in &parts[these] {
                let space = copy.add(copy_bytes);
                piece(family, &lhs, rhs, &target, rows.clone(), panels.clone(), room, space, worker);
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_all_parts_of_all_stripes() {
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
