//! Rates over the course of a run.

use serde::{Deserialize, Serialize};

/// Windows that a run's course is reported in.
const WINDOWS: usize = 20;

/// Bins that the course is kept in; when there are twice as many, two become one.
const BINS: usize = 120;

/// Fewer iterations say nothing about how the rate changes.
const FEWEST_ITERATIONS: u64 = 10;

/// From this time on, the beginning of a run is its first minute.
const LONG_RUN_SECONDS: f64 = 120.0;

/// How fast a test ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// What is counted, a second.
    pub unit: String,
    /// Over the whole run.
    pub mean: f64,
    /// Over the first minute, or the first tenth of a run shorter than two minutes.
    pub first: Span,
    /// Over the second half of the run.
    pub sustained: Span,
    /// The sustained rate divided by the first; null after too few iterations.
    pub sustained_over_first: Option<f64>,
    /// The course of the run, in windows of equal length.
    pub windows: Vec<Window>,
}

/// The rate over a named part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Which part.
    pub name: String,
    /// How long it is.
    pub seconds: f64,
    /// The rate.
    pub rate: f64,
}

/// The rate in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Seconds from the beginning of the run.
    pub start_seconds: f64,
    /// How long it is.
    pub seconds: f64,
    /// The rate.
    pub rate: f64,
}

/// Work over time, in bins of equal length, so that memory does not grow with the run.
#[derive(Debug)]
pub(crate) struct Course {
    bin_seconds: f64,
    bins: Vec<f64>,
    end: f64,
    iterations: u64,
}

impl Course {
    pub(crate) fn new(planned_seconds: f64) -> Self {
        Self {
            bin_seconds: (planned_seconds / BINS as f64).max(1e-6),
            bins: Vec::new(),
            end: 0.0,
            iterations: 0,
        }
    }

    /// Adds the work of an iteration, evenly over the time it took.
    pub(crate) fn add(&mut self, from: f64, to: f64, amount: f64) {
        let to = to.max(from + 1e-9);
        while to / self.bin_seconds >= (2 * BINS) as f64 {
            self.bins = self.bins.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.bin_seconds *= 2.0;
        }
        let last = (to / self.bin_seconds) as usize;
        if self.bins.len() <= last {
            self.bins.resize(last + 1, 0.0);
        }
        for bin in (from / self.bin_seconds) as usize..=last {
            let share = overlap(self.bounds(bin), (from, to)) / (to - from);
            self.bins[bin] += amount * share;
        }
        self.end = self.end.max(to);
        self.iterations += 1;
    }

    fn bounds(&self, bin: usize) -> (f64, f64) {
        (bin as f64 * self.bin_seconds, (bin + 1) as f64 * self.bin_seconds)
    }

    /// The rate between two times; what a bin holds is taken to be even over that bin, as far as the run went.
    fn between(&self, from: f64, to: f64) -> f64 {
        let mut amount = 0.0;
        for (bin, held) in self.bins.iter().enumerate() {
            let (start, end) = self.bounds(bin);
            let held_over = (start, end.min(self.end));
            let length = held_over.1 - held_over.0;
            if length > 0.0 {
                amount += held * overlap(held_over, (from, to)) / length;
            }
        }
        amount / (to - from)
    }

    /// What the run came to; none before its first iteration.
    pub(crate) fn rate(&self, unit: &str) -> Option<Rate> {
        let end = self.end;
        if self.iterations == 0 {
            return None;
        }
        let (name, first) =
            if end >= LONG_RUN_SECONDS { ("first minute", 60.0) } else { ("first tenth", end / 10.0) };
        let first = Span { name: name.to_owned(), seconds: first, rate: self.between(0.0, first) };
        let sustained =
            Span { name: "second half".to_owned(), seconds: end / 2.0, rate: self.between(end / 2.0, end) };
        let comparable = self.iterations >= FEWEST_ITERATIONS && first.rate > 0.0;
        let length = end / WINDOWS as f64;
        let windows = (0..WINDOWS).map(|window| {
            let start = window as f64 * length;
            Window { start_seconds: start, seconds: length, rate: self.between(start, start + length) }
        });
        Some(Rate {
            unit: unit.to_owned(),
            mean: self.between(0.0, end),
            sustained_over_first: comparable.then(|| sustained.rate / first.rate),
            windows: windows.collect(),
            first,
            sustained,
        })
    }
}

/// How long two spans of time are the same.
fn overlap(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn a_steady_run_has_one_rate_everywhere() {
        let mut course = Course::new(12.0);
        for step in 0..120 {
            let from = f64::from(step) * 0.1;
            course.add(from, from + 0.1, 5.0);
        }
        let rate = course.rate("op/s").unwrap();
        assert!(near(rate.mean, 50.0) && near(rate.sustained_over_first.unwrap(), 1.0), "{rate:?}");
        assert_eq!(rate.windows.len(), WINDOWS);
        assert!(rate.windows.iter().all(|window| near(window.rate, 50.0)), "{rate:?}");
        assert_eq!(rate.first.name, "first tenth");
        assert!(near(rate.first.seconds, 1.2));
    }

    #[test]
    fn a_run_that_slows_down_shows_it_against_its_first_minute() {
        let mut course = Course::new(600.0);
        for second in 0..600 {
            let amount = if second < 60 { 10.0 } else { 7.0 };
            course.add(f64::from(second), f64::from(second + 1), amount);
        }
        let rate = course.rate("op/s").unwrap();
        assert_eq!(rate.first.name, "first minute");
        assert!(near(rate.first.rate, 10.0) && near(rate.sustained.rate, 7.0), "{rate:?}");
        assert!(near(rate.sustained_over_first.unwrap(), 0.7));
    }

    #[test]
    fn a_run_far_longer_than_planned_keeps_all_its_work_in_bounded_memory() {
        let mut course = Course::new(0.001);
        for second in 0..1000 {
            course.add(f64::from(second), f64::from(second + 1), 3.0);
        }
        assert!(course.bins.len() <= 2 * BINS, "{}", course.bins.len());
        assert!(near(course.bins.iter().sum::<f64>(), 3000.0));
        assert!(near(course.rate("op/s").unwrap().mean, 3.0));
    }

    #[test]
    fn too_few_iterations_have_no_ratio_and_none_no_rate() {
        assert!(Course::new(1.0).rate("op/s").is_none());
        let mut course = Course::new(1.0);
        course.add(0.0, 2.0, 8.0);
        let rate = course.rate("op/s").unwrap();
        assert!(near(rate.mean, 4.0) && rate.sustained_over_first.is_none());
    }
}
