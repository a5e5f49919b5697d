//! Compiled kernels on the device.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use super::functions::Handle;
use super::gpu::Gpu;
use crate::error::{GpuError, Result};

/// The function attribute of the maximum dynamic shared memory, equal for both vendors.
const MAX_DYNAMIC_SHARED: i32 = 8;

/// Dynamic shared memory that needs no attribute.
const DEFAULT_SHARED: u32 = 48 << 10;

/// A loaded module.
pub(crate) struct Module {
    gpu: Arc<Gpu>,
    handle: Handle,
}

// SAFETY: modules may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel.
#[derive(Clone)]
pub(crate) struct Function {
    handle: Handle,
    /// Keeps the module alive.
    _module: Arc<Module>,
}

// SAFETY: functions may be launched from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// The driver handle.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}

impl Module {
    /// Loads machine code.
    pub(crate) fn load(gpu: &Arc<Gpu>, code: &[u8]) -> Result<Arc<Self>> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the code is what the compiler gave; the driver knows its length from its header.
        let status =
            unsafe { (gpu.driver.functions.module_load)(&raw mut handle, code.as_ptr().cast::<c_void>()) };
        gpu.check(status, "module_load")?;
        Ok(Arc::new(Self { gpu: Arc::clone(gpu), handle }))
    }

    /// A kernel by name, with this much dynamic shared memory enabled.
    pub(crate) fn function(self: &Arc<Self>, name: &str, shared_bytes: u32) -> Result<Function> {
        let text =
            CString::new(name).map_err(|_| GpuError::Other(format!("`{name}` is no name of a kernel")))?;
        let mut handle = std::ptr::null_mut();
        let functions = &self.gpu.driver.functions;
        // SAFETY: the module lives, the name is a text, and the address is that of a variable.
        let status = unsafe { (functions.module_function)(&raw mut handle, self.handle, text.as_ptr()) };
        self.gpu.check(status, "module_function")?;
        if shared_bytes > DEFAULT_SHARED {
            let most = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
            // SAFETY: the function is the one just found.
            let status = unsafe { (functions.function_attribute)(handle, MAX_DYNAMIC_SHARED, most) };
            self.gpu.check(status, "function_attribute")?;
        }
        Ok(Function { handle, _module: Arc::clone(self) })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: nobody uses its functions any more.
            unsafe { (self.gpu.driver.functions.module_unload)(self.handle) };
        }
    }
}
