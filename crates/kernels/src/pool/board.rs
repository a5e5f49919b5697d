//! Where the caller posts a job and workers find it. What a worker needs to begin lies in two pairs of cache lines: one that the caller
//! writes and waiting workers poll, one that all write while a job runs.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A job: called with a task index and the index of the worker that runs it. Its true lifetime is that of the call that posted it.
pub(super) type Job = &'static (dyn Fn(usize, usize) + Sync);

/// The job of a pool.
#[derive(Default)]
pub(super) struct Board {
    posted: Posted,
    progress: Progress,
}

/// The job that is posted. Two cache lines of its own, because processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Posted {
    /// Incremented when a job is posted and when it is withdrawn; odd while one is posted.
    generation: AtomicU64,
    /// The two words of the reference to the job, valid while the generation is odd or a worker is inside.
    job: [AtomicPtr<()>; 2],
    tasks: AtomicUsize,
}

/// How far the job is.
#[derive(Default)]
#[repr(align(128))]
struct Progress {
    /// The next task.
    next: AtomicUsize,
    /// Workers other than the caller that are inside the job.
    inside: AtomicUsize,
}

impl Board {
    /// Posts a job.
    ///
    /// # Safety
    ///
    /// No other job is posted. Before the true lifetime of the job ends, it is withdrawn and [`Board::is_left`] has returned true.
    pub(super) unsafe fn post(&self, job: &(dyn Fn(usize, usize) + Sync), tasks: usize) {
        // SAFETY: a reference to a trait object has the size of two pointers; it is only put together again by `enter`.
        let words = unsafe { std::mem::transmute::<&(dyn Fn(usize, usize) + Sync), [*mut (); 2]>(job) };
        for (to, word) in self.posted.job.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.posted.tasks.store(tasks, Ordering::Relaxed);
        self.progress.next.store(0, Ordering::Relaxed);
        self.posted.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Withdraws the job: no worker enters it any more.
    pub(super) fn withdraw(&self) {
        self.posted.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether no worker is inside a job.
    pub(super) fn is_left(&self) -> bool {
        self.progress.inside.load(Ordering::SeqCst) == 0
    }

    /// The generation of the job that is posted, if it is not the one seen.
    pub(super) fn posted(&self, seen: u64) -> Option<u64> {
        let generation = self.posted.generation.load(Ordering::SeqCst);
        (generation % 2 == 1 && generation != seen).then_some(generation)
    }

    /// Enters the job of a generation, if it is still posted: calls the function with it and its number of tasks, and leaves it.
    pub(super) fn enter(&self, generation: u64, work: impl FnOnce(Job, usize)) {
        self.progress.inside.fetch_add(1, Ordering::SeqCst);
        // Whoever withdraws the job either sees this worker inside, or is seen here.
        if self.posted.generation.load(Ordering::SeqCst) == generation {
            let words = [0, 1].map(|at: usize| self.posted.job[at].load(Ordering::Relaxed));
            // SAFETY: the words are those of the reference that was posted with this generation; the job lives until it is left.
            let job = unsafe { std::mem::transmute::<[*mut (); 2], Job>(words) };
            work(job, self.posted.tasks.load(Ordering::Relaxed));
        }
        self.progress.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Claims the next task.
    pub(super) fn claim(&self) -> usize {
        self.progress.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Leaves no task to claim.
    pub(super) fn cancel(&self, tasks: usize) {
        self.progress.next.store(tasks, Ordering::Relaxed);
    }
}
