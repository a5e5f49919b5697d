//! What the dashboard knows between two events.

use std::time::Duration;

use warpforge_inventory::live::{ProcessUsage, TimelineRecord};

use super::history::History;
use crate::commands::monitor::feed::Sample;

/// What programs are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Cpu,
    Memory,
}

/// The dashboard's state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) host: String,
    pub(super) interval: Duration,
    pub(super) url: Option<String>,
    /// The newest sample; none before the first.
    pub(super) record: Option<TimelineRecord>,
    pub(super) history: History,
    /// The programs in the order shown; none if they cannot be listed.
    pub(super) processes: Option<Vec<ProcessUsage>>,
    pub(super) order: Order,
    /// The first program shown.
    pub(super) scroll: usize,
    /// How many programs fit on the screen last drawn.
    page: usize,
    pub(super) paused: bool,
    pub(super) help: bool,
}

impl State {
    pub(super) fn new(host: String, interval: Duration, url: Option<String>) -> Self {
        Self {
            host,
            interval,
            url,
            record: None,
            history: History::default(),
            processes: None,
            order: Order::Cpu,
            scroll: 0,
            page: 1,
            paused: false,
            help: false,
        }
    }

    /// Takes a sample in; a paused screen lets it go by.
    pub(super) fn take(&mut self, sample: Sample) {
        if self.paused {
            return;
        }
        self.history.push(&sample.record);
        self.record = Some(sample.record);
        if sample.processes.is_some() {
            self.processes = sample.processes;
            self.sort();
        }
    }

    pub(super) fn order_by(&mut self, order: Order) {
        self.order = order;
        self.scroll = 0;
        self.sort();
    }

    fn sort(&mut self) {
        let order = self.order;
        if let Some(processes) = &mut self.processes {
            processes.sort_by(|a, b| {
                let by_cpu = b.cpu_percent.total_cmp(&a.cpu_percent);
                let by_memory = b.memory_bytes.cmp(&a.memory_bytes);
                let (first, second) =
                    if order == Order::Cpu { (by_cpu, by_memory) } else { (by_memory, by_cpu) };
                first.then(second).then(a.pid.cmp(&b.pid))
            });
        }
    }

    /// Moves the list of programs by lines.
    pub(super) fn scroll_by(&mut self, lines: isize) {
        self.scroll = self.scroll.saturating_add_signed(lines);
        self.fit(self.page);
    }

    /// Moves the list of programs by screens.
    pub(super) fn page_by(&mut self, pages: isize) {
        self.scroll_by(pages.saturating_mul(self.page.cast_signed()));
    }

    /// Learns how many programs the screen has room for, and leaves none of that room empty.
    pub(super) fn fit(&mut self, page: usize) {
        self.page = page.max(1);
        let count = self.processes.as_ref().map_or(0, Vec::len);
        self.scroll = self.scroll.min(count.saturating_sub(self.page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(processes: &[(u32, f64, u64)]) -> Sample {
        let process = |&(pid, cpu_percent, memory_bytes): &(u32, f64, u64)| ProcessUsage {
            pid,
            name: format!("p{pid}"),
            user: None,
            cpu_percent,
            memory_bytes,
        };
        Sample { record: TimelineRecord::default(), processes: Some(processes.iter().map(process).collect()) }
    }

    fn pids(state: &State) -> Vec<u32> {
        state.processes.iter().flatten().map(|process| process.pid).collect()
    }

    fn state() -> State {
        let mut state = State::new("host".to_owned(), Duration::from_secs(1), None);
        state.take(sample(&[(1, 0.0, 30), (2, 50.0, 10), (3, 7.0, 20), (4, 0.0, 30)]));
        state
    }

    #[test]
    fn programs_are_sorted_as_asked_and_stay_so() {
        let mut state = state();
        assert_eq!(pids(&state), [2, 3, 1, 4]);
        state.order_by(Order::Memory);
        assert_eq!(pids(&state), [1, 4, 3, 2]);
        state.take(sample(&[(7, 1.0, 5), (8, 0.0, 9)]));
        assert_eq!(pids(&state), [8, 7]);
    }

    #[test]
    fn a_paused_screen_does_not_change() {
        let mut state = state();
        state.paused = true;
        state.take(sample(&[(9, 1.0, 1)]));
        assert_eq!(pids(&state), [2, 3, 1, 4]);
        assert_eq!(state.history.cpu.newest_first().count(), 1);
    }

    #[test]
    fn scrolling_stops_at_both_ends() {
        let mut state = state();
        state.fit(2);
        state.scroll_by(-5);
        assert_eq!(state.scroll, 0);
        state.page_by(100);
        assert_eq!(state.scroll, 2);
        state.fit(3);
        assert_eq!(state.scroll, 1, "a taller screen shows more, not emptiness");
    }
}
