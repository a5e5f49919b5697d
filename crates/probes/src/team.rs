//! A team of threads, each tied to one processor, that start a piece of work together.

// The work borrows from its caller while the threads outlive the call; see `Team::run`.
#![allow(unsafe_code)]

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::affinity;

/// How often a thread looks at the barrier before it lets others run: a team may share processors with other load.
const SPINS_BEFORE_YIELD: u32 = 10_000;

/// Threads that wait, each on its own processor, for work to do together.
///
/// ```
/// let cpus = warpforge_probes::affinity::allowed()?;
/// let mut team = warpforge_probes::team::Team::new(&cpus)?;
/// let parts: Vec<_> = (0..team.size()).map(std::sync::atomic::AtomicUsize::new).collect();
/// let took = team.run(|rank| {
///     parts[rank].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
/// });
/// assert!(took > std::time::Duration::ZERO);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads are asked to do. The true lifetime is that of the call to [`Team::run`] that posted it.
type Job = &'static (dyn Fn(usize) + Sync);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    posted: Condvar,
    finished: Condvar,
    /// Threads that have arrived at the start of the current job.
    arrived: AtomicUsize,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// Counts the jobs, so that a thread takes each only once.
    generation: u64,
    /// Threads that have not finished the current job.
    running: usize,
    /// From the first thread's start to the last one's end.
    span: Option<(Instant, Instant)>,
    panic: Option<Box<dyn Any + Send>>,
    leave: bool,
}

impl Team {
    /// A team with one thread on each of these processors. Rank `i` is on `cpus[i]`.
    ///
    /// # Errors
    /// If `cpus` is empty, or a thread cannot be started or tied to its processor.
    pub fn new(cpus: &[usize]) -> io::Result<Self> {
        if cpus.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a team needs at least one processor"));
        }
        let mut team = Self { shared: Arc::default(), threads: Vec::with_capacity(cpus.len()) };
        let (sender, pinned) = mpsc::channel();
        for (rank, &cpu) in cpus.iter().enumerate() {
            let (shared, sender, size) = (Arc::clone(&team.shared), sender.clone(), cpus.len());
            let body = move || {
                let outcome = affinity::pin_to(cpu).map_err(|error| {
                    io::Error::new(error.kind(), format!("cannot use processor {cpu}: {error}"))
                });
                let usable = outcome.is_ok();
                // Nobody listens any more if a thread before this one failed.
                let _ = sender.send(outcome);
                if usable {
                    shared.serve(rank, size);
                }
            };
            team.threads.push(thread::Builder::new().name(format!("team-{rank}")).spawn(body)?);
        }
        for outcome in pinned.iter().take(cpus.len()) {
            outcome?;
        }
        Ok(team)
    }

    /// How many threads there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.threads.len()
    }

    /// Calls `work` with each rank on its own thread, all released together, and waits for them. The time runs from
    /// the first thread's start after the release to the last thread's end; waking the threads is not in it.
    ///
    /// # Panics
    /// With the panic of a thread whose work panicked, after all have finished.
    pub fn run(&mut self, work: impl Fn(usize) + Sync) -> Duration {
        let job: &(dyn Fn(usize) + Sync) = &work;
        // SAFETY: the longer lifetime is never used: this call returns, or panics, only after every thread has left
        // the job (`running` is 0) and the state's copy of it is gone, and nothing between can return early.
        let job: Job = unsafe { std::mem::transmute(job) };

        let mut state = self.shared.lock();
        self.shared.arrived.store(0, Ordering::Relaxed);
        state.job = Some(job);
        state.generation += 1;
        state.running = self.threads.len();
        state.span = None;
        self.shared.posted.notify_all();
        while state.running > 0 {
            state = wait(&self.shared.finished, state);
        }
        state.job = None;
        let (span, panic) = (state.span, state.panic.take());
        drop(state);

        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        span.map_or(Duration::ZERO, |(start, end)| end - start)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.lock().leave = true;
        self.shared.posted.notify_all();
        for thread in self.threads.drain(..) {
            // A thread ends without a panic: those of the work are caught and handed on by `run`.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The life of the thread with this rank.
    fn serve(&self, rank: usize, size: usize) {
        let mut seen = 0;
        while let Some(job) = self.next_job(&mut seen) {
            self.meet(size);
            let start = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| job(rank)));
            let end = Instant::now();

            let mut state = self.lock();
            state.span = Some(match state.span {
                Some((first, last)) => (first.min(start), last.max(end)),
                None => (start, end),
            });
            if let Err(payload) = outcome {
                state.panic = Some(payload);
            }
            state.running -= 1;
            if state.running == 0 {
                self.finished.notify_one();
            }
        }
    }

    /// Waits for a job later than the one `seen`; none when the team is dissolved.
    fn next_job(&self, seen: &mut u64) -> Option<Job> {
        let mut state = self.lock();
        while state.generation == *seen && !state.leave {
            state = wait(&self.posted, state);
        }
        *seen = state.generation;
        if state.leave { None } else { state.job }
    }

    /// Waits, awake, until all threads are here: a sleeping one would start tens of microseconds late.
    fn meet(&self, size: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < size {
            spins += 1;
            if spins % SPINS_BEFORE_YIELD == 0 {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// The state. No code panics while it holds the lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("generation", &self.lock().generation).finish_non_exhaustive()
    }
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition.wait(state).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three threads, more than some machines have processors: sharing one must work too.
    fn team() -> Team {
        let cpus = affinity::allowed().unwrap();
        Team::new(&[cpus[0], cpus[cpus.len() - 1], cpus[0]]).unwrap()
    }

    #[test]
    fn each_rank_runs_each_job_once_on_its_processor() {
        let mut team = team();
        let first = affinity::allowed().unwrap()[0];
        for round in 1..=50 {
            let calls = [const { AtomicUsize::new(0) }; 3];
            team.run(|rank| {
                calls[rank].fetch_add(round, Ordering::Relaxed);
                if rank == 0 {
                    assert_eq!(affinity::allowed().unwrap(), [first]);
                }
            });
            assert_eq!(calls.map(AtomicUsize::into_inner), [round; 3]);
        }
    }

    #[test]
    fn all_threads_are_in_the_job_at_the_same_time() {
        let inside = AtomicUsize::new(0);
        team().run(|_| {
            inside.fetch_add(1, Ordering::AcqRel);
            while inside.load(Ordering::Acquire) < 3 {
                thread::yield_now();
            }
        });
        assert_eq!(inside.into_inner(), 3);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        let mut team = team();
        let outcome =
            catch_unwind(AssertUnwindSafe(|| team.run(|rank| assert_ne!(rank, 1, "rank one fell"))));
        let payload = outcome.unwrap_err();
        assert!(payload.downcast_ref::<String>().unwrap().contains("rank one fell"));
        let calls = AtomicUsize::new(0);
        team.run(|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.into_inner(), 3);
    }

    #[test]
    fn processors_that_do_not_exist_are_refused() {
        let error = Team::new(&[affinity::allowed().unwrap()[0], usize::MAX]).unwrap_err();
        assert!(error.to_string().contains(&usize::MAX.to_string()), "{error}");
        assert!(Team::new(&[]).is_err());
    }
}
