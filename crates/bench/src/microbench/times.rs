//! Times of runs.

use std::time::{Duration, Instant};

use warpforge::{Device, Executable, RunOptions, Tensor};

use super::power::Power;

/// The fewest and the most runs of a measurement, and its time.
pub(super) const RUNS: (usize, usize) = (5, 100);
pub(super) const TIME: Duration = Duration::from_millis(700);
/// The shortest time that energy is measured over: counters and meters are slow.
const LEAST_METERED: Duration = Duration::from_millis(200);

/// Runs that were measured.
pub(super) struct Measured {
    /// The time of each, in ms.
    pub(super) ms: Vec<f64>,
    /// How many energy was measured of.
    runs: usize,
    /// Their energy, where the machine tells.
    joules: Option<f64>,
    /// The time that energy is of.
    seconds: f64,
}

impl Measured {
    /// The energy of a run.
    pub(super) fn joules(&self) -> Option<f64> {
        Some(self.joules? / self.runs as f64)
    }

    /// The mean power.
    pub(super) fn watts(&self) -> Option<f64> {
        Some(self.joules? / self.seconds)
    }
}

/// Measures runs, after one that is not counted: by a device's own clock, with the inputs where it reads them, where it has one.
pub(super) fn times(
    repeat: Option<usize>,
    executable: &dyn Executable,
    inputs: &[Tensor],
    power: &mut Power,
    device: Device,
) -> Result<Measured, String> {
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
    let mut metered = power.metered(device);
    let begin = Instant::now();
    let mut ms = Vec::new();
    loop {
        ms.push(run()?.as_secs_f64() * 1e3);
        let enough = match repeat {
            Some(repeat) => ms.len() >= repeat,
            None => ms.len() >= RUNS.1 || (ms.len() >= RUNS.0 && begin.elapsed() > TIME),
        };
        if enough {
            // Short runs go on uncounted until a meter can tell what they take, where there is one.
            let mut runs = ms.len();
            while repeat.is_none() && metered.tells() && begin.elapsed() < LEAST_METERED {
                run()?;
                runs += 1;
            }
            let elapsed = begin.elapsed();
            let joules = metered.joules().filter(|_| elapsed >= LEAST_METERED);
            return Ok(Measured { ms, runs, joules, seconds: elapsed.as_secs_f64() });
        }
        metered.tick();
    }
}
