//! Convolutions and attention by cuDNN, as graphs of its operations that one kernel computes.

// The library is foreign.
#![allow(unsafe_code)]

mod descriptor;
mod graph;
mod plan;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use descriptor::Descriptor;
pub(crate) use graph::{Network, Place, Pointwise, Value, Windows};
pub(crate) use plan::Plan;

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

/// cuDNN, ready for a device.
pub(crate) struct Networks {
    pub(crate) gpu: Arc<Gpu>,
    functions: Functions,
    /// One thread at a time may use it, several times over while it records.
    handle: ReentrantMutex<Handle>,
    /// The best plan of each graph measured so far, by what the graph is.
    plans: Mutex<HashMap<String, Arc<Descriptor>>>,
}

// SAFETY: the handle is behind a lock, and plans are not changed any more.
unsafe impl Send for Networks {}
// SAFETY: as above.
unsafe impl Sync for Networks {}

impl Networks {
    /// The library for a device.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
        let functions = FUNCTIONS.get_or_init(|| {
            // cuDNN asks the loader for libraries that may be known to nobody but us.
            for wanted in [&cuda::PRODUCTS, &cuda::COMPILER] {
                let _ = Library::open(wanted);
            }
            Functions::open(&cuda::NETWORKS)
        });
        Self::with(gpu, functions.clone()?)
    }

    /// Keeps other threads from the library. Being given another stream, it orders that after the one before, which must not
    /// be one that is being recorded.
    pub(crate) fn hold(&self) -> ReentrantMutexGuard<'_, Handle> {
        self.handle.lock()
    }

    /// The library by its functions.
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

/// Turns a status into a result.
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
