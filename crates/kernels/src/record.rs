//! When the pieces of jobs ran: kept for the thread that asks, and for nobody else.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Recorder>>> = const { RefCell::new(None) };
}

/// A piece of a job.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// Its number.
    pub piece: usize,
    /// The worker that did it.
    pub worker: usize,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

/// Keeps what the pieces of a thread's jobs took.
#[derive(Debug, Default)]
pub struct Recorder {
    /// By worker, so that nobody waits for another.
    pieces: Vec<Mutex<Vec<Piece>>>,
}

impl Recorder {
    /// A recorder for jobs of at most so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { pieces: (0..workers).map(|_| Mutex::default()).collect() })
    }

    /// Records the jobs that the calling thread posts until the guard goes.
    #[must_use]
    pub fn start(self: &Arc<Self>) -> Recording {
        let before = CURRENT.with_borrow_mut(|current| current.replace(Arc::clone(self)));
        Recording { before }
    }

    /// What was recorded since the last call, by worker and time.
    pub fn take(&self) -> Vec<Piece> {
        let of = |pieces: &Mutex<Vec<Piece>>| {
            std::mem::take(&mut *pieces.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.pieces.iter().flat_map(of).collect()
    }

    /// The recorder of the calling thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Does a piece and keeps what it took.
    pub(crate) fn time(&self, piece: usize, worker: usize, work: impl FnOnce()) {
        let start = Instant::now();
        work();
        let end = Instant::now();
        if let Some(pieces) = self.pieces.get(worker) {
            pieces.lock().unwrap_or_else(PoisonError::into_inner).push(Piece { piece, worker, start, end });
        }
    }
}

/// Jobs of this thread are recorded while this lives.
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
    fn the_pieces_of_this_thread_are_kept_and_no_others() {
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
        let pieces = recorder.take();
        assert_eq!(pieces.len(), 9);
        let mut numbers: Vec<usize> = pieces.iter().map(|piece| piece.piece).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(pieces.iter().all(|piece| piece.worker < 2 && piece.end >= piece.start));
        assert!(recorder.take().is_empty());
    }
}
