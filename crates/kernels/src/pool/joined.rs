//! Calls that do not depend on one another: the job that each posts is run as a part of one, so that workers wait for one another
//! once.

use std::cell::Cell;
use std::sync::Arc;

use super::board::Job;
use super::{Pool, Shared};

thread_local! {
    /// What the next job that the thread posts is joined with.
    static JOINING: Cell<Option<Joining>> = const { Cell::new(None) };
}

/// A call that is joined with others. Its true lifetime is that of the call to [`Pool::join`].
type Call = &'static dyn Fn();

/// Calls that are still to be made, and the jobs of those that were.
struct Joining {
    pool: Arc<Shared>,
    calls: &'static [Call],
    jobs: Vec<(Job, usize)>,
}

/// Restores what the thread was in before, also after a panic: a call may itself join others before it posts a job.
struct Restore(Option<Joining>);

impl Drop for Restore {
    fn drop(&mut self) {
        JOINING.set(self.0.take());
    }
}

impl Pool {
    /// Makes calls that do not depend on one another. The first job that each of them posts to this pool runs together with those
    /// of the others; what a call does after its first job it does when all of these are done.
    pub fn join(&self, calls: &[&dyn Fn()]) {
        let _restore = Restore(JOINING.take());
        // SAFETY: only the lifetimes change. `JOINING` holds the calls while this call lasts, and something else at its end.
        let calls = unsafe { std::mem::transmute::<&[&dyn Fn()], &'static [Call]>(calls) };
        self.go_on(Joining { pool: Arc::clone(&self.shared), calls, jobs: Vec::with_capacity(calls.len()) });
    }

    /// Runs a job, together with those of [`Pool::join`] if the thread is in it.
    pub(super) fn post(&self, tasks: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        match JOINING.take() {
            Some(mut joining) if Arc::ptr_eq(&joining.pool, &self.shared) => {
                // SAFETY: only the lifetime changes. Whatever holds the job is dropped when `go_on` returns or unwinds, before the
                // job's borrow ends.
                let job = unsafe { std::mem::transmute::<&(dyn Fn(usize, usize) + Sync), Job>(job) };
                joining.jobs.push((job, tasks));
                self.go_on(joining);
            }
            other => {
                JOINING.set(other);
                self.share(tasks, job);
            }
        }
    }

    /// Makes the next call, which comes back here with its job; after the last one, runs all jobs.
    fn go_on(&self, mut joining: Joining) {
        while let Some((call, rest)) = joining.calls.split_first() {
            joining.calls = rest;
            JOINING.set(Some(joining));
            call();
            match JOINING.take() {
                // It posted no job.
                Some(unchanged) => joining = unchanged,
                None => return,
            }
        }
        let jobs = joining.jobs;
        let ends: Vec<usize> = jobs
            .iter()
            .scan(0, |end, (_, tasks)| {
                *end += tasks;
                Some(*end)
            })
            .collect();
        self.share(ends.last().copied().unwrap_or(0), &|task, worker| {
            let at = ends.partition_point(|&end| end <= task);
            let (job, tasks) = jobs[at];
            job(task + tasks - ends[at], worker);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
    }

    #[test]
    fn every_task_of_every_call_runs_once_whatever_the_calls_post() {
        for threads in [1, 2, 5] {
            let pool = pool(threads);
            // Tasks of the jobs of each call: none, one, several in a row, empty ones.
            let posted: [&[usize]; 6] = [&[3], &[], &[1, 4], &[0], &[70], &[2, 0, 5]];
            let ran: Vec<Mutex<Vec<usize>>> = posted.iter().map(|_| Mutex::default()).collect();
            let call = |at: usize| {
                let mut before = 0;
                for &tasks in posted[at] {
                    assert_eq!(
                        ran[at].lock().unwrap().len(),
                        before,
                        "a job begins when the one before has ended"
                    );
                    pool.run(tasks, &|task, worker| {
                        assert!(worker < threads);
                        ran[at].lock().unwrap().push(task);
                    });
                    before += tasks;
                }
            };
            let calls: Vec<_> = (0..posted.len()).map(|at| move || call(at)).collect();
            let calls: Vec<&dyn Fn()> = calls.iter().map(|call| call as &dyn Fn()).collect();
            pool.join(&calls);
            for (ran, posted) in ran.into_iter().zip(posted) {
                let mut ran = ran.into_inner().unwrap();
                ran.sort_unstable();
                let mut expected: Vec<usize> = posted.iter().flat_map(|&tasks| 0..tasks).collect();
                expected.sort_unstable();
                assert_eq!(ran, expected);
            }
            pool.join(&[]);
        }
    }

    #[test]
    fn jobs_run_at_the_same_time() {
        let pool = pool(2);
        let both = std::sync::Barrier::new(2);
        let call = || {
            pool.run(1, &|_, _| {
                both.wait();
            });
        };
        // Each waits for the other: one after the other they would never end.
        pool.join(&[&call, &call]);
    }

    #[test]
    fn calls_may_join_others() {
        let pool = pool(2);
        let count = AtomicUsize::new(0);
        let post = || {
            pool.run(3, &|_, _| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        };
        let nested = || pool.join(&[&post, &post]);
        let nested_first = || {
            nested();
            post();
        };
        pool.join(&[&nested, &nested_first, &post, &nested]);
        assert_eq!(count.into_inner(), 3 * (2 + 3 + 1 + 2));
    }

    #[test]
    fn jobs_of_another_pool_are_not_joined() {
        let (pool, other) = (pool(2), pool(2));
        let count = AtomicUsize::new(0);
        let add = |_: usize, _: usize| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let call = || {
            let before = count.load(Ordering::Relaxed);
            other.run(3, &add);
            assert_eq!(count.load(Ordering::Relaxed), before + 3);
            pool.run(2, &add);
        };
        pool.join(&[&call, &call]);
        assert_eq!(count.into_inner(), 10);
    }

    #[test]
    fn a_panic_ends_the_joining() {
        let pool = pool(2);
        let fails: [&dyn Fn(); 2] =
            [&|| panic!("before its job"), &|| pool.run(4, &|task, _| assert!(task != 2, "in its job"))];
        for fails in fails {
            let sound = || pool.run(4, &|_, _| ());
            assert!(catch_unwind(AssertUnwindSafe(|| pool.join(&[&sound, fails, &sound]))).is_err());
            let count = AtomicUsize::new(0);
            pool.run(5, &|_, _| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), 5);
        }
    }
}
