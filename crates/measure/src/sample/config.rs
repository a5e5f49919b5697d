//! What to ask of a sampling, and what comes of it.

use std::time::Duration;

/// How long and how often to sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleConfig {
    /// Time to run the routine before the first sample.
    pub warm_up: Duration,
    /// Time for samples, warm-up not counted.
    pub budget: Duration,
    /// Samples taken even if the time is up.
    pub min_samples: usize,
    /// Samples after which to stop.
    pub max_samples: usize,
    /// A sample repeats the routine until it takes at least this long, if `min_samples` of them fit the budget.
    pub min_sample_time: Duration,
    /// Stop early once the interval's half width is this share of the median.
    pub target_relative_half_width: f64,
    /// The interval's confidence level.
    pub confidence: f64,
}

impl SampleConfig {
    /// A configuration that ends within the given time, warm-up included.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Self {
            warm_up: time.mul_f64(0.15),
            budget: time.mul_f64(0.85),
            min_samples: 5,
            max_samples: 100,
            min_sample_time: Duration::from_millis(2),
            target_relative_half_width: 0.002,
            confidence: 0.95,
        }
    }
}

/// What one call of a routine took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// How long all iterations took together.
    pub time: Duration,
    /// How fast the core ran that did them, as [`crate::core_speed()`] has it; `None` if it was the calling thread's.
    pub core_speed: Option<f64>,
}

impl From<Duration> for Timing {
    fn from(time: Duration) -> Self {
        Self { time, core_speed: None }
    }
}

/// Why sampling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The interval is as narrow as was asked for.
    NarrowEnough,
    /// The time was up.
    TimeUp,
    /// There are as many samples as were allowed.
    SampleLimit,
    /// The caller asked to stop.
    Stopped,
}

/// The samples of one routine.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Seconds an iteration took, one value a sample, in order.
    pub seconds_per_iteration: Vec<f64>,
    /// How fast the core ran around each sample, as [`crate::core_speed()`] has it.
    pub core_speeds: Vec<f64>,
    /// Iterations in each sample; zero if the caller stopped before the first.
    pub iterations_per_sample: u64,
    /// Why sampling ended.
    pub ending: Ending,
}
