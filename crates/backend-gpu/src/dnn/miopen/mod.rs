//! Convolutions by MIOpen: solutions are measured; bias and ReLU use fusion plans.

// Calls a foreign library.
#![allow(unsafe_code)]

mod descriptor;
mod fusion;
mod plan;
mod problem;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use plan::MiopenPlan;
pub(crate) use problem::{ConvBuffers, ConvProblem, TensorLayout};

use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::hip;
use crate::library::functions;

functions! {
    /// MIOpen.
    Functions {
        create(*mut Handle) = "miopenCreate";
        set_stream(Handle, Handle) = "miopenSetStream";
        tensor_create(*mut Handle) = "miopenCreateTensorDescriptor";
        tensor_set(Handle, i32, i32, *const i32, *const i32) = "miopenSetTensorDescriptor";
        tensor_destroy(Handle) = "miopenDestroyTensorDescriptor";
        convolution_create(*mut Handle) = "miopenCreateConvolutionDescriptor";
        convolution_set(Handle, i32, *const i32, *const i32, *const i32, i32) = "miopenInitConvolutionNdDescriptor";
        convolution_groups(Handle, i32) = "miopenSetConvolutionGroupCount";
        convolution_destroy(Handle) = "miopenDestroyConvolutionDescriptor";
        solution_count(Handle, Handle, Handle, Handle, Handle, *mut usize)
            = "miopenConvolutionForwardGetSolutionCount";
        solutions(Handle, Handle, Handle, Handle, Handle, usize, *mut usize, *mut Solution)
            = "miopenConvolutionForwardGetSolution";
        solution_compile(Handle, Handle, Handle, Handle, Handle, u64) = "miopenConvolutionForwardCompileSolution";
        run(Handle, Handle, Address, Handle, Address, Handle, Handle, Address, Address, usize, u64)
            = "miopenConvolutionForwardImmediate";
        fusion_create(*mut Handle, i32, Handle) = "miopenCreateFusionPlan";
        fusion_destroy(Handle) = "miopenDestroyFusionPlan";
        fusion_compile(Handle, Handle) = "miopenCompileFusionPlan";
        fuse_convolution(Handle, *mut Handle, Handle, Handle) = "miopenCreateOpConvForward";
        fuse_bias(Handle, *mut Handle, Handle) = "miopenCreateOpBiasForward";
        fuse_activation(Handle, *mut Handle, i32) = "miopenCreateOpActivationForward";
        arguments_create(*mut Handle) = "miopenCreateOperatorArgs";
        arguments_destroy(Handle) = "miopenDestroyOperatorArgs";
        arguments_convolution(Handle, Handle, *const c_void, *const c_void, Address) = "miopenSetOpArgsConvForward";
        arguments_bias(Handle, Handle, *const c_void, *const c_void, Address) = "miopenSetOpArgsBiasForward";
        arguments_activation(Handle, Handle, *const c_void, *const c_void, f64, f64, f64)
            = "miopenSetOpArgsActivForward";
        fusion_run(Handle, Handle, Handle, Address, Handle, Address, Handle) = "miopenExecuteFusionPlan";
    }
}

/// A solution of a convolution.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Solution {
    /// Estimated milliseconds.
    pub(crate) time: f32,
    pub(crate) workspace: usize,
    pub(crate) number: u64,
    pub(crate) algorithm: i32,
}

/// MIOpen on a device.
pub(crate) struct Miopen {
    gpu: Arc<Gpu>,
    functions: Functions,
    /// Not thread-safe.
    handle: Mutex<Handle>,
    /// The fastest solution of each problem measured so far, with its workspace.
    known: Mutex<HashMap<String, (u64, usize)>>,
}

// SAFETY: the handle is behind a lock.
unsafe impl Send for Miopen {}
// SAFETY: as above.
unsafe impl Sync for Miopen {}

impl Miopen {
    /// Opens the library for a device.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
        let functions = FUNCTIONS.get_or_init(|| Functions::open(&hip::DNN));
        Self::with(gpu, functions.clone()?)
    }

    /// Wraps loaded functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.create)(&raw mut handle) }, "create a handle of MIOpen")?;
        Ok(Self { gpu: Arc::clone(gpu), functions, handle: Mutex::new(handle), known: Mutex::default() })
    }

    /// Locks the handle and sets its stream.
    fn on(&self, stream: &Stream) -> Result<MutexGuard<'_, Handle>> {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: handle and stream live.
        check(unsafe { (self.functions.set_stream)(*handle, stream.handle()) }, "give MIOpen a stream")?;
        Ok(handle)
    }
}

/// Texts of status codes.
const STATUSES: &[(i32, &str)] = &[
    (1, "not initialised"),
    (2, "a value does not fit"),
    (3, "a parameter is wrong"),
    (4, "out of memory"),
    (5, "internal error"),
    (6, "not implemented"),
    (8, "not to be fused"),
];

/// Converts a status to a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    GpuError::of_status(code, function, STATUSES, "MIOpen gives no further information")
}
