//! The order in which workers take the tasks of a GEMM.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::partition::Partition;

/// The tasks of a GEMM. Where all panels are read once they are divided among workers: each takes tasks that lie one after the other, so
/// that what a kernel prefetches beyond its panel is its own next one, and only at the end those of others.
#[derive(Debug)]
pub(in crate::gemm) struct Streams {
    /// None where workers share panels.
    streams: Vec<Stream>,
}

/// The tasks of a worker that nobody has taken. Its cache lines are its own.
#[derive(Debug)]
#[repr(align(128))]
struct Stream {
    next: AtomicUsize,
    end: usize,
}

impl Streams {
    /// The streams of a partition.
    pub(in crate::gemm) fn of(partition: &Partition, workers: usize) -> Self {
        let streams = partition.streams(workers).into_iter().flatten();
        let stream = |tasks: Range<usize>| Stream { next: AtomicUsize::new(tasks.start), end: tasks.end };
        Self { streams: streams.map(stream).collect() }
    }

    /// The next task of a worker, which makes the `at`-th call, or of another one once it has none left. There are as many calls as tasks.
    pub(in crate::gemm) fn claim(&self, at: usize, worker: usize) -> usize {
        let count = self.streams.len();
        if count == 0 {
            return at;
        }
        let claimed = (0..count).map(|at| &self.streams[(worker + at) % count]).find_map(|stream| {
            let task = stream.next.fetch_add(1, Ordering::Relaxed);
            (task < stream.end).then_some(task)
        });
        claimed.unwrap_or_else(|| unreachable!("there are as many calls as tasks"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::operand::Shape;
    use super::super::packed::{PackedFormat, PackedLayout};
    use super::super::partition::{PartitionParams, TaskOrder};
    use super::*;

    fn partition(m: usize, n: usize) -> Partition {
        let packed_layout =
            PackedLayout { format: PackedFormat::F32, lanes: 16, vectors: 3, group: 1, row_multiple: 1 };
        let params = PartitionParams { tile_rows: 8, many_rows: 96, order: TaskOrder::Panels };
        Partition::new(Shape { m, n, k: 576 }, &packed_layout, params)
    }

    #[test]
    fn a_worker_takes_its_own_tasks_in_order_and_then_those_of_others() {
        let streams = Streams::of(&partition(1, 48 * 8), 3);
        let taken = [0, 1, 0, 2, 1, 1, 1, 0].map(|worker| streams.claim(0, worker));
        assert_eq!(taken, [0, 2, 1, 5, 3, 4, 6, 7]);
        let shared = Streams::of(&partition(600, 576), 2);
        assert_eq!([(0, 1), (1, 0), (2, 0)].map(|(at, worker)| shared.claim(at, worker)), [0, 1, 2]);
    }

    #[test]
    fn every_task_is_taken_once() {
        for (m, n, workers) in [(1, 49_152, 2), (3, 32_000, 16), (1, 5000, 1), (1, 96, 5), (8, 48, 2)] {
            let (partition, mut random) = (partition(m, n), fastrand::Rng::with_seed(n as u64));
            let streams = Streams::of(&partition, workers);
            let mut taken: Vec<usize> =
                (0..partition.tasks()).map(|at| streams.claim(at, random.usize(..workers))).collect();
            taken.sort_unstable();
            assert!(taken.into_iter().eq(0..partition.tasks()), "{m} {n} {workers}");
        }
    }
}
