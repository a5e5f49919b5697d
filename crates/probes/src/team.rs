//! The engine's thread pool as a measurement needs it: every thread pinned, all released together, the time taken inside.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warpforge_kernels::pool::Pool;

/// How often a thread looks at the barrier before it lets others run: a team may share processors with other load.
const SPINS_BEFORE_YIELD: u32 = 10_000;

/// A thread pool with one thread on each of the chosen processors, the calling thread among them.
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
pub struct Team {
    pool: Pool,
}

impl Team {
    /// A team with one thread on each of these processors. Rank `i` is on `cpus[i]`.
    ///
    /// # Errors
    /// If `cpus` is empty, or a thread cannot be started or pinned to its processor.
    pub fn new(cpus: &[usize]) -> io::Result<Self> {
        Ok(Self { pool: Pool::pinned(cpus)? })
    }

    /// How many threads there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pool.threads()
    }

    /// The pool, for kernels that divide their work among its threads.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Calls `work` with each rank on its own thread, all released together, and waits for them. The time runs from
    /// the first thread's start after the release to the last thread's end; waking the threads is not in it.
    ///
    /// # Panics
    /// With the panic of a thread whose work panicked, after all have finished.
    pub fn run(&mut self, work: impl Fn(usize) + Sync) -> Duration {
        let size = self.size();
        let arrived = AtomicUsize::new(0);
        let span: Mutex<Option<(Instant, Instant)>> = Mutex::new(None);
        let _entered = self.pool.enter();
        // A thread waits in its piece until every other thread is in one, so each takes exactly one.
        self.pool.run(size, &|_, rank| {
            meet(&arrived, size);
            let start = Instant::now();
            work(rank);
            let end = Instant::now();
            let mut span = span.lock().unwrap_or_else(PoisonError::into_inner);
            *span = Some(span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        });
        let span = span.into_inner().unwrap_or_else(PoisonError::into_inner);
        span.map_or(Duration::ZERO, |(start, end)| end - start)
    }

    /// Calls `work` with the pool while the calling thread is on its own processor, and says how long it took.
    pub fn run_shared<T>(&mut self, work: impl FnOnce(&Pool) -> T) -> (Duration, T) {
        let _entered = self.pool.enter();
        let start = Instant::now();
        let result = work(&self.pool);
        (start.elapsed(), result)
    }
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").field("size", &self.size()).finish()
    }
}

/// Waits, awake, until all threads are here: a sleeping one would start tens of microseconds late.
fn meet(arrived: &AtomicUsize, size: usize) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let mut spins = 0_u32;
    while arrived.load(Ordering::Acquire) < size {
        spins = spins.wrapping_add(1);
        if spins.is_multiple_of(SPINS_BEFORE_YIELD) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::affinity;

    /// Three threads, more than some machines have processors: sharing one must work too.
    fn team() -> Team {
        let cpus = affinity::allowed().unwrap();
        Team::new(&[cpus[0], cpus[cpus.len() - 1], cpus[0]]).unwrap()
    }

    #[test]
    fn each_rank_runs_each_job_once_on_its_processor() {
        let mut team = team();
        let before = affinity::allowed().unwrap();
        let first = before[0];
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
        assert_eq!(affinity::allowed().unwrap(), before, "the calling thread is free again");
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
