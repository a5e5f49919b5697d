//! Times of runs.

use std::time::{Duration, Instant};

use warpforge::{Executable, RunOptions, Tensor};

/// The fewest and the most runs of a measurement, and its time.
pub(super) const RUNS: (usize, usize) = (5, 100);
pub(super) const TIME: Duration = Duration::from_millis(700);

/// Times of runs, in ms, after one that is not counted: by a device's own clock, with the inputs where it reads them, where it has one.
pub(super) fn times(
    repeat: Option<usize>,
    executable: &dyn Executable,
    inputs: &[Tensor],
) -> Result<Vec<f64>, String> {
    let text = |error| warpforge::Error::from(error).to_string();
    let mut bound = executable.bind(inputs).map_err(text)?;
    let mut run = || match &mut bound {
        Some(bound) => bound.run().map_err(text),
        None => {
            let start = Instant::now();
            executable.run(inputs, &RunOptions::default()).map_err(text)?;
            Ok(start.elapsed())
        }
    };
    run()?;
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        times.push(run()?.as_secs_f64() * 1e3);
        let enough = match repeat {
            Some(repeat) => times.len() >= repeat,
            None => times.len() >= RUNS.1 || (times.len() >= RUNS.0 && begin.elapsed() > TIME),
        };
        if enough {
            return Ok(times);
        }
    }
}
