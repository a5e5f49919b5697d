//! Work in parallel: items in order, taken in chunks by threads that live as long as the call.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The threads that this process may use.
#[must_use]
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

/// Applies `work` to every chunk of `items` of at most `size`, and returns the results in the order of the chunks.
pub(crate) fn map_chunks<T: Sync, R: Send>(
    items: &[T],
    size: usize,
    threads: usize,
    work: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    let chunks: Vec<&[T]> = items.chunks(size.max(1)).collect();
    map_indices(chunks.len(), threads, |index| work(chunks[index]))
}

/// Applies `work` to every index below `count`, and returns the results in order.
pub(crate) fn map_indices<R: Send>(count: usize, threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_indices_with(count, threads, || (), |(), index| work(index))
}

/// As [`map_indices`], with a state that each thread keeps between calls, such as memory that is used again.
pub(crate) fn map_indices_with<R: Send, S>(
    count: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
) -> Vec<R> {
    let threads = threads.clamp(1, count.max(1));
    if threads == 1 {
        let mut state = state();
        return (0..count).map(|index| work(&mut state, index)).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut state = state();
                let mut own = Vec::new();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    own.push((index, work(&mut state, index)));
                }
                done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut own);
            });
        }
    });
    let mut results = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_at_any_thread_count() {
        let items: Vec<u32> = (0..1000).collect();
        for threads in [0, 1, 3, 64] {
            let sums = map_chunks(&items, 7, threads, |chunk| chunk.iter().sum::<u32>());
            assert_eq!(sums.len(), 143);
            assert_eq!(sums[1], (7..14).sum());
            assert_eq!(sums.iter().sum::<u32>(), 499_500);
        }
        assert!(map_indices(0, 4, |index| index).is_empty());
    }
}
