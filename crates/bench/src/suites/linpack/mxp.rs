//! `linpack_mxp_cpu`: LU in low precision, refined to the accuracy of f64.

use warpforge_linalg::{Factorizer, Kind, LinalgError, Matrix, Precision, refine};
use warpforge_probes::cpu::{Dtype, gemms};

use super::measure::{self, Solve};
use super::settings::{self, Settings};
use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct MxpCpu;

const FACTORS: [Precision; 2] = [Precision::Bf16, Precision::F32];
/// A matrix of f64 for the refinement and one of f32 for the factors.
const BYTES_PER_ELEMENT: u64 = 12;

impl Benchmark for MxpCpu {
    fn spec(&self) -> BenchmarkSpec {
        let mut params = settings::params();
        params.insert("factors".to_owned(), ParamValue::Text(Precision::Bf16.name().to_owned()));
        params.insert("matrix".to_owned(), ParamValue::Text(Kind::DiagonallyDominant.name().to_owned()));
        let description = "Solves a dense system by LU in low precision and GMRES-based refinement in f64; HPL's \
                           operation count and HPL's check of every solution";
        spec("linpack_mxp_cpu", description, None, params)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        let mut takes = settings::takes();
        takes.push(("factors", FACTORS.map(Precision::name).join(" or ")));
        takes.push(("matrix", Kind::ALL.map(Kind::name).join(" or ")));
        takes
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        settings_of(params).map(|_| ())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let (settings, precision) = settings_of(context.params())?;
        if precision == Precision::Bf16 && !gemms().iter().any(|gemm| gemm.dtype() == Dtype::Bf16) {
            context.warn(
                "no bf16 instructions that warpt uses: operands are rounded to bf16 and multiplied in f32",
            );
        }
        let problem = settings.problem;
        let mut factorizer = Factorizer::<f32>::new(precision, settings.block)
            .ok_or_else(|| BenchmarkError::Failed(format!("no factors of {}", precision.name())))?;
        let b = problem.rhs();
        // The matrix that residuals are computed with, its norm, and the memory of the factors.
        let mut exact: Option<(Matrix<f64>, f64)> = None;
        let mut kept: Option<Matrix<f32>> = None;
        measure::run(context, &settings, precision.name(), |team| {
            let pool = team.pool();
            let (a, norm_a) = match exact.take() {
                Some(known) => known,
                None => (problem.matrix(pool)?, problem.norm(pool)),
            };
            let mut rounded = match kept.take() {
                Some(matrix) => matrix,
                None => Matrix::new(pool, problem.order, |_, _| {})?,
            };
            let (time, outcome) = team.run_shared(|pool| {
                rounded.fill(pool, |row, elements| {
                    for (element, &exact) in elements.iter_mut().zip(a.row(row)) {
                        *element = exact as f32;
                    }
                });
                let lu = factorizer.factor(pool, rounded)?;
                let refined = refine(pool, &a, norm_a, &lu, &b);
                Ok::<_, LinalgError>((lu, refined))
            });
            let (lu, refined) = outcome?;
            exact = Some((a, norm_a));
            kept = Some(lu.into_matrix());
            Ok(Solve { time, x: refined.x, steps: Some(refined.steps) })
        })
    }
}

fn settings_of(params: &Params) -> Result<(Settings, Precision), BenchmarkError> {
    let precision = named("factors", text(params, "factors"), FACTORS.map(|known| (known.name(), known)))?;
    let kind = named("matrix", text(params, "matrix"), Kind::ALL.map(|known| (known.name(), known)))?;
    Ok((Settings::new(params, kind, BYTES_PER_ELEMENT)?, precision))
}

/// What a name of a parameter stands for.
pub(super) fn named<T: Copy, const N: usize>(
    name: &str,
    value: &str,
    known: [(&str, T); N],
) -> Result<T, BenchmarkError> {
    known.iter().find(|(known, _)| *known == value).map(|(_, found)| *found).ok_or_else(|| {
        let names = known.map(|(name, _)| name).join(", ");
        BenchmarkError::BadInput(format!("{name}={value}: give one of {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Event, Round};
    use crate::suites::testing;

    fn round(name: &str, value: &str) -> Round {
        testing::round(&MxpCpu, &[("n", "130"), ("nb", "32"), (name, value)], 0.0)
    }

    #[test]
    fn a_round_reports_the_steps_of_the_refinement() {
        for factors in ["bf16", "f32"] {
            let round = round("factors", factors);
            let mut steps = Vec::new();
            let mut report = |event| match event {
                Event::Metric { key, values } if key.name == "refinement_steps" => {
                    assert_eq!(key.tags["factors"], factors);
                    steps = values;
                }
                _ => {}
            };
            MxpCpu.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
            assert!(
                steps.iter().all(|&steps| (1.0..100.0).contains(&steps)) && !steps.is_empty(),
                "{steps:?}"
            );
        }
    }

    #[test]
    fn what_does_not_exist_is_refused_with_what_does() {
        for (name, value, known) in
            [("factors", "f16", "bf16, f32"), ("matrix", "hilbert", "uniform, dominant")]
        {
            let error = MxpCpu.prepare(&round(name, value).params).unwrap_err();
            assert!(matches!(&error, BenchmarkError::BadInput(text) if text.contains(known)), "{error}");
        }
    }
}
