//! When samples are due.

use std::time::Duration;

/// Times since the start: a first one, then one an interval, and a last one at the end of the duration if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    first: Duration,
    interval: Duration,
    end: Option<Duration>,
}

impl Schedule {
    pub(super) fn new(first: Duration, interval: Duration, end: Option<Duration>) -> Self {
        Self { first, interval, end }
    }

    /// The schedule from `elapsed` on with another interval; its end stays.
    pub(super) fn with_interval(self, elapsed: Duration, interval: Duration) -> Self {
        Self { first: elapsed + interval, interval, end: self.end }
    }

    /// The first due time after `elapsed`: those missed meanwhile are skipped, and being late shifts nothing.
    pub(super) fn next_after(&self, elapsed: Duration) -> Option<Duration> {
        let due = match elapsed.checked_sub(self.first) {
            None => self.first,
            Some(since_first) => {
                let periods = since_first.as_nanos() / self.interval.as_nanos().max(1) + 1;
                self.first + self.interval.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))
            }
        };
        match self.end {
            Some(end) if elapsed >= end => None,
            Some(end) => Some(due.min(end)),
            None => Some(due),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_times(first: u64, interval: u64, end: u64) -> Vec<u64> {
        let millis = Duration::from_millis;
        let schedule = Schedule::new(millis(first), millis(interval), Some(millis(end)));
        let next = |&elapsed: &Duration| schedule.next_after(elapsed);
        std::iter::successors(schedule.next_after(Duration::ZERO), next)
            .map(|due| due.as_millis() as u64)
            .collect()
    }

    #[test]
    fn a_duration_ends_with_a_sample() {
        assert_eq!(due_times(1000, 1000, 3000), [1000, 2000, 3000]);
        assert_eq!(due_times(1000, 1000, 2500), [1000, 2000, 2500]);
        assert_eq!(due_times(1000, 1000, 400), [400]);
        assert_eq!(due_times(300, 1000, 2000), [300, 1300, 2000]);
    }

    #[test]
    fn another_interval_begins_at_once() {
        let millis = Duration::from_millis;
        let schedule = Schedule::new(millis(1000), millis(1000), Some(millis(6000)));
        let schedule = schedule.with_interval(millis(2300), millis(200));
        assert_eq!(schedule.next_after(millis(2300)), Some(millis(2500)));
        assert_eq!(schedule.next_after(millis(2500)), Some(millis(2700)));
        assert_eq!(schedule.next_after(millis(5950)), Some(millis(6000)));
    }

    #[test]
    fn being_late_skips_but_does_not_shift() {
        let schedule = Schedule::new(Duration::from_secs(1), Duration::from_secs(1), None);
        assert_eq!(schedule.next_after(Duration::from_millis(1010)), Some(Duration::from_secs(2)));
        assert_eq!(schedule.next_after(Duration::from_millis(4700)), Some(Duration::from_secs(5)));
    }
}
