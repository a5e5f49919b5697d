//! A small profile for tests.

use super::{
    Bandwidth, FusionProfile, FusionRound, Machine, Mode, Operation, Overhead, Peak, Profile, SCHEMA_VERSION,
    SelfCheck, Theoretical,
};
use crate::verdict::Verdict;

/// A machine of 100 GFLOP/s and 10 GB/s.
pub(crate) fn profile() -> Profile {
    let device = || "cpu".to_owned();
    let bandwidth = |level: &str, access: &str, bytes, gbps| Bandwidth {
        device: device(),
        level: level.to_owned(),
        access: access.to_owned(),
        stores: "ordinary".to_owned(),
        threads: 2,
        working_set_bytes: bytes,
        gbps,
        ci_low: gbps * 0.99,
        ci_high: gbps * 1.01,
        pace: None,
    };
    let peak = |mode, gops| Peak {
        device: device(),
        dtype: "f32".to_owned(),
        isa: "avx512".to_owned(),
        threads: 2,
        mode,
        gops,
        ci_low: gops * 0.99,
        ci_high: gops * 1.01,
        watts: None,
        clock: None,
        pace: None,
    };
    Profile {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".to_owned(),
        created: "2026-11-16T12:00:00Z".parse().unwrap(),
        quick: true,
        complete: true,
        machine: Machine { hardware_name: "test".to_owned(), threads: 2, ..Machine::default() },
        conditions: warpforge_inventory::live::Conditions::default(),
        theoretical: Theoretical::default(),
        peaks: vec![peak(Mode::Burst, 100.0), peak(Mode::Sustained, 90.0)],
        bandwidth: vec![
            bandwidth("L1", "triad", 16 << 10, 400.0),
            bandwidth("L2", "triad", 1 << 20, 100.0),
            bandwidth("DRAM", "triad", 1 << 30, 10.0),
            bandwidth("DRAM", "read", 1 << 30, 12.0),
        ],
        overheads: vec![Overhead { device: device(), what: "run".to_owned(), threads: 2, us: 5.0 }],
        operations: vec![linear(512, 1024, 1024, 50.0), linear(128, 1024, 1024, 40.0)],
        cold_weights: Vec::new(),
        fusion_profiles: vec![fusion()],
        self_check: SelfCheck { verdict: "PASS".to_owned(), ..SelfCheck::default() },
    }
}

/// A matmul at so many GFLOP/s.
pub(crate) fn linear(m: usize, k: usize, n: usize, gflops: f64) -> Operation {
    let flops = 2 * (m * k * n) as u64;
    let ms = flops as f64 / gflops / 1e6;
    Operation {
        op: "linear".to_owned(),
        dtype: "f32".to_owned(),
        shape: vec![m, k, n],
        device: "cpu".to_owned(),
        threads: 2,
        flops,
        bytes: 4 * (m * k + k * n + m * n) as u64,
        ms,
        ci: [ms * 0.99, ms * 1.01],
        efficiency: gflops / 90.0,
    }
}

fn fusion() -> FusionProfile {
    FusionProfile {
        fusion_pattern: "Linear_Bias_ReLU".to_owned(),
        operators: ["matmul", "add", "relu"].map(str::to_owned).to_vec(),
        input_shape: vec![512, 1024, 1024],
        dtype: "f32".to_owned(),
        device: "cpu".to_owned(),
        threads: 2,
        unfused_latency_ms: 24.0,
        unfused_gflops: 45.0,
        unfused_bytes: 16_781_312,
        unfused_kernels: 3,
        fused_latency_ms: 20.0,
        fused_gflops: 54.0,
        fused_bytes: 8_392_704,
        fused_kernels: 1,
        speedup_factor: 1.2,
        speedup_ci: [1.15, 1.25],
        memory_reduction: 0.5,
        gflops_improvement: 0.2,
        flops: 1_074_790_400,
        extra_params: std::collections::BTreeMap::new(),
        num_trials: 10,
        verdict: Verdict::Moderate,
        rounds: vec![FusionRound {
            log_ratio: 1.2_f64.ln(),
            standard_error: 0.01,
            samples: 10,
            fused_ms: 20.0,
            unfused_ms: 24.0,
        }],
    }
}
