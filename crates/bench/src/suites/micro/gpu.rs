//! GPU arithmetic and memory. They run on the GPU backend; until a build has one they are skipped, saying so.

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, Params};

/// Peak arithmetic rate of the GPU.
#[derive(Debug)]
pub(super) struct GpuFlops;

/// Memory and host transfer rates of the GPU.
#[derive(Debug)]
pub(super) struct GpuBandwidth;

impl Benchmark for GpuFlops {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Peak arithmetic rate of the GPU for each precision it has";
        spec("gpu_flops", BenchmarkComponent::Gpu, 10, description, Params::new())
    }

    fn prepare(&self, _params: &Params) -> Result<(), BenchmarkError> {
        Err(no_backend())
    }

    fn run(&self, _context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        Err(no_backend())
    }
}

impl Benchmark for GpuBandwidth {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Device memory bandwidth of the GPU and its copies from and to the host";
        spec("gpu_bandwidth", BenchmarkComponent::Gpu, 10, description, Params::new())
    }

    fn prepare(&self, _params: &Params) -> Result<(), BenchmarkError> {
        Err(no_backend())
    }

    fn run(&self, _context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        Err(no_backend())
    }
}

fn no_backend() -> BenchmarkError {
    let gpus = warpforge_inventory::hardware::gpu_count();
    BenchmarkError::NotPossible(if gpus == 0 {
        "no GPU found".to_owned()
    } else {
        format!("{gpus} GPU(s) found, but this version of warpt has no GPU backend yet")
    })
}
