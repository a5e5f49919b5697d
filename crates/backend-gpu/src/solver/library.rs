//! cuSOLVER.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use crate::cuda;
use crate::driver::{Address, Buffer, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::library::functions;
use crate::vendor::Vendor;

functions! {
    /// The dense solvers of cuSOLVER.
    Functions {
        version(*mut i32) = "cusolverGetVersion";
        create(*mut Handle) = "cusolverDnCreate";
        destroy(Handle) = "cusolverDnDestroy";
        set_stream(Handle, Handle) = "cusolverDnSetStream";
        params_create(*mut Handle) = "cusolverDnCreateParams";
        params_destroy(Handle) = "cusolverDnDestroyParams";
        factor_workspace(Handle, Handle, i64, i64, i32, Address, i64, i32, *mut usize, *mut usize)
            = "cusolverDnXgetrf_bufferSize";
        factor(
            Handle, Handle, i64, i64, i32, Address, i64, Address, i32, Address, usize, *mut c_void, usize, Address
        ) = "cusolverDnXgetrf";
        solve(Handle, Handle, i32, i64, i64, i32, Address, i64, Address, i32, Address, i64, Address)
            = "cusolverDnXgetrs";
        refinement_create(*mut Handle) = "cusolverDnIRSParamsCreate";
        refinement_destroy(Handle) = "cusolverDnIRSParamsDestroy";
        refinement_precisions(Handle, i32, i32) = "cusolverDnIRSParamsSetSolverPrecisions";
        refinement_solver(Handle, i32) = "cusolverDnIRSParamsSetRefinementSolver";
        refinement_limit(Handle, i32) = "cusolverDnIRSParamsSetMaxIters";
        refinement_no_fallback(Handle) = "cusolverDnIRSParamsDisableFallback";
        outcome_create(*mut Handle) = "cusolverDnIRSInfosCreate";
        outcome_destroy(Handle) = "cusolverDnIRSInfosDestroy";
        refined_workspace(Handle, Handle, i32, i32, *mut usize) = "cusolverDnIRSXgesv_bufferSize";
        refined_solve(
            Handle, Handle, Handle, i32, i32, Address, i32, Address, i32, Address, i32, Address, usize, *mut i32, Address
        ) = "cusolverDnIRSXgesv";
    }
}

/// cuSOLVER on a device. Its work goes to the stream it was opened with.
pub(crate) struct Cusolver {
    pub(super) gpu: Arc<Gpu>,
    pub(super) functions: Functions,
    pub(super) handle: Handle,
    version: i32,
}

// SAFETY: the library's handle may be used from any thread, by one at a time, which exclusive borrows of plans ensure.
unsafe impl Send for Cusolver {}
// SAFETY: as above.
unsafe impl Sync for Cusolver {}

impl Cusolver {
    /// Opens the library for a device.
    ///
    /// # Errors
    ///
    /// When it is not installed, or the device is AMD's.
    pub(crate) fn of(gpu: &Arc<Gpu>, stream: &Stream) -> Result<Self> {
        static OPENED: OnceLock<Result<Functions>> = OnceLock::new();
        if gpu.driver.vendor != Vendor::Cuda {
            return Err(GpuError::Other(
                "dense systems need cuSOLVER, which is for NVIDIA's GPUs".to_owned(),
            ));
        }
        let functions = OPENED.get_or_init(|| Functions::open(&cuda::SOLVER));
        Self::with(gpu, stream, functions.clone()?)
    }

    /// Wraps loaded functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, stream: &Stream, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let (mut handle, mut version) = (std::ptr::null_mut(), 0);
        // SAFETY: the addresses are those of variables.
        unsafe {
            check((functions.version)(&raw mut version), "version")?;
            check((functions.create)(&raw mut handle), "create a solver handle")?;
        }
        let library = Self { gpu: Arc::clone(gpu), functions, handle, version };
        // SAFETY: the handle lives, and so does the stream, which its owner keeps beside the library.
        check(unsafe { (functions.set_stream)(handle, stream.handle()) }, "set_stream")?;
        Ok(library)
    }

    /// The library's version, such as `12.0.9`.
    pub(crate) fn version(&self) -> String {
        let version = self.version;
        format!("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100)
    }
}

impl Drop for Cusolver {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: nobody uses it any more.
            unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

/// The status that cuSOLVER leaves on the device: 0, or what LAPACK's `info` says.
pub(super) fn check_info(info: &Buffer, stream: &Stream, function: &'static str) -> Result<()> {
    let mut bytes = [0; 4];
    stream.read(info.address(), &mut bytes)?;
    match i32::from_le_bytes(bytes) {
        0 => Ok(()),
        at @ 1.. => Err(GpuError::Other(format!("the matrix is singular: pivot {at} is zero"))),
        code => {
            let text = format!("argument {} is wrong", -i64::from(code));
            Err(GpuError::Call { function, code, text })
        }
    }
}

/// Texts of status codes.
const STATUSES: &[(i32, &str)] = &[
    (1, "not initialised"),
    (2, "out of memory"),
    (3, "a value does not fit"),
    (4, "not for this architecture"),
    (6, "a kernel failed"),
    (7, "internal error"),
    (9, "not supported"),
    (14, "no such combination of precisions"),
    (21, "not supported by the refinement"),
    (22, "the matrix is out of the range of the factors' type"),
    (30, "the matrix is singular"),
    (31, "the workspace does not fit"),
];

/// Converts a status to a result.
pub(super) fn check(code: i32, function: &'static str) -> Result<()> {
    GpuError::of_status(code, function, STATUSES, "no further information from cuSOLVER")
}
