//! The micro suite: what each part of the machine can do at most, measured natively.

mod core_speed;
mod cpu_flops;
mod disk_io;
pub mod gpu;
mod mem_bandwidth;
mod mem_latency;
pub mod memory_levels;
mod net_bandwidth;

use super::Suite;
use crate::record::{BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, params};

/// The suite.
pub static SUITE: Suite = Suite {
    name: "micro",
    description: "What each part of the machine can do at most: arithmetic, memory, disk, network",
    benchmarks: &[
        &cpu_flops::CpuFlops,
        &mem_bandwidth::MemBandwidth,
        &mem_latency::MemLatency,
        &disk_io::DiskIo,
        &net_bandwidth::NetBandwidth,
        &gpu::GpuFlops,
        &gpu::GpuBandwidth,
    ],
};

/// What the specifications of this suite have in common.
fn spec(
    name: &str,
    component: BenchmarkComponent,
    seconds: u32,
    description: &str,
    defaults: &[(&str, ParamValue)],
) -> BenchmarkSpec {
    BenchmarkSpec {
        components: vec![component],
        description: Some(description.to_owned()),
        default_duration_seconds: Some(seconds),
        params: (!defaults.is_empty()).then(|| params(defaults)),
        ..BenchmarkId::new("micro", name).spec(BenchmarkKind::Synthetic)
    }
}
