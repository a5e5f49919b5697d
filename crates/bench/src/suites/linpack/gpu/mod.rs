//! `linpack_fp64_gpu` and `linpack_mxp_gpu`: dense systems on a GPU by the vendor's solver.
//!
//! The matrix is made on the host from its seed and sent to the device. Events of the device time the factorization and
//! the solution. The residual is computed on the host, from the matrix made again.

mod settings;

use warpforge_backend_gpu::GpuError;
use warpforge_backend_gpu::probe::{FactorType, GemmProbe, LinearSystem, NumericFormat, Probe};
use warpforge_inventory::live::GpuSampler;
use warpforge_linalg::Kind;

use self::settings::Settings;
use super::measure::{self, Checked};
use super::mxp::named;
use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, RunContext, text};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::device;

/// Rows of the GEMM whose rate is the f64 peak.
const PEAK_ROWS: usize = 8192;

/// LU in f64.
#[derive(Debug)]
pub(super) struct Fp64Gpu;

/// LU in low precision, refined to the accuracy of f64.
#[derive(Debug)]
pub(super) struct MxpGpu;

impl Benchmark for Fp64Gpu {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Solves a dense system on a GPU by cuSOLVER's LU with partial pivoting in f64; HPL's operation \
                           count and HPL's check of every solution";
        on_gpu(spec("linpack_fp64_gpu", description, None, settings::params()))
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        settings::takes()
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        prepare(&Settings::new(params, Kind::Uniform, FactorType::F64)?, params)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::new(context.params(), Kind::Uniform, FactorType::F64)?;
        run(context, &settings)
    }
}

impl Benchmark for MxpGpu {
    fn spec(&self) -> BenchmarkSpec {
        let mut params = settings::params();
        params.insert("factors".to_owned(), ParamValue::Text(FactorType::F16.name().to_owned()));
        params.insert("matrix".to_owned(), ParamValue::Text(Kind::DiagonallyDominant.name().to_owned()));
        let description = "Solves a dense system on a GPU by cuSOLVER's LU in low precision and GMRES-based refinement in \
                           f64; HPL's operation count and HPL's check of every solution";
        on_gpu(spec("linpack_mxp_gpu", description, None, params))
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        let mut takes = settings::takes();
        takes.push(("factors", FactorType::REFINED.map(FactorType::name).join(" or ")));
        takes.push(("matrix", Kind::ALL.map(Kind::name).join(" or ")));
        takes
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        prepare(&mixed(params)?, params)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = mixed(context.params())?;
        run(context, &settings)
    }
}

fn on_gpu(spec: BenchmarkSpec) -> BenchmarkSpec {
    BenchmarkSpec { components: vec![BenchmarkComponent::Gpu], ..spec }
}

fn mixed(params: &Params) -> Result<Settings, BenchmarkError> {
    let factors = FactorType::REFINED.map(|known| (known.name(), known));
    let factors = named("factors", text(params, "factors"), factors)?;
    let kind = named("matrix", text(params, "matrix"), Kind::ALL.map(|known| (known.name(), known)))?;
    Settings::new(params, kind, factors)
}

/// Whether there is a GPU with memory for the matrix, and a solver.
fn prepare(settings: &Settings, params: &Params) -> Result<(), BenchmarkError> {
    let (probe, _) = device::open(params)?;
    settings.problem(probe.memory()?.0)?;
    // The smallest system: opens the library and asks it for this precision.
    LinearSystem::new(&probe, 2, settings.factors).map(drop).map_err(not_possible)
}

fn run(context: &mut RunContext<'_>, settings: &Settings) -> Result<(), BenchmarkError> {
    let (probe, vendor) = device::open(context.params())?;
    let problem = settings.problem(probe.memory()?.0)?;
    let team = measure::team(&settings.cpus)?;
    let mut system = LinearSystem::new(&probe, problem.order, settings.factors).map_err(not_possible)?;
    system.fill(|first, elements| problem.columns(team.pool(), first, elements))?;
    let peak = peak(context, &probe);
    let sampler = GpuSampler::here();
    let joules = || sampler.joules(probe.guid());
    let b = problem.rhs();
    // The first solve loads the library's kernels.
    system.solve(&b).map_err(not_possible)?;
    let tags = [
        ("factors", settings.factors.name().to_owned()),
        ("device", probe.name().to_owned()),
        ("api", vendor.name().to_owned()),
        ("cusolver", system.version().to_owned()),
    ];
    measure::repeat(context, problem.order, &tags, || {
        let peak = peak.as_ref().and_then(|gemm| gemm.rate().ok());
        let before = joules();
        let solved = system.solve(&b).map_err(not_possible)?;
        let joules = before.zip(joules()).map(|(before, after)| after - before);
        let residual = measure::check(problem.residual(team.pool(), &solved.x))?;
        Ok(Checked { time: solved.time, residual, peak, joules, steps: solved.steps })
    })
}

/// The GEMM whose rate is the f64 peak, where the device has memory for it beside the system.
fn peak<'p>(context: &mut RunContext<'_>, probe: &'p Probe) -> Option<GemmProbe<'p>> {
    match GemmProbe::new(probe, NumericFormat::F64, PEAK_ROWS) {
        Ok(gemm) => {
            // The first run warms up.
            let warmed_up = gemm.rate().is_ok();
            warmed_up.then_some(gemm)
        }
        Err(error) => {
            context.warn(format!("no peak of f64 to compare with: {error}"));
            None
        }
    }
}

/// What the machine lacks is no failure.
fn not_possible(error: GpuError) -> BenchmarkError {
    match error {
        GpuError::Missing(missing) => BenchmarkError::NotPossible(format!(
            "{missing}; it is in PyPI's nvidia-cusolver (CUDA 13) and nvidia-cusolver-cu12, and in the CUDA toolkit"
        )),
        GpuError::OutOfMemory { .. } | GpuError::Symbol { .. } => {
            BenchmarkError::NotPossible(error.to_string())
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use warpforge_backend_gpu::library::Missing;

    use super::*;
    use crate::suites::testing::round;

    #[test]
    fn what_does_not_exist_is_refused_with_what_does() {
        for (name, value, known) in [
            ("factors", "f64", "f16, bf16, tf32, f32"),
            ("matrix", "hilbert", "uniform, dominant"),
            ("n", "1", "2 to 131072"),
        ] {
            let error = MxpGpu.prepare(&round(&MxpGpu, &[(name, value)], 0.0).params).unwrap_err();
            assert!(matches!(&error, BenchmarkError::BadInput(text) if text.contains(known)), "{error}");
        }
    }

    #[test]
    fn a_missing_library_names_its_packages() {
        let missing = Missing { what: "cuSOLVER", names: Vec::new(), searched: Vec::new() };
        let error = not_possible(missing.into());
        assert!(
            matches!(&error, BenchmarkError::NotPossible(text) if text.contains("nvidia-cusolver")),
            "{error:?}"
        );
        let full = GpuError::OutOfMemory { needed: 2, free: 1, total: 1 };
        assert!(matches!(not_possible(full), BenchmarkError::NotPossible(_)));
        assert!(matches!(not_possible(GpuError::Other(String::new())), BenchmarkError::Failed(_)));
    }
}
