//! The linpack suite: dense linear systems, solved by our own LU on the engine's GEMM, by a GPU's
//! solver, and by external HPL programs.
//!
//! Every solution is checked by HPL's scaled residual, with the matrix made again from its seed. A solution that fails is
//! FAIL and has no rate.

mod blas;
mod external;
mod fp64;
mod gpu;
mod measure;
mod mxp;
mod settings;

use super::Suite;
use crate::record::{BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, Params};

/// The suite.
pub static SUITE: Suite = Suite {
    name: "linpack",
    description: "Dense linear systems with HPL's check: LU in f64, low-precision LU with refinement, external HPL",
    benchmarks: &[&fp64::Fp64Cpu, &mxp::MxpCpu, &gpu::Fp64Gpu, &gpu::MxpGpu, &external::External],
};

/// What the specifications of this suite have in common.
fn spec(name: &str, description: &str, external_tool: Option<&str>, params: Params) -> BenchmarkSpec {
    BenchmarkSpec {
        components: vec![BenchmarkComponent::Cpu],
        description: Some(description.to_owned()),
        default_duration_seconds: Some(15),
        external_tool: external_tool.map(str::to_owned),
        params: Some(params),
        ..BenchmarkId::new("linpack", name).spec(BenchmarkKind::Synthetic)
    }
}

/// The operations that HPL counts for a system of this order.
fn operations(order: usize) -> f64 {
    let n = order as f64;
    2.0 / 3.0 * n.powi(3) + 1.5 * n.powi(2)
}
