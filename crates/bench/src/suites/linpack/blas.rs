//! BLAS libraries as peers of `linpack_fp64_cpu`: `dgesv` of packages from PyPI, called by a Python process.

use std::time::Instant;

use serde::Deserialize;

use super::fp64;
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext};
use crate::external::{LONGEST_RUN, execute};
use crate::python::Python;
use crate::record::Params;

const PROGRAM: &str = include_str!("blas.py");

/// HPL's bound of the scaled residual.
const BOUND: f64 = 16.0;

/// `dgesv` of one library.
#[derive(Debug)]
pub(super) struct BlasPeer {
    name: &'static str,
    description: &'static str,
    packages: &'static [&'static str],
}

/// Intel's MKL.
pub(super) const MKL: BlasPeer = BlasPeer {
    name: "mkl",
    description: "dgesv of Intel's MKL; PyPI packages mkl and numpy",
    packages: &["mkl", "numpy"],
};

/// OpenBLAS.
pub(super) const OPENBLAS: BlasPeer = BlasPeer {
    name: "openblas",
    description: "dgesv of OpenBLAS; PyPI packages scipy-openblas64 and numpy",
    packages: &["scipy-openblas64", "numpy"],
};

/// What the Python process prints.
#[derive(Debug, Deserialize)]
struct Answer {
    gflops: f64,
    seconds: f64,
    residual: Option<f64>,
}

impl BlasPeer {
    fn python(&self) -> Result<Python, BenchmarkError> {
        Python::with(self.packages)
    }
}

impl Peer for BlasPeer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        fp64::settings_of(params)?;
        self.python().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = fp64::settings_of(context.params())?;
        let python = self.python()?;
        context.version(python.version(self.packages[0]));
        context.plan(1);
        context.begin(self.name);
        let (mut rates, mut seconds) = (Vec::new(), Vec::new());
        let begin = Instant::now();
        loop {
            let turn = Instant::now();
            let mut command = python.command();
            command.args(["-c", PROGRAM, self.name]);
            command.args([settings.problem.order, settings.cpus.len()].map(|number| number.to_string()));
            command.arg(settings.problem.seed.to_string());
            let answer = checked(self.name, &execute(command, LONGEST_RUN, &|| context.stopped())?)?;
            rates.push(answer.gflops);
            seconds.push(answer.seconds);
            if begin.elapsed() + turn.elapsed() > context.time() {
                break;
            }
        }
        let order = settings.problem.order;
        context.record(MetricKey::more_is_better("gflops", "GFLOP/s").tag("n", order), rates)?;
        context.record(MetricKey::less_is_better("seconds", "s").tag("n", order), seconds)
    }
}

/// What a process printed, if its solution passes HPL's check as ours does.
fn checked(name: &str, printed: &str) -> Result<Answer, BenchmarkError> {
    let answer: Answer = serde_json::from_str(printed.trim())
        .map_err(|error| BenchmarkError::Failed(format!("{name} printed no result: {error}")))?;
    match answer.residual {
        Some(residual) if residual < BOUND => Ok(answer),
        other => Err(BenchmarkError::Failed(format!(
            "the solution of {name} is wrong: its scaled residual is {other:?}, HPL's bound is {BOUND}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_right_solution_has_a_rate() {
        let right = checked("mkl", "{\"gflops\": 12.5, \"seconds\": 2.0, \"residual\": 0.01}\n").unwrap();
        assert_eq!((right.gflops, right.seconds), (12.5, 2.0));
        for wrong in ["{\"gflops\": 1, \"seconds\": 1, \"residual\": 17}", "{\"gflops\": 1}", "Traceback"] {
            let error = checked("mkl", wrong).unwrap_err();
            assert!(matches!(&error, BenchmarkError::Failed(text) if text.contains("mkl")), "{error}");
        }
    }
}
