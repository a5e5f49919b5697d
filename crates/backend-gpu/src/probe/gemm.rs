//! GEMM throughput of the vendor's BLAS.

use std::sync::Arc;

use warpforge_tensor::ElementType;

use super::Probe;
use super::format::{NumericFormat, pattern};
use crate::blas::{Activation, BlasLt, Gemm, GemmBuffers, GemmPlan, Matrix, WORKSPACE};
use crate::driver::Buffer;
use crate::error::{GpuError, Result};

/// A square GEMM of random data.
pub struct GemmProbe<'p> {
    probe: &'p Probe,
    plan: GemmPlan,
    format: NumericFormat,
    /// Operations per GEMM.
    flops: f64,
    _memory: [Buffer; 4],
}

impl<'p> GemmProbe<'p> {
    /// Fills the operands and selects the fastest algorithm.
    ///
    /// # Errors
    ///
    /// When there is no BLAS, not enough memory, or no such GEMM.
    pub fn new(probe: &'p Probe, format: NumericFormat, size: usize) -> Result<Self> {
        let [lhs, rhs, out] = format.elements();
        let bytes = |element: ElementType| {
            let square = size.checked_mul(size).and_then(|count| count.checked_mul(element.byte_width()));
            square.ok_or_else(|| GpuError::Other(format!("a matrix of {size} rows is too large")))
        };
        let memory = [
            probe.filled(bytes(lhs)?, &pattern(lhs))?,
            probe.filled(bytes(rhs)?, &pattern(rhs))?,
            probe.gpu.allocate(bytes(out)?)?,
            probe.gpu.allocate(WORKSPACE)?,
        ];
        let matrix =
            Matrix { element: lhs, by_columns: false, stride: size, batch_stride: 0, alignment: 256 };
        let gemm = Gemm {
            batch: 1,
            m: size,
            n: size,
            k: size,
            lhs: matrix,
            // 8-bit GEMMs need K contiguous in both operands.
            rhs: Matrix { element: rhs, by_columns: rhs.byte_width() == 1, ..matrix },
            out,
            compute_type: format.compute_type(),
            bias: None,
            activation: Activation::None,
            residual: false,
            scales: None,
            fast_accumulation: false,
            bias_gradient: None,
        };
        let [lhs, rhs, out, workspace] = &memory;
        let buffers = GemmBuffers {
            lhs: lhs.address(),
            rhs: rhs.address(),
            out: out.address(),
            workspace: workspace.address(),
            ..GemmBuffers::default()
        };
        let library = Arc::new(BlasLt::of(&probe.gpu)?);
        let plan = GemmPlan::new(&library, &gemm, buffers, &probe.stream)?;
        Ok(Self { probe, plan, format, flops: 2.0 * (size as f64).powi(3), _memory: memory })
    }

    /// Whether it runs on tensor cores.
    #[must_use]
    pub fn on_tensor_cores(&self) -> bool {
        let gpu = &self.probe.gpu;
        self.format.on_tensor_cores(gpu.driver.vendor, gpu.properties.capability)
    }

    /// Runs once and returns operations per second.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn rate(&self) -> Result<f64> {
        let time = self.probe.timed(|| self.plan.run(&self.probe.stream))?;
        Ok(self.flops / time.as_secs_f64().max(1e-9))
    }
}
