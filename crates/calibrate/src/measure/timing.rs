//! Samples of one program, and pairs of two.

use std::time::{Duration, Instant};

use warpforge_measure::stats::{self, Summary};

use super::Session;
use super::program::Clock;
use crate::cases::Scale;
use crate::error::{Error, Result};
use crate::profile::FusionRound;

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// A sample repeats the program until it takes so long.
    sample: Duration,
    /// Time for all samples of a program.
    budget: Duration,
    least: usize,
    most: usize,
    /// Samples may stop when the interval's half width is this part of the value.
    narrow: f64,
}

impl Effort {
    pub(super) fn of(scale: Scale) -> Self {
        let milliseconds = Duration::from_millis;
        match scale {
            Scale::Smoke => {
                Self { sample: milliseconds(0), budget: milliseconds(1), least: 3, most: 3, narrow: 1.0 }
            }
            Scale::Quick => {
                Self { sample: milliseconds(1), budget: milliseconds(150), least: 7, most: 60, narrow: 0.01 }
            }
            Scale::Full => {
                Self { sample: milliseconds(1), budget: milliseconds(200), least: 7, most: 60, narrow: 0.01 }
            }
        }
    }
}

/// How many iterations take so long. The fastest of three runs counts: one that was interrupted is no reason to stop.
pub(crate) fn long_enough(length: Duration, first: u64, mut run: impl FnMut(u64) -> Duration) -> u64 {
    let mut iterations = first;
    loop {
        let took = (0..3).map(|_| run(iterations)).min().unwrap_or(length);
        if took >= length {
            return iterations;
        }
        let wanted = iterations as f64 * length.as_secs_f64() / took.as_secs_f64().max(1e-6);
        iterations = (iterations * 2).max(wanted as u64);
    }
}

/// The time of one program and its interval, in seconds.
pub(super) struct Timed {
    pub(super) seconds: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A clock that may be disturbed on purpose.
struct Disturbed<'c, 'p> {
    clock: &'c mut Clock<'p>,
    noise: f64,
    rng: fastrand::Rng,
}

impl<'c, 'p> Disturbed<'c, 'p> {
    fn new(session: &Session<'_>, clock: &'c mut Clock<'p>, salt: u64) -> Self {
        let rng = fastrand::Rng::with_seed(session.salt() ^ salt);
        Self { clock, noise: session.settings.noise, rng }
    }

    /// Seconds of one iteration.
    fn seconds(&mut self, iterations: u64) -> Result<f64> {
        let time = self.clock.run(iterations)?.as_secs_f64() / iterations as f64;
        let factor = if self.noise > 0.0 { (self.noise * (2.0 * self.rng.f64() - 1.0)).exp() } else { 1.0 };
        Ok((time * factor).max(1e-9))
    }

    /// Warms up and says how many iterations make a sample.
    fn iterations(&mut self, sample: Duration) -> Result<u64> {
        let first = self.seconds(1)?;
        let second = self.seconds(1)?;
        let wanted = sample.as_secs_f64() / first.min(second);
        let iterations = (wanted.ceil() as u64).clamp(1, 10_000);
        if iterations > 1 {
            // A cold program is slower than a warm one; the second look is at a batch.
            let warm = self.seconds(iterations.div_ceil(4))?;
            return Ok(((sample.as_secs_f64() / warm).ceil() as u64).clamp(1, 100_000));
        }
        Ok(iterations)
    }
}

/// Samples one program.
pub(super) fn alone(session: &Session<'_>, clock: &mut Clock<'_>) -> Result<Timed> {
    let effort = Effort::of(session.settings.scale);
    let mut clock = Disturbed::new(session, clock, 0);
    let iterations = clock.iterations(effort.sample)?;
    let (mut seconds, begin) = (Vec::new(), Instant::now());
    loop {
        if session.stopped() {
            return Err(Error::Stopped);
        }
        seconds.push(clock.seconds(iterations)?);
        if enough(&seconds, effort, begin) {
            break;
        }
    }
    let summary = Summary::of_rounds(&[seconds]).ok_or_else(no_time)?;
    Ok(Timed { seconds: summary.value, low: summary.spread.ci_low, high: summary.spread.ci_high })
}

/// Samples two programs in turn, so that what disturbs one disturbs the other.
pub(super) fn paired(
    session: &Session<'_>,
    fused: &mut Clock<'_>,
    unfused: &mut Clock<'_>,
) -> Result<FusionRound> {
    let effort = Effort::of(session.settings.scale);
    let (mut fused, mut unfused) = (Disturbed::new(session, fused, 1), Disturbed::new(session, unfused, 2));
    let (some, others) = (fused.iterations(effort.sample)?, unfused.iterations(effort.sample)?);
    let (mut ours, mut theirs, mut logs) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    loop {
        if session.stopped() {
            return Err(Error::Stopped);
        }
        // In turn first: what drifts favours neither.
        let (a, b) = if logs.len() % 2 == 0 {
            let a = fused.seconds(some)?;
            (a, unfused.seconds(others)?)
        } else {
            let b = unfused.seconds(others)?;
            (fused.seconds(some)?, b)
        };
        ours.push(a);
        theirs.push(b);
        logs.push((b / a).ln());
        let ratios: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        if enough(&ratios, Effort { budget: 2 * effort.budget, ..effort }, begin) {
            break;
        }
    }
    let median = |values: &[f64]| stats::median(values).ok_or_else(no_time);
    Ok(FusionRound {
        log_ratio: median(&logs)?,
        standard_error: stats::median_standard_error(&logs).unwrap_or(f64::MAX),
        samples: logs.len(),
        fused_ms: median(&ours)? * 1e3,
        unfused_ms: median(&theirs)? * 1e3,
    })
}

fn enough(values: &[f64], effort: Effort, begin: Instant) -> bool {
    if values.len() < effort.least {
        return false;
    }
    let narrow = stats::order_interval(values, 0.95).zip(stats::median(values));
    values.len() >= effort.most
        || begin.elapsed() >= effort.budget
        || narrow.is_some_and(|(interval, median)| interval.width() / 2.0 <= effort.narrow * median)
}

fn no_time() -> Error {
    Error::NotPossible("a program reported no time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_run_makes_no_sample_too_short() {
        let mut runs = 0;
        let length = Duration::from_millis(10);
        let found = long_enough(length, 1000, |iterations| {
            runs += 1;
            // Every second run is interrupted for longer than a sample takes.
            Duration::from_nanos(iterations) + if runs % 2 == 0 { 5 * length } else { Duration::ZERO }
        });
        assert!((10_000_000..30_000_000).contains(&found), "{found}");
    }
}
