//! cuBLASLt and hipBLASLt.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::constants::{self, ApiConstants};
use super::descriptor::Gemm;
use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::library::functions;
use crate::tuning::least_time;
use crate::vendor::Vendor;
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

/// cuBLASLt or hipBLASLt on a device.
pub(crate) struct BlasLt {
    pub(super) gpu: Arc<Gpu>,
    pub(super) functions: Functions,
    pub(super) constants: ApiConstants,
    pub(super) handle: Handle,
    /// The fastest algorithm of each GEMM measured so far, with its time.
    pub(super) known: Mutex<HashMap<Gemm, (Vec<u8>, Duration)>>,
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
        check(unsafe { (functions.create)(&raw mut handle) }, "create a BLAS handle")?;
        let constants = match gpu.driver.vendor {
            Vendor::Cuda => constants::CUBLASLT,
            Vendor::Hip => constants::HIPBLASLT,
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

/// Texts of status codes.
const STATUSES: &[(i32, &str)] = &[
    (1, "not initialised"),
    (3, "out of memory"),
    (7, "a value does not fit"),
    (8, "not for this architecture"),
    (13, "a kernel failed"),
    (14, "internal error"),
    (15, "not supported"),
];

/// Converts a status to a result.
pub(super) fn check(code: i32, function: &'static str) -> Result<()> {
    GpuError::of_status(code, function, STATUSES, "no further information from the BLAS library")
}
