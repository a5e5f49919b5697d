//! Taking samples: warm-up, calibration, and repetition until the interval is narrow or the time is up.

mod calibrate;
mod config;

use std::time::Duration;

pub use config::{Ending, SampleConfig, Samples, Timing};

use crate::stats;
use crate::timer::{Clock, Monotonic};

/// Samples a routine, which does its work the given number of times and says how long that took.
///
/// `stop` is asked before every call of the routine; what was sampled until then is returned.
pub fn sample(
    config: &SampleConfig,
    stop: &dyn Fn() -> bool,
    routine: &mut dyn FnMut(u64) -> Timing,
) -> Samples {
    sample_with(&Monotonic::start(), config, stop, routine)
}

/// [`sample`] by another clock, which decides when the time is up; what is measured is what the routine reports.
pub fn sample_with(
    clock: &dyn Clock,
    config: &SampleConfig,
    stop: &dyn Fn() -> bool,
    routine: &mut dyn FnMut(u64) -> Timing,
) -> Samples {
    let mut seconds = Vec::with_capacity(config.max_samples.min(1024));
    let mut core_speeds = Vec::with_capacity(config.max_samples.min(1024));
    let Some(iterations) = calibrate::warm_up(config, clock, stop, routine) else {
        return Samples {
            seconds_per_iteration: seconds,
            core_speeds,
            iterations_per_sample: 0,
            ending: Ending::Stopped,
        };
    };
    let begin = clock.now();
    let mut longest = Duration::ZERO;
    let mut speed_before = clock.core_speed();
    let ending = loop {
        if stop() {
            break Ending::Stopped;
        }
        let before = clock.now();
        let timing = routine(iterations);
        let time = without_overhead(timing.time, clock);
        let speed_after = clock.core_speed();
        let after = clock.now();
        seconds.push(time.as_secs_f64() / iterations as f64);
        core_speeds.push(timing.core_speed.unwrap_or(f64::midpoint(speed_before, speed_after)));
        speed_before = speed_after;
        longest = longest.max(after.saturating_sub(before));
        if seconds.len() < config.min_samples {
            continue;
        }
        if narrow_enough(&seconds, config) {
            break Ending::NarrowEnough;
        }
        if seconds.len() >= config.max_samples {
            break Ending::SampleLimit;
        }
        // Not begun is better than overrun: the next sample may take as long as the longest did.
        if after.saturating_sub(begin) + longest > config.budget {
            break Ending::TimeUp;
        }
    };
    Samples { seconds_per_iteration: seconds, core_speeds, iterations_per_sample: iterations, ending }
}

/// Takes the clock's overhead off a time in which it is more than one part in a thousand, which calibration makes
/// rare; elsewhere the correction would be smaller than its own error.
fn without_overhead(time: Duration, clock: &dyn Clock) -> Duration {
    let overhead = clock.overhead();
    if overhead * 1000 > time { time.saturating_sub(overhead) } else { time }
}

fn narrow_enough(seconds: &[f64], config: &SampleConfig) -> bool {
    let Some(interval) = stats::order_interval(seconds, config.confidence) else { return false };
    let Some(median) = stats::median(seconds) else { return false };
    interval.width() / 2.0 <= config.target_relative_half_width * median.abs()
}

#[cfg(test)]
mod tests;
