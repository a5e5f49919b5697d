//! `cpu_flops`: the rate of arithmetic in registers and in the engine's GEMM, by one core and by all.

mod settings;

use std::time::{Duration, Instant};

use warpforge_measure::sink;
use warpforge_probes::cpu::{Dtype, Gemm, PeakKernel, ProductError, Shape, gemms, peaks};
use warpforge_probes::team::Team;

use self::settings::{Kernel, Settings};
use super::core_speed::on_team;
use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};

/// How long a piece of the load before the first measurement lasts, between two questions whether to stop.
const BURN_IN_PIECE: Duration = Duration::from_millis(20);

/// The benchmark.
#[derive(Debug)]
pub(super) struct CpuFlops;

impl Benchmark for CpuFlops {
    fn spec(&self) -> BenchmarkSpec {
        spec(
            "cpu_flops",
            BenchmarkComponent::Cpu,
            10,
            "Arithmetic rate of one core and of all, for each precision by the widest instructions present: peak in \
             registers, and the engine's GEMM",
            &[
                ("threads", ParamValue::Int(0)),
                ("dtypes", ParamValue::Text("f64,f32,bf16,int8".to_owned())),
                ("kernels", ParamValue::Text("fma,gemm".to_owned())),
                ("gemm_size", ParamValue::Int(1024)),
                ("handicap_percent", ParamValue::Int(0)),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        settings::takes()
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::new(params, &processors()?).map(|_| ())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::new(context.params(), &processors()?)?;
        let mut scopes = settings
            .scopes()
            .into_iter()
            .map(|(name, cpus)| Scope::new(name, &cpus))
            .collect::<Result<Vec<_>, _>>()?;
        let loads = loads(&settings, context);
        context.plan(loads.len() * scopes.len());
        for (at, scope) in scopes.iter_mut().enumerate() {
            if at == 0 {
                scope.burn_in(context);
            }
            for load in &loads {
                scope.measure(context, &settings, load)?;
            }
        }
        Ok(())
    }
}

/// The processors that this process may use.
fn processors() -> Result<Vec<usize>, BenchmarkError> {
    warpforge_probes::affinity::allowed()
        .map_err(|error| BenchmarkError::Failed(format!("cannot tell which processors may be used: {error}")))
}

/// Something to measure.
enum Load {
    Peak(PeakKernel),
    Gemm(Gemm),
}

/// What the settings ask for and this processor can do, by its widest instructions; the rest is a warning.
fn loads(settings: &Settings, context: &mut RunContext<'_>) -> Vec<Load> {
    let mut loads = Vec::new();
    for (kernel_name, kernel) in &settings.kernels {
        for (dtype_name, dtype) in &settings.dtypes {
            let load = match kernel {
                Kernel::Fma => peaks().into_iter().find(|peak| peak.dtype() == *dtype).map(Load::Peak),
                Kernel::Gemm => gemms().into_iter().find(|gemm| gemm.dtype() == *dtype).map(Load::Gemm),
            };
            match load {
                Some(load) => loads.push(load),
                None => context.warn(format!(
                    "{kernel_name} of {dtype_name} was not measured: warpt uses no instructions of this processor \
                     that multiply {dtype_name}"
                )),
            }
        }
    }
    loads
}

impl From<ProductError> for BenchmarkError {
    fn from(error: ProductError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The threads that measure together.
struct Scope {
    name: &'static str,
    team: Team,
}

impl Scope {
    fn new(name: &'static str, cpus: &[usize]) -> Result<Self, BenchmarkError> {
        let team = Team::new(cpus).map_err(|error| {
            BenchmarkError::Failed(format!("cannot start {} threads: {error}", cpus.len()))
        })?;
        Ok(Self { name, team })
    }

    /// Brings the clocks to where they stay under load.
    fn burn_in(&mut self, context: &RunContext<'_>) {
        let Some(kernel) = peaks().into_iter().find(|kernel| kernel.dtype() == Dtype::F32) else { return };
        let begin = Instant::now();
        let mut iterations = 1_000;
        while begin.elapsed() < context.burn_in() && !context.stopped() {
            let took = self.team.run(|_| {
                sink(kernel.run(iterations));
            });
            if took < BURN_IN_PIECE {
                iterations *= 2;
            }
        }
    }

    fn measure(
        &mut self,
        context: &mut RunContext<'_>,
        settings: &Settings,
        load: &Load,
    ) -> Result<(), BenchmarkError> {
        match load {
            Load::Peak(kernel) => self.measure_peak(context, settings, kernel),
            Load::Gemm(gemm) => self.measure_gemm(context, settings, gemm),
        }
    }

    fn measure_peak(
        &mut self,
        context: &mut RunContext<'_>,
        settings: &Settings,
        kernel: &PeakKernel,
    ) -> Result<(), BenchmarkError> {
        let ops = kernel.ops_per_iteration() as f64 * self.team.size() as f64;
        let key = self.key(Kernel::Fma, kernel.dtype(), kernel.isa());
        let team = &mut self.team;
        context.measure(
            key,
            |seconds| ops / seconds / 1e9,
            |iterations| {
                let iterations = settings.with_handicap(iterations);
                on_team(team, |team| {
                    team.run(|_| {
                        sink(kernel.run(iterations));
                    })
                })
            },
        )
    }

    fn measure_gemm(
        &mut self,
        context: &mut RunContext<'_>,
        settings: &Settings,
        gemm: &Gemm,
    ) -> Result<(), BenchmarkError> {
        let size = settings.gemm_size;
        // A handicap makes the matrices deeper than what is counted.
        let k = settings.with_handicap(size as u64) as usize;
        let mut product = gemm.product(Shape { m: size, n: size, k })?;
        // Gets the memory that operands are packed into, so that the runs below have it.
        product.run(&mut self.team)?;
        let ops = 2.0 * (size as f64).powi(3);
        let key = self.key(Kernel::Gemm, gemm.dtype(), gemm.isa()).tag("size", size);
        let mut failed: Option<ProductError> = None;
        let team = &mut self.team;
        context.measure(
            key,
            |seconds| ops / seconds / 1e9,
            |iterations| {
                on_team(team, |team| {
                    let mut total = Duration::ZERO;
                    for _ in 0..iterations {
                        match product.run(team) {
                            Ok(took) => total += took,
                            Err(error) => failed = Some(error),
                        }
                    }
                    total
                })
            },
        )?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn key(&self, kernel: Kernel, dtype: Dtype, isa: &str) -> MetricKey {
        let (name, unit) = if dtype.is_float() { ("gflops", "GFLOP/s") } else { ("gops", "GOP/s") };
        MetricKey::more_is_better(name, unit)
            .tag("kernel", kernel.name())
            .tag("dtype", dtype)
            .tag("isa", isa)
            .tag("scope", self.name)
            .tag("threads", self.team.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Event, Round};
    use crate::suites::testing;

    /// The metrics and warnings of a very short round.
    fn round(params: &[(&str, &str)]) -> (Vec<MetricKey>, Vec<String>) {
        let round = Round { burn_in_seconds: 0.001, ..testing::round(&CpuFlops, params, 0.02) };
        let (mut metrics, mut warnings) = (Vec::new(), Vec::new());
        let mut report = |event| match event {
            Event::Metric { key, values } => {
                assert!(values.iter().all(|&value| value > 0.0), "{key:?}");
                metrics.push(key);
            }
            Event::Warning { message } => warnings.push(message),
            Event::Progress { .. } | Event::CoreSpeed { .. } | Event::Version { .. } => {}
        };
        CpuFlops.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
        (metrics, warnings)
    }

    #[test]
    fn a_round_measures_or_remarks_upon_every_kernel_and_type_in_each_scope() {
        let (metrics, warnings) = round(&[("gemm_size", "40")]);
        let scopes = if processors().unwrap().len() > 1 { 2 } else { 1 };
        assert_eq!(metrics.len() + scopes * warnings.len(), scopes * 8, "{metrics:?} {warnings:?}");
        let mut labels: Vec<_> = metrics.iter().map(MetricKey::label).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), metrics.len(), "two metrics have one name");
        for key in &metrics {
            let unit = if key.tags["dtype"] == "int8" { "GOP/s" } else { "GFLOP/s" };
            assert_eq!(key.unit, unit, "{key:?}");
        }
    }

    #[test]
    fn the_selection_is_obeyed() {
        let (metrics, warnings) = round(&[("kernels", "fma"), ("dtypes", "f32"), ("threads", "1")]);
        assert!(warnings.is_empty(), "{warnings:?}");
        let [key] = &metrics[..] else { panic!("{metrics:?}") };
        for (tag, value) in [("kernel", "fma"), ("dtype", "f32"), ("scope", "one_core"), ("threads", "1")] {
            assert_eq!(key.tags[tag], value);
        }
    }
}
