//! What the dashboard knows between two events.

use std::time::Duration;

use warpforge_inventory::live::TimelineRecord;

use super::history::History;
use super::programs::Programs;
use super::signals::Question;
use crate::commands::monitor::feed::Sample;

/// The intervals that keys choose from, in milliseconds.
const INTERVALS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// The dashboard's state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) host: String,
    pub(super) interval: Duration,
    pub(super) url: Option<String>,
    /// The newest sample; none before the first.
    pub(super) record: Option<TimelineRecord>,
    pub(super) history: History,
    pub(super) programs: Programs,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// Whether keys are letters of the filter.
    pub(super) typing: bool,
    /// The signal that waits for a yes.
    pub(super) question: Option<Question>,
    /// What came of the last key, until the next one.
    pub(super) note: Option<String>,
}

impl State {
    pub(super) fn new(host: String, interval: Duration, url: Option<String>) -> Self {
        Self {
            host,
            interval,
            url,
            record: None,
            history: History::default(),
            programs: Programs::default(),
            paused: false,
            help: false,
            typing: false,
            question: None,
            note: None,
        }
    }

    /// Takes a sample in; a paused screen lets it go by.
    pub(super) fn take(&mut self, sample: Sample) {
        if self.paused {
            return;
        }
        self.history.push(&sample.record);
        self.record = Some(sample.record);
        if let Some(processes) = sample.processes {
            self.programs.take(processes);
        }
    }

    /// The next longer interval.
    pub(super) fn slower(&self) -> Duration {
        let mut intervals = INTERVALS.into_iter().map(Duration::from_millis);
        intervals.find(|interval| *interval > self.interval).unwrap_or(self.interval)
    }

    /// The next shorter interval.
    pub(super) fn faster(&self) -> Duration {
        let mut intervals = INTERVALS.into_iter().rev().map(Duration::from_millis);
        intervals.find(|interval| *interval < self.interval).unwrap_or(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_screen_does_not_change() {
        let mut state = State::new("host".to_owned(), Duration::from_secs(1), None);
        let sample = || Sample { record: TimelineRecord::default(), processes: None };
        state.take(sample());
        state.paused = true;
        state.take(sample());
        assert_eq!(state.history.cpu.newest_first().count(), 1);
    }

    #[test]
    fn intervals_go_up_and_down_and_end() {
        let mut state = State::new("host".to_owned(), Duration::from_millis(1500), None);
        assert_eq!((state.faster().as_millis(), state.slower().as_millis()), (1000, 2000));
        state.interval = Duration::from_millis(50);
        assert_eq!(state.faster(), state.interval);
        state.interval = Duration::from_secs(3600);
        assert_eq!(state.slower(), state.interval);
    }
}
