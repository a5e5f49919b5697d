//! The machine's pace: how fast it computes right now, beside the fastest that it was seen to.
//!
//! Other guests of a host take its clock and its execution units away for seconds at a time. A measurement that was made while they did
//! says nothing about the machine, and nothing in it tells: all samples agree. So arithmetic in registers is timed before and after.

use std::hint::black_box;
use std::time::{Duration, Instant};

use warpforge_measure::stats;
use warpforge_probes::affinity;
use warpforge_probes::cpu::{PeakKernel, peaks};
use warpforge_probes::team::Team;

use crate::error::{Error, Result};

/// A pace is steady if it is no further than this part from the one that is asked for.
const NEAR: f64 = 0.08;

/// A look: the median rate of so many runs of this length.
const RUNS: usize = 5;
const RUN: Duration = Duration::from_micros(600);

/// How long to wait until the next look.
const PAUSE: Duration = Duration::from_millis(50);

/// Measurements are made so many times before the best of them is taken.
const ATTEMPTS: usize = 4;

/// What tells the pace, and how long others may be waited for.
pub(crate) struct Pace {
    gauge: Box<dyn FnMut() -> f64>,
    /// What is asked for: GFLOP/s.
    wanted: f64,
    /// Whether a faster machine raises what is asked for, or is off as a slower one is.
    rises: bool,
    patience: Duration,
}

/// A look at the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) gflops: f64,
    /// Of the pace that was asked for by then.
    pub(crate) part: f64,
}

impl Look {
    /// How far the pace was from the one asked for, either way.
    fn off(self) -> f64 {
        (self.part - 1.0).abs()
    }
}

/// A value and the pace that it was measured at.
pub(crate) struct Paced<T> {
    pub(crate) value: T,
    pub(crate) pace: Look,
}

impl<T> Paced<T> {
    /// Whether the machine was as fast as it should be.
    pub(crate) fn is_steady(&self) -> bool {
        self.pace.off() <= NEAR
    }
}

impl Pace {
    /// The fastest pace that the machine is seen at from now on, or was before.
    pub(crate) fn fastest(before: Option<f64>, threads: usize, patience: Duration) -> Result<Self> {
        let mut gauge = gauge(threads)?;
        let wanted = (0..20).map(|_| gauge()).fold(before.unwrap_or(0.0), f64::max);
        Ok(Self { gauge, wanted, rises: true, patience })
    }

    /// The pace that a calibration was made at.
    pub(crate) fn of(gflops: f64, threads: usize, patience: Duration) -> Result<Self> {
        Ok(Self { gauge: gauge(threads)?, wanted: gflops, rises: false, patience })
    }

    /// What is asked for, in GFLOP/s.
    pub(crate) fn gflops(&self) -> f64 {
        self.wanted
    }

    /// Measures when the machine is at its pace, again where it did not stay there, while there is patience. Of several measurements
    /// the one at the pace nearest to what is asked for counts. Waiting ends when the caller asks to stop.
    pub(crate) fn steadily<T>(
        &mut self,
        stopped: impl Fn() -> bool,
        mut measure: impl FnMut() -> Result<T>,
    ) -> Result<Paced<T>> {
        let mut best: Option<Paced<T>> = None;
        for attempt in 1.. {
            let before = self.wait(&stopped)?;
            let begin = Instant::now();
            let value = measure()?;
            let took = begin.elapsed();
            let after = self.look();
            let pace = if before.off() > after.off() { before } else { after };
            if best.as_ref().is_none_or(|best| pace.off() < best.pace.off()) {
                best = Some(Paced { value, pace });
            }
            let done = best.as_ref().is_none_or(Paced::is_steady);
            if done || attempt == ATTEMPTS || self.patience < took {
                break;
            }
            self.patience -= took;
        }
        best.ok_or_else(|| Error::NotPossible("nothing was measured".to_owned()))
    }

    /// Waits for the pace, while there is patience: what the machine is at then.
    fn wait(&mut self, stopped: impl Fn() -> bool) -> Result<Look> {
        loop {
            let look = self.look();
            if look.off() <= NEAR || self.patience < PAUSE {
                return Ok(look);
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            std::thread::sleep(PAUSE);
            self.patience -= PAUSE;
        }
    }

    fn look(&mut self) -> Look {
        let gflops = (self.gauge)();
        if self.rises {
            self.wanted = self.wanted.max(gflops);
        }
        Look { gflops, part: gflops / self.wanted.max(f64::MIN_POSITIVE) }
    }
}

/// GFLOP/s of f32 in registers by the widest instructions, all threads together.
fn gauge(threads: usize) -> Result<Box<dyn FnMut() -> f64>> {
    let mut cpus = affinity::allowed()?;
    cpus.truncate(threads);
    let mut team = Team::new(&cpus)?;
    let kernel = peaks().into_iter().find(|kernel| kernel.dtype().name() == "f32");
    let kernel =
        kernel.ok_or_else(|| Error::NotPossible("no loop of f32 arithmetic runs here".to_owned()))?;
    let mut run = move |kernel: &PeakKernel, iterations: u64| {
        team.run(|_| {
            black_box(kernel.run(iterations));
        })
    };
    let iterations = crate::measure::long_enough(RUN, 1000, |iterations| run(&kernel, iterations));
    let each = kernel.ops_per_iteration() as f64 * iterations as f64 * cpus.len() as f64;
    Ok(Box::new(move || {
        let seconds: Vec<f64> = (0..RUNS).map(|_| run(&kernel, iterations).as_secs_f64()).collect();
        each / stats::median(&seconds).unwrap_or(f64::INFINITY).max(1e-9) / 1e9
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that is at these paces one look after the other, and at the last one from then on.
    fn machine(paces: &'static [f64], rises: bool, patience_ms: u64) -> Pace {
        let mut looks = paces.iter().copied().chain(std::iter::repeat(paces[paces.len() - 1]));
        Pace {
            gauge: Box::new(move || looks.next().unwrap_or(0.0)),
            wanted: 100.0,
            rises,
            patience: Duration::from_millis(patience_ms),
        }
    }

    /// Counts its measurements.
    fn count(pace: &mut Pace) -> Paced<usize> {
        let mut measured = 0;
        let measure = || {
            measured += 1;
            Ok(measured)
        };
        pace.steadily(|| false, measure).unwrap()
    }

    #[test]
    fn a_wait_for_others_ends_when_the_caller_asks_to_stop() {
        let mut pace = machine(&[60.0], true, 3_600_000);
        let asked = std::cell::Cell::new(0);
        let stopped = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let found = pace.steadily(stopped, || Ok(()));
        assert!(matches!(found, Err(Error::Stopped)));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn a_steady_machine_is_measured_once() {
        let found = count(&mut machine(&[99.0], true, 1000));
        assert!(found.is_steady());
        assert_eq!(found.value, 1);
    }

    #[test]
    fn others_are_waited_for_and_what_they_disturbed_is_measured_again() {
        // Two looks before the machine is free, and it is taken away during the first measurement.
        let mut pace = machine(&[60.0, 60.0, 100.0, 60.0, 100.0, 100.0], true, 1000);
        let found = count(&mut pace);
        assert!(found.is_steady());
        assert_eq!(found.value, 2);
        assert!(pace.patience < Duration::from_millis(1000));
    }

    #[test]
    fn a_machine_that_stays_slow_is_measured_and_said_to_be() {
        let found = count(&mut machine(&[60.0], true, 200));
        assert!(!found.is_steady());
        assert!((found.pace.part - 0.6).abs() < 1e-9);
        assert!((found.pace.gflops - 60.0).abs() < 1e-9);
    }

    #[test]
    fn a_faster_machine_raises_the_pace_of_a_calibration_and_not_of_a_check() {
        let mut calibration = machine(&[120.0], true, 200);
        assert!(count(&mut calibration).is_steady());
        assert!((calibration.gflops() - 120.0).abs() < 1e-9);
        assert!(!count(&mut machine(&[120.0], false, 200)).is_steady());
    }

    #[test]
    fn the_gauge_reports_a_rate() {
        assert!(gauge(1).unwrap()() > 0.01);
    }
}
