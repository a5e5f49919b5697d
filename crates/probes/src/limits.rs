//! What a processor can do at most, measured in a fraction of a second: the lines of a roofline.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::affinity;
use crate::cpu::{Dtype, PeakKernel, peaks};
use crate::memory::stream::{Arrays, Kernel, Reader, Routine, Stores};
use crate::memory::{MemoryError, Pages};
use crate::team::Team;

/// How long a loop runs for one sample of a rate; the best of several counts.
const SAMPLE_TIME: Duration = Duration::from_millis(10);
const SAMPLES: usize = 4;
/// Bytes of the three arrays, of all threads together: more than most caches hold.
const ARRAYS_BYTES: usize = 384 << 20;

/// Why limits are not known.
#[derive(Debug, Error)]
pub enum LimitsError {
    /// Threads cannot be started or tied to processors.
    #[error("cannot measure what the processor can do: {0}")]
    Threads(#[from] io::Error),
    /// There is no memory to measure with.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What so many threads can do at most.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Operations a second of each type that there are instructions for.
    pub operations: Vec<(Dtype, f64)>,
    /// Bytes a second to and from main memory.
    pub bytes: f64,
}

impl Limits {
    /// Measures with so many threads, each on its own processor while there are enough.
    ///
    /// # Errors
    ///
    /// When there are no threads or no memory for it.
    pub fn measure(threads: usize) -> Result<Self, LimitsError> {
        let mut cpus = affinity::allowed()?;
        cpus.truncate(threads.max(1));
        let mut team = Team::new(&cpus)?;
        let mut operations: Vec<(Dtype, f64)> = Vec::new();
        for kernel in peaks() {
            let rate = arithmetic(&mut team, &kernel);
            match operations.iter_mut().find(|(dtype, _)| *dtype == kernel.dtype()) {
                Some((_, best)) => *best = best.max(rate),
                None => operations.push((kernel.dtype(), rate)),
            }
        }
        Ok(Self { operations, bytes: memory(&mut team)? })
    }

    /// Operations a second of a type, by its name.
    #[must_use]
    pub fn of(&self, dtype: &str) -> Option<f64> {
        self.operations.iter().find(|(known, _)| known.name() == dtype).map(|(_, rate)| *rate)
    }

    /// The part of what is possible that so many operations and bytes in so many seconds are: 1 at the limit, more where
    /// bytes came from a cache.
    #[must_use]
    pub fn fraction(&self, dtype: &str, operations: f64, bytes: f64, seconds: f64) -> Option<f64> {
        let arithmetic = if operations > 0.0 { operations / self.of(dtype)? } else { 0.0 };
        let least = arithmetic.max(bytes / self.bytes);
        (seconds > 0.0 && least > 0.0).then(|| least / seconds)
    }
}

/// Operations a second of a type by the team's threads, by the widest instructions; none without instructions for it.
#[must_use]
pub fn peak_rate(team: &mut Team, dtype: Dtype) -> Option<f64> {
    let kernel = peaks().into_iter().find(|kernel| kernel.dtype() == dtype)?;
    Some(arithmetic(team, &kernel))
}

/// Bytes a second that the team's threads read from main memory.
///
/// # Errors
///
/// When there is no memory to measure with.
pub fn read_rate(team: &mut Team) -> Result<f64, MemoryError> {
    let mut arrays = Arrays::new(team, ARRAYS_BYTES / team.size(), 1, Pages::Default)?;
    let bytes = 3 * size_of::<f64>() * arrays.elements_per_iteration(team);
    let reader = Reader::widest();
    let took = (0..SAMPLES).map(|_| arrays.read(team, reader, 1)).min().unwrap_or_default();
    Ok(bytes as f64 / took.as_secs_f64().max(1e-9))
}

fn arithmetic(team: &mut Team, kernel: &PeakKernel) -> f64 {
    let each = kernel.ops_per_iteration() as f64 * team.size() as f64;
    let mut run = |iterations: u64| {
        team.run(|_| {
            black_box(kernel.run(iterations));
        })
    };
    let mut iterations = 1_000;
    let mut took = run(iterations);
    while took < SAMPLE_TIME {
        iterations *= 2;
        took = run(iterations);
    }
    for _ in 1..SAMPLES {
        took = took.min(run(iterations));
    }
    each * iterations as f64 / took.as_secs_f64()
}

fn memory(team: &mut Team) -> Result<f64, LimitsError> {
    let Some(triad) = Routine::widest(Kernel::Triad, Stores::Ordinary) else { return Ok(f64::INFINITY) };
    let mut arrays = Arrays::new(team, ARRAYS_BYTES / team.size(), 1, Pages::Default)?;
    let bytes = Kernel::Triad.bytes_per_element() * arrays.elements_per_iteration(team);
    let took = (0..SAMPLES).map(|_| arrays.run(team, triad, 1)).min().unwrap_or_default();
    Ok(bytes as f64 / took.as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_a_processor() {
        let limits = Limits::measure(1).unwrap();
        let f32 = limits.of("f32").unwrap();
        assert!((1e9..1e13).contains(&f32), "{f32}");
        assert!((1e8..1e13).contains(&limits.bytes), "{}", limits.bytes);
        assert_eq!(limits.of("f4"), None);
    }

    #[test]
    fn the_slower_of_arithmetic_and_memory_is_the_limit() {
        let limits = Limits { operations: vec![(Dtype::F32, 100.0)], bytes: 10.0 };
        assert_eq!(limits.fraction("f32", 200.0, 10.0, 4.0), Some(0.5));
        assert_eq!(limits.fraction("f32", 100.0, 40.0, 4.0), Some(1.0));
        assert_eq!(limits.fraction("", 0.0, 40.0, 8.0), Some(0.5));
        assert_eq!(limits.fraction("bf16", 1.0, 40.0, 8.0), None);
        assert_eq!(limits.fraction("f32", 0.0, 0.0, 8.0), None);
    }
}
