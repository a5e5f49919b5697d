//! The micro suite: what each part of the machine can do at most, measured natively.

mod core_speed;
mod cpu_flops;
mod disk_io;
mod gpu;
mod mem_bandwidth;
mod mem_latency;
mod memory_levels;
mod net_bandwidth;
mod percentiles;

use super::Suite;
use crate::benchmark::Benchmark;
use crate::record::{BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, Params};

/// The suite.
#[derive(Debug, Clone, Copy)]
pub struct Micro;

impl Suite for Micro {
    fn name(&self) -> &'static str {
        "micro"
    }

    fn description(&self) -> &'static str {
        "What each part of the machine can do at most: arithmetic, memory, disk, network"
    }

    fn benchmarks(&self) -> &'static [&'static dyn Benchmark] {
        &[
            &cpu_flops::CpuFlops,
            &mem_bandwidth::MemBandwidth,
            &mem_latency::MemLatency,
            &disk_io::DiskIo,
            &net_bandwidth::NetBandwidth,
            &gpu::GpuFlops,
            &gpu::GpuBandwidth,
        ]
    }
}

/// What the specifications of this suite have in common.
fn spec(
    name: &str,
    component: BenchmarkComponent,
    seconds: u32,
    description: &str,
    params: Params,
) -> BenchmarkSpec {
    BenchmarkSpec {
        id: BenchmarkId::new("micro", name),
        components: vec![component],
        kind: BenchmarkKind::Synthetic,
        description: Some(description.to_owned()),
        default_duration_seconds: Some(seconds),
        external_tool: None,
        params: (!params.is_empty()).then_some(params),
    }
}
