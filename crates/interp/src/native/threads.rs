//! Work split among threads.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Work worth a thread of its own, in element operations: well above what starting one costs.
const GRAIN: usize = 1 << 17;

/// How many threads an operation may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    count: usize,
}

impl Threads {
    /// This many; none means as many as the machine has.
    pub(crate) fn new(wanted: Option<usize>) -> Self {
        let available = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { count: wanted.unwrap_or_else(available).max(1) }
    }

    /// Calls `work` on each item once, on several threads where `cost` element operations in all are worth it.
    ///
    /// The work is called through a pointer: this is compiled once for each kind of item, not for each work.
    pub(crate) fn each<I>(self, cost: usize, items: I, work: &(dyn Fn(I::Item) + Sync))
    where
        I: Iterator + Send,
    {
        let threads = self.count.min(cost / GRAIN);
        if threads < 2 {
            return items.for_each(work);
        }
        let items = Mutex::new(items);
        let take = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let run = || {
            while let Some(item) = take() {
                work(item);
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // A thread that cannot be had leaves its work to the others.
                let _ = thread::Builder::new().spawn_scoped(scope, run);
            }
            run();
        });
    }

    /// Calls `work` on pieces of a slice, each with the position of its first element; a piece has a multiple of `unit`
    /// elements, the last one what is left. An element costs `cost` operations.
    pub(crate) fn pieces<T: Send>(
        self,
        slice: &mut [T],
        unit: usize,
        cost: usize,
        work: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        let total = slice.len().saturating_mul(cost);
        // More pieces than threads, so that one that is held up does not hold up all.
        let pieces = if total < 2 * GRAIN { 1 } else { self.count * 4 };
        let unit = unit.max(1);
        let size = slice.len().div_ceil(pieces).next_multiple_of(unit).max(1);
        self.each(total, slice.chunks_mut(size).enumerate(), &|(index, piece)| work(index * size, piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_seen_once() {
        for count in [1, 3] {
            for (length, unit) in [(0, 1), (5, 2), (1 << 20, 7), ((1 << 20) + 3, 1)] {
                let mut values = vec![0usize; length];
                Threads::new(Some(count)).pieces(&mut values, unit, 1, &|start, piece| {
                    assert_eq!(start % unit, 0);
                    for (at, value) in piece.iter_mut().enumerate() {
                        *value += start + at;
                    }
                });
                assert!(values.iter().enumerate().all(|(at, &value)| at == value), "{count} {length} {unit}");
            }
        }
    }
}
