//! The BLAS libraries of a vendor, in order of preference.

use std::sync::Arc;

use super::descriptor::{Activation, Gemm, GemmBuffers, OperandSide, RunGemm, WORKSPACE};
use super::lt::BlasLt;
use super::plan::GemmPlan;
use super::rocblas::Rocblas;
use crate::driver::{Address, Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::vendor::Vendor;

/// The BLAS libraries of a device.
#[derive(Clone)]
pub(crate) struct Blas {
    /// cuBLASLt or hipBLASLt.
    pub(crate) blas_lt: Option<Arc<BlasLt>>,
    /// rocBLAS.
    pub(crate) rocblas: Option<Arc<Rocblas>>,
}

impl Blas {
    /// Opens the libraries of a device.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        let blas_lt = BlasLt::of(gpu).map(Arc::new);
        let rocblas = match gpu.driver.vendor {
            Vendor::Cuda => None,
            Vendor::Hip => {
                Rocblas::of(gpu).map(Arc::new).inspect_err(|error| tracing::debug!(%error, "no rocBLAS")).ok()
            }
        };
        match (blas_lt, &rocblas) {
            (Err(error), None) => Err(error),
            (Err(error), Some(_)) => {
                tracing::warn!(%error, "rocBLAS computes GEMMs; epilogues are generated kernels");
                Ok(Self { blas_lt: None, rocblas })
            }
            (Ok(blas_lt), _) => Ok(Self { blas_lt: Some(blas_lt), rocblas }),
        }
    }

    /// Whether GEMMs support bias and activation epilogues.
    pub(crate) fn has_epilogues(&self) -> bool {
        self.blas_lt.is_some()
    }

    /// Whether GEMMs support the gradient of ReLU by a bit mask.
    pub(crate) fn has_relu_gradient(&self) -> bool {
        self.blas_lt.as_ref().is_some_and(|blas_lt| blas_lt.vendor() == Vendor::Cuda)
    }

    /// Whether a GEMM without an epilogue may succeed where one with it was refused.
    pub(crate) fn has_rocblas(&self) -> bool {
        self.rocblas.is_some()
    }

    /// Plans a GEMM. The buffers are overwritten.
    ///
    /// # Errors
    ///
    /// When no library supports it, or a separate kernel for its optional work is faster.
    pub(crate) fn plan(
        &self,
        gemm: &Gemm,
        buffers: GemmBuffers,
        stream: &Stream,
    ) -> Result<Box<dyn RunGemm>> {
        if let Some(optional) = OptionalWork::of(gemm, &buffers) {
            return self.plan_with_optional(gemm, &optional, buffers, stream);
        }
        let refused = match &self.blas_lt {
            None => None,
            Some(blas_lt) => match GemmPlan::new(blas_lt, gemm, buffers, stream) {
                Ok(plan) => return Ok(Box::new(plan)),
                Err(error @ (GpuError::Lost { .. } | GpuError::OutOfMemory { .. })) => return Err(error),
                Err(error) => Some(error),
            },
        };
        let Some(rocblas) = &self.rocblas else {
            return Err(refused.unwrap_or_else(|| GpuError::Other("no BLAS library".to_owned())));
        };
        if let Some(error) = refused {
            tracing::info!(%error, "hipBLASLt refuses a gemm; rocBLAS is asked");
        }
        Ok(Box::new(rocblas.plan(gemm, buffers, stream)?))
    }

    /// Plans a GEMM with optional work, where it is not slower than the plain GEMM and a separate kernel.
    fn plan_with_optional(
        &self,
        gemm: &Gemm,
        optional: &OptionalWork,
        buffers: GemmBuffers,
        stream: &Stream,
    ) -> Result<Box<dyn RunGemm>> {
        let library =
            self.blas_lt.as_ref().ok_or_else(|| GpuError::Other(format!("no {}", optional.what)))?;
        let with = GemmPlan::new(library, gemm, buffers, stream)?;
        let alone =
            GemmPlan::new(library, &optional.without, GemmBuffers { bias: 0, aux: 0, ..buffers }, stream)?;
        let copied =
            library.time_of_copy(buffers.workspace, optional.from, optional.bytes.min(WORKSPACE), stream)?;
        let copied = copied.mul_f64(optional.bytes.div_ceil(WORKSPACE).max(1) as f64);
        let (took, without) = (with.time(), alone.time());
        if took > without + copied {
            return Err(GpuError::Other(format!("{took:?} with the {}, {without:?} without", optional.what)));
        }
        Ok(Box::new(with))
    }
}

/// Work that either a GEMM or a separate kernel can do, the latter in about the time of a copy.
struct OptionalWork {
    what: &'static str,
    /// The GEMM without it.
    without: Gemm,
    /// The memory traffic of the separate kernel.
    from: Address,
    bytes: usize,
}

impl OptionalWork {
    fn of(gemm: &Gemm, buffers: &GemmBuffers) -> Option<Self> {
        let Gemm { m, n, k, .. } = *gemm;
        let (what, from, bytes) = match (gemm.bias_gradient, gemm.activation) {
            (Some(OperandSide::Left), _) => {
                ("compute_type of an operand", buffers.lhs, m * k * gemm.lhs.element.byte_width())
            }
            (Some(OperandSide::Right), _) => {
                ("compute_type of an operand", buffers.rhs, k * n * gemm.rhs.element.byte_width())
            }
            // A separate kernel for the gradient reads and writes the result once more.
            (None, Activation::ReluGradient) => {
                ("gradient of ReLU", buffers.out, m * n * gemm.out.byte_width())
            }
            _ => return None,
        };
        let activation = match gemm.activation {
            Activation::ReluGradient => Activation::None,
            other => other,
        };
        Some(Self { what, without: Gemm { bias_gradient: None, activation, ..*gemm }, from, bytes })
    }
}
