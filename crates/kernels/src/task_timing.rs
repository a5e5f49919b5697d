//! Start and end times of tasks, recorded per calling thread.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Recorder>>> = const { RefCell::new(None) };
}

/// The timing of one task.
#[derive(Debug, Clone, Copy)]
pub struct TaskTiming {
    /// The task index.
    pub task: usize,
    /// The worker that ran it.
    pub worker: usize,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

/// Records the timings of the jobs of a thread.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Per worker, so that workers do not contend.
    tasks: Vec<Mutex<Vec<TaskTiming>>>,
}

impl Recorder {
    /// A recorder for jobs of at most `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { tasks: (0..workers).map(|_| Mutex::default()).collect() })
    }

    /// Records the jobs that the calling thread posts until the guard is dropped.
    #[must_use]
    pub fn start(self: &Arc<Self>) -> Recording {
        let before = CURRENT.with_borrow_mut(|current| current.replace(Arc::clone(self)));
        Recording { before }
    }

    /// The timings since the last call, by worker and time.
    pub fn take(&self) -> Vec<TaskTiming> {
        let of = |tasks: &Mutex<Vec<TaskTiming>>| {
            std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.tasks.iter().flat_map(of).collect()
    }

    /// The recorder of the calling thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Runs a task and records its timing.
    pub(crate) fn time(&self, task: usize, worker: usize, work: impl FnOnce()) {
        let start = Instant::now();
        work();
        let end = Instant::now();
        if let Some(tasks) = self.tasks.get(worker) {
            tasks.lock().unwrap_or_else(PoisonError::into_inner).push(TaskTiming {
                task,
                worker,
                start,
                end,
            });
        }
    }
}

/// Jobs of this thread are recorded while the guard lives.
pub struct Recording {
    before: Option<Arc<Recorder>>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use std::num::NonZeroUsize;

    #[test]
    fn only_tasks_of_the_recording_thread_are_recorded() {
        let pool = Pool::new(NonZeroUsize::new(2).unwrap()).unwrap();
        let recorder = Recorder::new(2);
        pool.run(3, &|_, _| ());
        let recording = recorder.start();
        std::thread::scope(|scope| {
            scope.spawn(|| pool.run(5, &|_, _| ()));
        });
        pool.run(8, &|_, _| std::thread::sleep(std::time::Duration::from_micros(50)));
        pool.run(1, &|_, _| ());
        drop(recording);
        pool.run(4, &|_, _| ());
        let tasks = recorder.take();
        assert_eq!(tasks.len(), 9);
        let mut numbers: Vec<usize> = tasks.iter().map(|task| task.task).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(tasks.iter().all(|task| task.worker < 2 && task.end >= task.start));
        assert!(recorder.take().is_empty());
    }
}
