//! When a run writes a checkpoint.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The least time between two checkpoints, where nobody says how many steps.
const LEAST: Duration = Duration::from_secs(10);

/// A checkpoint is due when the run went on for so many times as long as writing the last one took: 2 % of the time are for checkpoints.
const TIMES: u32 = 50;

/// When the next checkpoint is due.
#[derive(Debug)]
pub(super) struct Cadence {
    steps: Option<NonZeroU64>,
    last: Instant,
    took: Duration,
}

impl Cadence {
    /// After so many steps, or by time.
    pub(super) fn new(steps: Option<NonZeroU64>) -> Self {
        Self { steps, last: Instant::now(), took: Duration::ZERO }
    }

    /// Whether a checkpoint is due when so many steps are done.
    pub(super) fn is_due(&self, done: u64) -> bool {
        match self.steps {
            Some(steps) => done.is_multiple_of(steps.get()),
            None => self.is_time(self.last.elapsed()),
        }
    }

    fn is_time(&self, since: Duration) -> bool {
        since >= LEAST.max(self.took * TIMES)
    }

    /// Writes a checkpoint.
    pub(super) fn save<E>(&mut self, write: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let begin = Instant::now();
        write()?;
        self.took = begin.elapsed();
        self.last = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_were_asked_for_are_kept() {
        let cadence = Cadence::new(NonZeroU64::new(3));
        assert_eq!((1..=7).filter(|&done| cadence.is_due(done)).collect::<Vec<_>>(), [3, 6]);
    }

    #[test]
    fn by_time_checkpoints_take_a_fiftieth_of_it() {
        let mut cadence = Cadence::new(None);
        assert!(!cadence.is_due(100));
        assert!(!cadence.is_time(Duration::from_secs(9)) && cadence.is_time(Duration::from_secs(10)));
        cadence.took = Duration::from_secs(2);
        assert!(!cadence.is_time(Duration::from_secs(99)) && cadence.is_time(Duration::from_secs(100)));
    }
}
