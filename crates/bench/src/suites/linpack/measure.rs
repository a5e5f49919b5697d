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

/// One solve on the CPU.
pub(super) struct Solve {
    /// From the filled matrix to the solution.
    pub(super) time: Duration,
    /// The solution.
    pub(super) x: Vec<f64>,
    /// Steps of the refinement, where there is one.
    pub(super) steps: Option<usize>,
}

/// One solve that was right, with what was measured around it.
pub(super) struct Checked {
    /// From the filled matrix to the solution.
    pub(super) time: Duration,
    /// The scaled residual, which passes HPL's check.
    pub(super) residual: f64,
    /// Operations in f64 a second that the machine can do, measured just before.
    pub(super) peak: Option<f64>,
    /// Energy of the solve, where it is measured.
    pub(super) joules: Option<f64>,
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

/// Solves on the CPU's threads for the time of the round, and records the metrics.
pub(super) fn run(
    context: &mut RunContext<'_>,
    settings: &Settings,
    precision: &str,
    mut solve: impl FnMut(&mut Team) -> Result<Solve, LinalgError>,
) -> Result<(), BenchmarkError> {
    let mut team = team(&settings.cpus)?;
    let mut meter = EnergyMeter::new();
    let tags = [
        ("nb", settings.block.to_string()),
        ("threads", settings.cpus.len().to_string()),
        ("factors", precision.to_owned()),
    ];
    repeat(context, settings.problem.order, &tags, || {
        let peak = peak_rate(&mut team, Dtype::F64);
        let before = meter.joules();
        let Solve { time, x, steps } = solve(&mut team)?;
        let joules = before.zip(meter.joules()).map(|(before, after)| after - before);
        let residual = check(settings.problem.residual(team.pool(), &x))?;
        Ok(Checked { time, residual, peak, joules, steps })
    })
}

/// Solves again and again for the time of the round, and records the metrics. The first solve warms up; it counts only
/// where there is time for no other.
pub(super) fn repeat(
    context: &mut RunContext<'_>,
    order: usize,
    tags: &[(&str, String)],
    mut solve: impl FnMut() -> Result<Checked, BenchmarkError>,
) -> Result<(), BenchmarkError> {
    context.plan(1);
    context.begin(&format!("n={order}"));
    let (begin, mut samples) = (Instant::now(), Samples::default());
    for turn in 0.. {
        if context.stopped() {
            return Err(BenchmarkError::Stopped);
        }
        let solved = solve()?;
        if turn == 1 {
            samples = Samples::default();
        }
        let seconds = solved.time.as_secs_f64();
        samples.seconds.push(seconds);
        samples.residuals.push(solved.residual);
        samples.peaks.extend(solved.peak.map(|peak| 100.0 * operations(order) / seconds / peak));
        samples.joules.extend(solved.joules);
        samples.steps.extend(solved.steps.map(|steps| steps as f64));
        if begin.elapsed() + solved.time > context.time() {
            break;
        }
    }
    record(context, order, tags, samples)
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
    order: usize,
    tags: &[(&str, String)],
    samples: Samples,
) -> Result<(), BenchmarkError> {
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
            let key = tags.iter().fold(key.tag("n", order), |key, (name, value)| key.tag(name, value));
            context.record(key, values)?;
        }
    }
    Ok(())
}

/// Threads on these processors.
pub(super) fn team(cpus: &[usize]) -> Result<Team, BenchmarkError> {
    let threads = cpus.len();
    Team::new(cpus)
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
