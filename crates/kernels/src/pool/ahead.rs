//! Memory that workers prefetch while they wait: of the time in which a job has no task left for them, or the caller runs alone,
//! the memory's bandwidth is not lost.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prefetch::prefetch_l2;

/// Bytes that a worker prefetches at most: what follows must not displace what the job before left in its L2 cache.
const MAX_BYTES: usize = 256 << 10;

/// Bytes prefetched between two looks whether the wait is over.
const STEP: usize = 4 * 64;

/// The addresses that a worker has still to prefetch.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Ahead {
    next: AtomicUsize,
    end: AtomicUsize,
}

impl Ahead {
    /// Takes another range, of which only the first [`MAX_BYTES`] are prefetched.
    pub(super) fn take(&self, range: &Range<usize>) {
        self.set(range.start..range.end.min(range.start.saturating_add(MAX_BYTES)));
    }

    /// Whether nothing is left.
    #[cfg(test)]
    pub(super) fn is_done(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.end.load(Ordering::Relaxed)
    }

    fn set(&self, range: Range<usize>) {
        // Between the two stores the range is empty or too long, and nothing is prefetched.
        self.end.store(0, Ordering::Relaxed);
        self.next.store(range.start, Ordering::Release);
        self.end.store(range.end, Ordering::Release);
    }

    /// Prefetches a step; returns whether there was anything to prefetch.
    pub(super) fn step(&self) -> bool {
        let (end, next) = (self.end.load(Ordering::Acquire), self.next.load(Ordering::Acquire));
        if !end.checked_sub(next).is_some_and(|bytes| (1..=MAX_BYTES).contains(&bytes)) {
            return false;
        }
        // Another range may just have been set.
        let step = end.min(next.saturating_add(STEP));
        let moved = self.next.compare_exchange(next, step, Ordering::Relaxed, Ordering::Relaxed);
        if moved.is_ok() {
            (next..step).step_by(64).for_each(|line| prefetch_l2(line as *const u8));
        }
        moved.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_prefetched_once_and_replaced_at_once() {
        let ahead = Ahead::default();
        assert!(!ahead.step());
        let memory = vec![0u8; 1000];
        let start = memory.as_ptr() as usize;
        ahead.set(start..start + memory.len());
        assert_eq!((0..10).filter(|_| ahead.step()).count(), memory.len().div_ceil(STEP));
        ahead.set(start..start + MAX_BYTES);
        assert!(ahead.step());
        ahead.set(start..start + 1);
        assert_eq!((0..10).filter(|_| ahead.step()).count(), 1);
    }

    #[test]
    fn a_range_that_makes_no_sense_is_not_prefetched() {
        let ahead = Ahead::default();
        for (start, end) in [(5, 5), (7, 3), (64, 64 + MAX_BYTES + 1), (usize::MAX, 0)] {
            ahead.set(start..end);
            assert!(!ahead.step(), "{start} to {end}");
        }
    }
}
