//! Convolutions and attention by cuDNN operation graphs.

// Calls a foreign library.
#![allow(unsafe_code)]

mod descriptor;
mod graph;
mod plan;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use descriptor::Descriptor;
pub(crate) use graph::{ConvWindow, CudnnGraph, Pointwise, Storage, TensorId};
pub(crate) use plan::CudnnPlan;

use crate::cuda;
use crate::driver::{Gpu, Handle};
use crate::error::{GpuError, Result};
use crate::library::{Library, functions};

functions! {
    /// cuDNN.
    Functions {
        create(*mut Handle) = "cudnnCreate";
        set_stream(Handle, Handle) = "cudnnSetStream";
        descriptor_create(i32, *mut Handle) = "cudnnBackendCreateDescriptor";
        descriptor_destroy(Handle) = "cudnnBackendDestroyDescriptor";
        finalise(Handle) = "cudnnBackendFinalize";
        set(Handle, i32, i32, i64, *const c_void) = "cudnnBackendSetAttribute";
        get(Handle, i32, i32, i64, *mut i64, *mut c_void) = "cudnnBackendGetAttribute";
        execute(Handle, Handle, Handle) = "cudnnBackendExecute";
    }
}

/// cuDNN on a device.
pub(crate) struct Cudnn {
    pub(crate) gpu: Arc<Gpu>,
    functions: Functions,
    /// Not thread-safe; reentrant during capture.
    handle: ReentrantMutex<Handle>,
    /// The fastest plan of each graph measured so far.
    plans: Mutex<HashMap<String, Arc<Descriptor>>>,
}

// SAFETY: the handle is behind a lock, and plans are not changed any more.
unsafe impl Send for Cudnn {}
// SAFETY: as above.
unsafe impl Sync for Cudnn {}

impl Cudnn {
    /// Opens the library for a device.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
        let functions = FUNCTIONS.get_or_init(|| {
            // cuDNN loads libraries by name that only our search path finds.
            for wanted in [&cuda::BLAS_LT, &cuda::COMPILER] {
                let _ = Library::open(wanted);
            }
            Functions::open(&cuda::DNN)
        });
        Self::with(gpu, functions.clone()?)
    }

    /// Locks the library. Changing its stream adds a dependency on the previous one, which must not be under capture.
    pub(crate) fn hold(&self) -> ReentrantMutexGuard<'_, Handle> {
        self.handle.lock()
    }

    /// Wraps loaded functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.create)(&raw mut handle) }, "create a handle of cuDNN")?;
        Ok(Self {
            gpu: Arc::clone(gpu),
            functions,
            handle: ReentrantMutex::new(handle),
            plans: Mutex::default(),
        })
    }
}

/// Converts a status to a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = match code {
        1001..=1999 => "not initialised",
        2000..=2999 => "a value does not fit",
        3000..=3999 => "not supported",
        4000..=4999 => "internal error",
        5000..=5999 => "it failed on the device",
        _ => "cuDNN says no more",
    };
    Err(GpuError::Call { function, code, text: text.to_owned() })
}
