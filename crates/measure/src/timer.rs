//! The clock, and what it costs to read.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A clock; a simulated one makes sampling testable.
pub trait Clock {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;

    /// What one start-and-stop measurement adds to the time it measures.
    fn overhead(&self) -> Duration;

    /// The smallest step of the time shown.
    fn resolution(&self) -> Duration;

    /// How fast the calling thread's core runs, as [`crate::core_speed()`] has it.
    fn core_speed(&self) -> f64;
}

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic {
    start: Instant,
}

impl Monotonic {
    /// A clock that starts at zero now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn overhead(&self) -> Duration {
        overhead()
    }

    fn resolution(&self) -> Duration {
        resolution()
    }

    fn core_speed(&self) -> f64 {
        crate::core_speed()
    }
}

/// What `Instant::now()` followed by `elapsed()` adds to the time between them, measured once per process.
#[must_use]
pub fn overhead() -> Duration {
    cost().overhead
}

/// The smallest step between two readings of the clock that differ, measured once per process.
#[must_use]
pub fn resolution() -> Duration {
    cost().resolution
}

struct Cost {
    overhead: Duration,
    resolution: Duration,
}

fn cost() -> &'static Cost {
    static COST: OnceLock<Cost> = OnceLock::new();
    COST.get_or_init(|| Cost { overhead: measure_overhead(), resolution: measure_resolution() })
}

/// The best of several batches: an interrupted batch is longer, never shorter.
fn measure_overhead() -> Duration {
    const BATCHES: usize = 50;
    const READS: u32 = 200;
    let batch = || {
        let start = Instant::now();
        for _ in 0..READS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed() / READS
    };
    (0..BATCHES).map(|_| batch()).min().unwrap_or_default()
}

fn measure_resolution() -> Duration {
    const STEPS: usize = 200;
    let step = || {
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            if !elapsed.is_zero() {
                return elapsed;
            }
        }
    };
    (0..STEPS).map(|_| step()).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_measured_once() {
        assert!(!resolution().is_zero());
        assert_eq!((overhead(), resolution()), (overhead(), resolution()));
    }
}
