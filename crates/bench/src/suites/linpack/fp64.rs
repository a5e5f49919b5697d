//! `linpack_fp64_cpu`: LU with partial pivoting in f64 on all cores.

use warpforge_linalg::{Factorizer, Kind, LinalgError, Matrix, Precision};

use super::measure::{self, Solve};
use super::settings::{self, Settings};
use super::{blas, external, spec};
use crate::benchmark::{Benchmark, BenchmarkError, Peer, RunContext};
use crate::record::{BenchmarkSpec, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct Fp64Cpu;

impl Benchmark for Fp64Cpu {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Solves a dense system by blocked LU with partial pivoting in f64; HPL's operation count and \
                           HPL's check of every solution";
        spec("linpack_fp64_cpu", description, None, settings::params())
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        settings::takes()
    }

    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[&external::HPCC, &external::XHPL, &blas::MKL, &blas::OPENBLAS]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        settings_of(params).map(|_| ())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = settings_of(context.params())?;
        let problem = settings.problem;
        let mut factorizer = Factorizer::<f64>::new(Precision::F64, settings.block)
            .ok_or_else(|| BenchmarkError::Failed("there is no GEMM of f64".to_owned()))?;
        let mut kept: Option<Matrix<f64>> = None;
        measure::run(context, &settings, Precision::F64.name(), |team| {
            let pool = team.pool();
            let matrix = match kept.take() {
                Some(mut matrix) => {
                    problem.rewrite(pool, &mut matrix);
                    matrix
                }
                None => problem.matrix(pool)?,
            };
            let mut x = problem.rhs();
            let (time, outcome) = team.run_shared(|pool| {
                let lu = factorizer.factor(pool, matrix)?;
                lu.solve(pool, &mut x);
                Ok::<_, LinalgError>(lu)
            });
            kept = Some(outcome?.into_matrix());
            Ok(Solve { time, x, steps: None })
        })
    }
}

/// The parameters, checked.
pub(super) fn settings_of(params: &Params) -> Result<Settings, BenchmarkError> {
    Settings::new(params, Kind::Uniform, 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::round;

    #[test]
    fn a_round_reports_rate_time_and_residual() {
        let round = round(&Fp64Cpu, &[("n", "150"), ("nb", "32")], 0.0);
        let mut names = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(values.iter().all(|&value| value >= 0.0), "{key:?}: {values:?}");
                assert_eq!((key.tags["n"].as_str(), key.tags["factors"].as_str()), ("150", "f64"));
                names.push(key.name);
            }
        };
        Fp64Cpu.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
        assert_eq!(names[..4], ["gflops", "seconds", "peak_percent", "residual"]);
        let stopped = Fp64Cpu.run(&mut RunContext::new(&round, &|| true, &mut |_| {}));
        assert_eq!(stopped, Err(BenchmarkError::Stopped));
    }
}
