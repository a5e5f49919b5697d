//! The linpack suite: dense linear systems, solved by our own LU on the engine's GEMM and by external HPL programs.
//!
//! Every solution is checked by HPL's scaled residual, with the matrix made again from its seed. A solution that fails is
//! FAIL and has no rate.

mod external;
mod fp64;
mod measure;
mod mxp;
mod settings;

use super::Suite;
use crate::benchmark::Benchmark;
use crate::record::{BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, Params};

/// The suite.
#[derive(Debug, Clone, Copy)]
pub struct Linpack;

impl Suite for Linpack {
    fn name(&self) -> &'static str {
        "linpack"
    }

    fn description(&self) -> &'static str {
        "Dense linear systems with HPL's check: LU in f64, low-precision LU with refinement, external HPL"
    }

    fn benchmarks(&self) -> &'static [&'static dyn Benchmark] {
        &[&fp64::Fp64Cpu, &mxp::MxpCpu, &external::External]
    }
}

/// What the specifications of this suite have in common.
fn spec(name: &str, description: &str, external_tool: Option<&str>, params: Params) -> BenchmarkSpec {
    BenchmarkSpec {
        id: BenchmarkId::new("linpack", name),
        components: vec![BenchmarkComponent::Cpu],
        kind: BenchmarkKind::Synthetic,
        description: Some(description.to_owned()),
        default_duration_seconds: Some(15),
        external_tool: external_tool.map(str::to_owned),
        params: Some(params),
    }
}

/// The operations that HPL counts for a system of this order.
fn operations(order: usize) -> f64 {
    let n = order as f64;
    2.0 / 3.0 * n.powi(3) + 1.5 * n.powi(2)
}
