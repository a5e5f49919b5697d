//! A thread pool that runs the tasks of one job at a time.

// A job borrows from its caller while the threads outlive the call; see `Pool::run`.
#![allow(unsafe_code)]

mod ahead;
mod board;
mod joined;

use std::any::Any;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use self::ahead::Ahead;
use self::board::Board;
use crate::task_timing::Recorder;

/// Polls of a waiting thread before it parks: about a tenth of a millisecond, longer than the gaps between the kernels
/// of a run and too short to disturb other processes.
const POLLS_BEFORE_PARK: u32 = 4_000;

/// Polls of the caller for completion before it yields.
const POLLS_BEFORE_YIELD: u32 = 20_000;

/// A thread pool. The calling thread is worker 0.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// The CPU of the calling thread during [`Pool::enter`].
    home: Option<usize>,
    /// Held while a job runs: several threads may share a pool and take turns.
    turn: Mutex<()>,
}

struct Worker {
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

struct Shared {
    board: Board,
    /// Per worker, whether it parks: set before the last poll, so that a job posted later unparks it.
    parked: Vec<AtomicBool>,
    /// What each worker prefetches while it waits.
    ahead: Vec<Ahead>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    leave: AtomicBool,
}

impl Pool {
    /// Creates a pool with that many workers, the calling thread included. Each worker is pinned to a CPU of its own if
    /// there are enough of them.
    ///
    /// # Errors
    ///
    /// When a thread cannot be created.
    pub fn new(threads: NonZeroUsize) -> io::Result<Self> {
        let others = threads.get() - 1;
        let cpus: Vec<usize> = sched_getaffinity(None)
            .map(|set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
            .unwrap_or_default();
        let cpu_of = |worker: usize| (threads.get() <= cpus.len()).then(|| cpus[worker]);
        Self::start(others, cpu_of, |_| ())
    }

    /// A pool with one worker on each of these processors, worker `i` on `cpus[i]`. Worker 0 is the calling thread, which
    /// is on `cpus[0]` during [`Pool::enter`] only. For measurements, which choose their processors.
    ///
    /// # Errors
    ///
    /// When `cpus` is empty, or a thread cannot be started or pinned to its processor.
    pub fn pinned(cpus: &[usize]) -> io::Result<Self> {
        let Some((&home, others)) = cpus.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a pool needs at least one processor"));
        };
        let refused = |cpu: usize, error: io::Error| {
            io::Error::new(error.kind(), format!("cannot use processor {cpu}: {error}"))
        };
        let before = sched_getaffinity(None)?;
        pin(home).map_err(|error| refused(home, error))?;
        sched_setaffinity(None, &before)?;
        let (sender, outcomes) = mpsc::channel();
        let pool = Self::start(
            others.len(),
            |worker| cpus.get(worker).copied(),
            move |outcome| {
                // Nobody listens any more if a thread before this one failed.
                let _ = sender.send(outcome);
            },
        )?;
        for (cpu, outcome) in outcomes.iter().take(others.len()) {
            outcome.map_err(|error| refused(cpu, error))?;
        }
        Ok(pool)
    }

    /// A pool of so many workers beside the caller, on the processors that `cpu_of` gives them. Each worker with a
    /// processor passes the outcome of pinning it to `pinned`.
    fn start(
        others: usize,
        cpu_of: impl Fn(usize) -> Option<usize>,
        pinned: impl FnOnce((usize, io::Result<()>)) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            board: Board::default(),
            parked: (0..=others).map(|_| AtomicBool::new(false)).collect(),
            ahead: (0..=others).map(|_| Ahead::default()).collect(),
            panic: Mutex::new(None),
            leave: AtomicBool::new(false),
        });
        let mut pool =
            Self { shared, workers: Vec::with_capacity(others), home: cpu_of(0), turn: Mutex::new(()) };
        for worker in 1..=others {
            let (shared, cpu, pinned) = (Arc::clone(&pool.shared), cpu_of(worker), pinned.clone());
            let body = move || {
                if let Some(cpu) = cpu {
                    pinned((cpu, pin(cpu)));
                }
                shared.serve(worker);
            };
            let handle = thread::Builder::new().name(format!("warpforge-{worker}")).spawn(body)?;
            pool.workers.push(Worker { thread: handle.thread().clone(), handle: Some(handle) });
        }
        Ok(pool)
    }

    /// The number of workers, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Pins the calling thread to its CPU until the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> Entered {
        let before = self.home.and_then(|cpu| {
            let before = sched_getaffinity(None).ok()?;
            // Nothing is wrong with the results if the system refuses.
            let _ = pin(cpu);
            Some(before)
        });
        Entered { before }
    }

    /// Calls `job` once with each index below `tasks` and the index of the worker that runs it, and waits for all.
    ///
    /// # Panics
    ///
    /// With the panic of a task, after all workers have stopped.
    pub fn run(&self, tasks: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        match Recorder::current() {
            Some(recorder) => self.post(tasks, &|task, worker| {
                recorder.time(task, worker, || job(task, worker));
            }),
            None => self.post(tasks, job),
        }
    }

    /// Tells each worker the addresses that it will read first in a job to come, to prefetch them while it waits. Only the first
    /// 256 KiB are; a worker without a range prefetches nothing.
    pub fn prefetch_while_waiting(&self, first_reads: &[Range<usize>]) {
        for (worker, ahead) in self.shared.ahead.iter().enumerate() {
            ahead.take(first_reads.get(worker).unwrap_or(&(0..0)));
        }
    }

    fn share(&self, tasks: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        if tasks == 0 {
            return;
        }
        if tasks == 1 || self.workers.is_empty() {
            (0..tasks).for_each(|task| job(task, 0));
            return;
        }
        let _turn = lock(&self.turn);
        let shared = &*self.shared;
        // SAFETY: jobs take turns; this call returns only after the job is withdrawn and no worker is inside.
        unsafe { shared.board.post(job, tasks) };
        for (worker, parked) in self.workers.iter().zip(&shared.parked[1..]) {
            if parked.load(Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        let own = catch_unwind(AssertUnwindSafe(|| shared.tasks(job, tasks, 0)));
        if own.is_err() {
            shared.board.cancel(tasks);
        }
        shared.board.withdraw();
        let mut polls = 0;
        while !shared.board.is_left() {
            if shared.ahead[0].step() {
                continue;
            }
            polls += 1;
            if polls < POLLS_BEFORE_YIELD { std::hint::spin_loop() } else { thread::yield_now() }
        }
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        if let Some(panic) = lock(&shared.panic).take() {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
impl Pool {
    /// Waits until a worker has announced that it parks.
    fn wait_until_parked(&self, worker: usize) {
        while !self.shared.parked[worker].load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.leave.store(true, Ordering::SeqCst);
        for worker in &mut self.workers {
            worker.thread.unpark();
            if let Some(handle) = worker.handle.take() {
                // Workers catch the panics of jobs and have none of their own.
                let _ = handle.join();
            }
        }
    }
}

/// Pins the calling thread while it lives.
pub struct Entered {
    before: Option<CpuSet>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Pinning affects only speed: a refusal is ignored.
            let _ = sched_setaffinity(None, &before);
        }
    }
}

impl Shared {
    fn tasks(&self, job: &(dyn Fn(usize, usize) + Sync), tasks: usize, worker: usize) {
        loop {
            let task = self.board.claim();
            if task >= tasks {
                return;
            }
            job(task, worker);
        }
    }

    fn serve(&self, worker: usize) {
        let mut seen = 0;
        while let Some(generation) = self.wait(seen, worker) {
            seen = generation;
            self.board.enter(generation, |job, tasks| {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.tasks(job, tasks, worker))) {
                    self.board.cancel(tasks);
                    lock(&self.panic).get_or_insert(panic);
                }
            });
        }
    }

    /// Waits for a job after the one seen; none when the pool is dropped.
    fn wait(&self, seen: u64, worker: usize) -> Option<u64> {
        loop {
            for _ in 0..POLLS_BEFORE_PARK {
                if let Some(generation) = self.board.posted(seen) {
                    return Some(generation);
                }
                if !self.ahead[worker].step() {
                    std::hint::spin_loop();
                }
            }
            self.parked[worker].store(true, Ordering::SeqCst);
            if self.leave.load(Ordering::SeqCst) {
                return None;
            }
            if self.board.posted(seen).is_none() {
                thread::park();
            }
            self.parked[worker].store(false, Ordering::SeqCst);
        }
    }
}

fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such processor"));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
    }

    #[test]
    fn every_task_runs_once() {
        for threads in [1, 2, 5] {
            let pool = pool(threads);
            let _entered = pool.enter();
            for tasks in [0, 1, 2, 3, 100] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                for _ in 0..50 {
                    pool.run(tasks, &|task, worker| {
                        assert!(worker < threads);
                        counts[task].fetch_add(1, Ordering::Relaxed);
                    });
                }
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 50));
            }
        }
    }

    #[test]
    fn panics_propagate_and_the_pool_stays_usable() {
        let pool = pool(3);
        for task in [0, 7, 63] {
            let panicked =
                catch_unwind(AssertUnwindSafe(|| pool.run(64, &|at, _| assert!(at != task, "task {at}"))));
            let message = *panicked.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(message, format!("task {task}"));
            let sum = AtomicUsize::new(0);
            pool.run(10, &|at, _| {
                sum.fetch_add(at, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 45);
        }
    }

    #[test]
    fn workers_are_on_the_processors_they_are_given() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
        // More workers than some machines have processors: sharing one must work too.
        let cpus = [cpus[0], cpus[cpus.len() - 1], cpus[0]];
        let pool = Pool::pinned(&cpus).unwrap();
        let _entered = pool.enter();
        let all = std::sync::Barrier::new(cpus.len());
        pool.run(cpus.len(), &|_, worker| {
            all.wait();
            let set = sched_getaffinity(None).unwrap();
            assert!(set.is_set(cpus[worker]) && set.count() == 1, "worker {worker}");
        });
    }

    #[test]
    fn processors_that_do_not_exist_are_refused() {
        let last = CpuSet::MAX_CPU - 1;
        let allowed = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        for cpus in [&[usize::MAX][..], &[first, usize::MAX], &[first, last]] {
            let error = Pool::pinned(cpus).err().unwrap().to_string();
            assert!(error.contains(&cpus[cpus.len() - 1].to_string()), "{error}");
        }
        assert!(Pool::pinned(&[]).is_err());
        let after = sched_getaffinity(None).unwrap();
        assert_eq!(after.count(), allowed.count(), "the caller keeps its processors");
    }

    #[test]
    fn parked_workers_wake_up() {
        let pool = pool(2);
        pool.wait_until_parked(1);
        let both = std::sync::Barrier::new(2);
        pool.run(2, &|_, _| {
            both.wait();
        });
    }

    #[test]
    fn workers_prefetch_while_they_wait_for_others() {
        let pool = pool(2);
        let memory = vec![0u8; 4096];
        let start = memory.as_ptr() as usize;
        let range = start..start + memory.len();
        pool.prefetch_while_waiting(&[range.clone(), range]);
        // Whoever has no task has time until the other's is done, and the worker also before there is any.
        pool.run(2, &|_, worker| {
            while worker == 0 && !pool.shared.ahead[1].is_done() {
                std::hint::spin_loop();
            }
        });
        assert!(pool.shared.ahead[1].is_done());
        pool.prefetch_while_waiting(&[]);
        assert!(pool.shared.ahead.iter().all(|ahead| !ahead.step()));
    }
}
