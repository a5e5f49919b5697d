//! GEMMs by the vendor's BLAS: cuBLASLt or hipBLASLt, which share an interface up to names and constants, and rocBLAS
//! where hipBLASLt is missing or refuses.

// Calls a foreign library.
#![allow(unsafe_code)]

mod gemm;
mod library;
pub(crate) mod rocblas;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub(crate) use gemm::{Activation, ComputeType, Gemm, GemmBuffers, GemmPlan, Matrix, OperandSide};
pub(crate) use library::{Blas, RunGemm};

use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::library::{Vendor, functions};
use crate::tuning::least_time;
use crate::{cuda, hip};

functions! {
    /// cuBLASLt and hipBLASLt.
    Functions {
        create(*mut Handle) = "cublasLtCreate", "hipblasLtCreate";
        description_create(*mut Handle, i32, i32) = "cublasLtMatmulDescCreate", "hipblasLtMatmulDescCreate";
        description_destroy(Handle) = "cublasLtMatmulDescDestroy", "hipblasLtMatmulDescDestroy";
        description_set(Handle, i32, *const c_void, usize)
            = "cublasLtMatmulDescSetAttribute", "hipblasLtMatmulDescSetAttribute";
        layout_create(*mut Handle, i32, u64, u64, i64)
            = "cublasLtMatrixLayoutCreate", "hipblasLtMatrixLayoutCreate";
        layout_destroy(Handle) = "cublasLtMatrixLayoutDestroy", "hipblasLtMatrixLayoutDestroy";
        layout_set(Handle, i32, *const c_void, usize)
            = "cublasLtMatrixLayoutSetAttribute", "hipblasLtMatrixLayoutSetAttribute";
        preference_create(*mut Handle) = "cublasLtMatmulPreferenceCreate", "hipblasLtMatmulPreferenceCreate";
        preference_destroy(Handle) = "cublasLtMatmulPreferenceDestroy", "hipblasLtMatmulPreferenceDestroy";
        preference_set(Handle, i32, *const c_void, usize)
            = "cublasLtMatmulPreferenceSetAttribute", "hipblasLtMatmulPreferenceSetAttribute";
        heuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut u8, *mut i32)
            = "cublasLtMatmulAlgoGetHeuristic", "hipblasLtMatmulAlgoGetHeuristic";
        multiply(
            Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64, Handle, *const u8,
            u64, usize, Handle
        ) = "cublasLtMatmul", "hipblasLtMatmul";
    }
}

/// Constants of a vendor's BLAS interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiConstants {
    /// Compute types.
    pub(crate) compute_f32: i32,
    pub(crate) compute_tf32: i32,
    pub(crate) compute_f64: i32,
    pub(crate) compute_i32: i32,
    /// Transpose operations.
    pub(crate) plain: i32,
    pub(crate) transposed: i32,
    /// Attributes of a matmul descriptor.
    pub(crate) transpose_a: i32,
    pub(crate) transpose_b: i32,
    pub(crate) epilogue: i32,
    pub(crate) bias_address: i32,
    pub(crate) bias_type: i32,
    pub(crate) aux_address: i32,
    pub(crate) aux_stride: i32,
    /// Attributes of a layout.
    pub(crate) batch_count: i32,
    pub(crate) batch_stride: i32,
    /// Attributes of a preference; the alignments of A to D are consecutive, where they exist.
    pub(crate) most_workspace: i32,
    pub(crate) alignments: Option<i32>,
    /// Bytes of an algorithm and of a heuristic result.
    pub(crate) algorithm_bytes: usize,
    pub(crate) answer_bytes: usize,
}

/// Bytes of GEMM workspace.
pub(crate) const WORKSPACE: usize = 64 << 20;

/// cuBLASLt or hipBLASLt on a device.
pub(crate) struct BlasLt {
    gpu: Arc<Gpu>,
    functions: Functions,
    constants: ApiConstants,
    handle: Handle,
    /// The fastest algorithm of each GEMM measured so far, with its time.
    known: Mutex<HashMap<Gemm, (Vec<u8>, Duration)>>,
}

// SAFETY: the library's handle may be used from any thread.
unsafe impl Send for BlasLt {}
// SAFETY: as above.
unsafe impl Sync for BlasLt {}

impl BlasLt {
    /// Opens the library for a device.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static CUDA: OnceLock<Result<Functions>> = OnceLock::new();
        static HIP: OnceLock<Result<Functions>> = OnceLock::new();
        let vendor = gpu.driver.vendor;
        let (kept, wanted) = match vendor {
            Vendor::Cuda => (&CUDA, &cuda::BLAS_LT),
            Vendor::Hip => (&HIP, &hip::BLAS_LT),
        };
        let functions = kept.get_or_init(|| Functions::open(wanted));
        Self::with(gpu, functions.clone()?)
    }

    /// Wraps loaded functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.create)(&raw mut handle) }, "create a handle for products")?;
        let constants = match gpu.driver.vendor {
            Vendor::Cuda => cuda::BLAS_CONSTANTS,
            Vendor::Hip => hip::BLAS_CONSTANTS,
        };
        Ok(Self { gpu: Arc::clone(gpu), functions, constants, handle, known: Mutex::default() })
    }
}

impl BlasLt {
    /// The vendor.
    pub(crate) fn vendor(&self) -> Vendor {
        self.gpu.driver.vendor
    }

    /// Measures a device-to-device copy.
    pub(crate) fn time_of_copy(
        &self,
        to: Address,
        from: Address,
        bytes: usize,
        stream: &Stream,
    ) -> Result<Duration> {
        least_time(&self.gpu, stream, || stream.copy(to, from, bytes))
    }
}

/// Converts a status to a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = match code {
        1 => "not initialised",
        3 => "out of memory",
        7 => "a value does not fit",
        8 => "not for this architecture",
        13 => "a kernel failed",
        14 => "internal error",
        15 => "not supported",
        _ => "the library of products says no more",
    };
    Err(GpuError::Call { function, code, text: text.to_owned() })
}
