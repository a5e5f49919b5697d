//! Warm-up, and how many iterations make a sample.

use std::time::Duration;

use super::{SampleConfig, Timing};
use crate::timer::Clock;

/// Of a sample's time, the clock's overhead and its smallest step may each be at most one part in this many.
const CLOCK_SHARE: u32 = 1000;

/// A sample never has more iterations: a routine this fast was removed by the compiler.
const MOST_ITERATIONS: u64 = 1 << 40;

/// Runs the routine until it is warm and gives the number of iterations for each sample; `None` if stopped.
pub(super) fn warm_up(
    config: &SampleConfig,
    clock: &dyn Clock,
    stop: &dyn Fn() -> bool,
    routine: &mut dyn FnMut(u64) -> Timing,
) -> Option<u64> {
    let target = sample_time(config, clock);
    let begin = clock.now();
    let mut iterations = 1;
    let mut fastest = f64::INFINITY;
    loop {
        if stop() {
            return None;
        }
        let called = clock.now();
        let time = routine(iterations).time;
        let now = clock.now();
        // The fastest batch, since a cold one would make the samples too short. Short batches have no information.
        if time >= trustworthy(clock) {
            fastest = fastest.min(time.as_secs_f64() / iterations as f64);
        }
        let warm = now.saturating_sub(begin) >= config.warm_up;
        // A routine that takes long and says it took no time is not to be called with ever more iterations.
        let dragging = now.saturating_sub(called) >= target * 10;
        let long_enough = time >= target || dragging || iterations >= MOST_ITERATIONS;
        if warm && fastest.is_finite() {
            return Some(iterations_for(target, fastest));
        }
        if warm && long_enough {
            return Some(iterations);
        }
        if !long_enough {
            iterations = iterations.saturating_mul(2).min(MOST_ITERATIONS);
        }
    }
}

/// How long a sample is to be: so long that `max_samples` of them use up the budget, which averages more than short
/// ones would, but not so long that fewer than `min_samples` fit.
fn sample_time(config: &SampleConfig, clock: &dyn Clock) -> Duration {
    let share = |samples: usize| config.budget / u32::try_from(samples.max(1)).unwrap_or(u32::MAX);
    let wanted = config.min_sample_time.max(share(config.max_samples)).min(share(config.min_samples));
    wanted.max(clock.overhead() * CLOCK_SHARE).max(clock.resolution() * CLOCK_SHARE)
}

/// The shortest batch whose time says something about an iteration: the clock's part in it is at most a tenth.
fn trustworthy(clock: &dyn Clock) -> Duration {
    (clock.overhead().max(clock.resolution()) * 10).max(Duration::from_nanos(1))
}

fn iterations_for(target: Duration, seconds_per_iteration: f64) -> u64 {
    // A cast from float saturates, so even an absurd quotient ends within the bounds.
    ((target.as_secs_f64() / seconds_per_iteration).ceil() as u64).clamp(1, MOST_ITERATIONS)
}
