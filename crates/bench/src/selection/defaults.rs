//! The benchmarks that stand for a component when the user names only the component.

use crate::record::BenchmarkComponent;

/// The default benchmarks of each component, as suite and name.
pub const COMPONENT_DEFAULTS: &[(BenchmarkComponent, &[(&str, &str)])] = &[
    (BenchmarkComponent::Cpu, &[("micro", "cpu_flops")]),
    (BenchmarkComponent::Gpu, &[("micro", "gpu_flops")]),
    (BenchmarkComponent::Ram, &[("micro", "mem_bandwidth")]),
    (BenchmarkComponent::Storage, &[("micro", "disk_io")]),
    (BenchmarkComponent::Network, &[("micro", "net_bandwidth")]),
    (BenchmarkComponent::System, &[("pepbench", "end_to_end_infer")]),
];
