//! Multiply-add throughput without tensor cores.

use warpforge_codegen::{Kernel, peak};

use super::Probe;
use super::format::{NumericFormat, pattern};
use crate::driver::{Buffer, Function};
use crate::error::Result;
use crate::steps::{LoadedKernels, dialect};

/// Resident threads per multiprocessor.
const THREADS_EACH: u32 = 2048;

/// Chains of multiply-adds in registers.
pub struct FmaProbe<'p> {
    probe: &'p Probe,
    kernel: Kernel,
    function: Function,
    memory: Buffer,
}

impl<'p> FmaProbe<'p> {
    /// Compiles the kernel; none where the device lacks the instruction.
    ///
    /// # Errors
    ///
    /// When there is no compiler, or the device fails.
    pub fn new(probe: &'p Probe, format: NumericFormat) -> Result<Option<Self>> {
        let gpu = &probe.gpu;
        let threads = gpu.properties.multiprocessors * THREADS_EACH;
        let kernel = format.units().and_then(|units| peak(dialect(gpu.driver.vendor), units, threads));
        let Some(kernel) = kernel else { return Ok(None) };
        let function = LoadedKernels::new(gpu, [&kernel].into_iter())?.function(&kernel)?;
        let bytes = (kernel.grid[0] * kernel.block[0]) as usize * size_of::<f64>();
        let memory = probe.filled(bytes, &pattern(format.elements()[0]))?;
        Ok(Some(Self { probe, kernel, function, memory }))
    }

    /// Runs once and returns operations per second.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn rate(&self) -> Result<f64> {
        let Kernel { grid, block, .. } = self.kernel;
        let mut arguments = [vec![self.memory.address()]];
        let launch = || self.probe.stream.launch(&self.function, grid, block, 0, &mut arguments);
        let time = self.probe.timed(launch)?;
        Ok(self.kernel.flops as f64 / time.as_secs_f64().max(1e-9))
    }
}
