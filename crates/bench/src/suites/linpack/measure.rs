//! Repeated solves with their check, and the metrics of them.

use std::time::{Duration, Instant};

use warpforge_linalg::{LinalgError, Residual};
use warpforge_probes::cpu::Dtype;
use warpforge_probes::limits::peak_rate;
use warpforge_probes::team::Team;

use super::operations;
use super::settings::Settings;
use crate::benchmark::{BenchmarkError, MetricKey, RunContext};
use crate::energy::EnergyMeter;

/// One solve.
pub(super) struct Solve {
    /// From the filled matrix to the solution.
    pub(super) time: Duration,
    /// The solution.
    pub(super) x: Vec<f64>,
    /// Steps of the refinement, where there is one.
    pub(super) steps: Option<usize>,
}

/// What the solves of a round have given.
#[derive(Default)]
struct Samples {
    seconds: Vec<f64>,
    residuals: Vec<f64>,
    peaks: Vec<f64>,
    joules: Vec<f64>,
    steps: Vec<f64>,
}

/// Solves again and again for the time of the round, checks every solution, and records the metrics. The first solve
/// warms up; it counts only where there is time for no other.
pub(super) fn run(
    context: &mut RunContext<'_>,
    settings: &Settings,
    precision: &str,
    mut solve: impl FnMut(&mut Team) -> Result<Solve, LinalgError>,
) -> Result<(), BenchmarkError> {
    let mut team = team(settings)?;
    context.plan(1);
    context.begin(&format!("n={}", settings.problem.order));
    let (begin, mut samples) = (Instant::now(), Samples::default());
    let mut meter = EnergyMeter::new();
    for turn in 0.. {
        if context.stopped() {
            return Err(BenchmarkError::Stopped);
        }
        let peak = peak_rate(&mut team, Dtype::F64);
        let before = meter.joules();
        let solved = solve(&mut team)?;
        let after = meter.joules();
        check(settings.problem.residual(team.pool(), &solved.x)).map(|residual| {
            if turn == 1 {
                samples = Samples::default();
            }
            let seconds = solved.time.as_secs_f64();
            samples.seconds.push(seconds);
            samples.residuals.push(residual);
            samples
                .peaks
                .extend(peak.map(|peak| 100.0 * operations(settings.problem.order) / seconds / peak));
            samples.joules.extend(before.zip(after).map(|(before, after)| after - before));
            samples.steps.extend(solved.steps.map(|steps| steps as f64));
        })?;
        if begin.elapsed() + solved.time > context.time() {
            break;
        }
    }
    record(context, settings, precision, samples)
}

/// The scaled residual of a solution that passes HPL's check.
pub(super) fn check(residual: Residual) -> Result<f64, BenchmarkError> {
    if residual.passes() {
        return Ok(residual.scaled);
    }
    let scaled = residual.scaled;
    Err(BenchmarkError::Failed(format!(
        "the solution is wrong: its scaled residual is {scaled:.3e}, HPL's bound is 16"
    )))
}

fn record(
    context: &mut RunContext<'_>,
    settings: &Settings,
    precision: &str,
    samples: Samples,
) -> Result<(), BenchmarkError> {
    let order = settings.problem.order;
    let rates = samples.seconds.iter().map(|seconds| operations(order) / seconds / 1e9).collect();
    let metrics = [
        (MetricKey::more_is_better("gflops", "GFLOP/s"), rates),
        (MetricKey::less_is_better("seconds", "s"), samples.seconds),
        (MetricKey::more_is_better("peak_percent", "%"), samples.peaks),
        (MetricKey::less_is_better("residual", "1"), samples.residuals),
        (MetricKey::less_is_better("refinement_steps", "1"), samples.steps),
        (MetricKey::less_is_better("energy", "J"), samples.joules),
    ];
    for (key, values) in metrics {
        // What this machine or this benchmark does not have is left out.
        if !values.is_empty() {
            let key = key.tag("n", order).tag("nb", settings.block).tag("threads", settings.cpus.len());
            context.record(key.tag("factors", precision), values)?;
        }
    }
    Ok(())
}

fn team(settings: &Settings) -> Result<Team, BenchmarkError> {
    let threads = settings.cpus.len();
    Team::new(&settings.cpus)
        .map_err(|error| BenchmarkError::Failed(format!("cannot start {threads} threads: {error}")))
}

impl From<LinalgError> for BenchmarkError {
    fn from(error: LinalgError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_residual_below_hpls_bound_has_a_rate() {
        assert_eq!(check(Residual { scaled: 0.01 }), Ok(0.01));
        for scaled in [16.0, 1e9, f64::INFINITY, f64::NAN] {
            let error = check(Residual { scaled }).unwrap_err();
            assert!(
                matches!(&error, BenchmarkError::Failed(text) if text.contains("bound is 16")),
                "{error}"
            );
        }
    }
}
