//! The cuDNN library and its backend descriptors.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::cuda;
use crate::disk_cache::DiskCache;
use crate::driver::{Gpu, Handle};
use crate::error::{GpuError, Result};
use crate::library::{Library, functions};
use crate::tuning::choices;

functions! {
    /// cuDNN.
    Functions {
        /// Not a status, but the version.
        version() = "cudnnGetVersion";
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
    pub(super) functions: Functions,
    /// Not thread-safe; reentrant during capture.
    handle: ReentrantMutex<Handle>,
    /// The fastest plan of each graph measured so far.
    plans: Mutex<HashMap<String, Arc<Descriptor>>>,
    /// Where choices of earlier processes are.
    pub(super) choices: Option<DiskCache>,
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
        Ok(Self { choices: Some(choices()), ..Self::with(gpu, functions.clone()?)? })
    }

    /// Locks the library. Changing its stream adds a dependency on the previous one, which must not be under capture.
    pub(crate) fn hold(&self) -> ReentrantMutexGuard<'_, Handle> {
        self.handle.lock()
    }

    /// The plan of a graph that this process has.
    pub(super) fn known(&self, graph: &str) -> Option<Arc<Descriptor>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(graph).cloned()
    }

    /// Keeps the plan of a graph while the process runs.
    pub(super) fn remember(&self, graph: String, plan: &Arc<Descriptor>) {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).insert(graph, Arc::clone(plan));
    }

    /// What tells versions apart whose heuristics may differ.
    pub(super) fn version(&self) -> String {
        // SAFETY: the function has no arguments.
        format!("cuDNN {}", unsafe { (self.functions.version)() })
    }

    /// Wraps loaded functions, without choices of earlier processes.
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
            choices: None,
        })
    }
}

/// Converts a status to a result.
pub(super) fn check(code: i32, function: &'static str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = match code {
        1001..=1999 => "not initialised",
        2000..=2999 => "a value does not fit",
        3000..=3999 => "not supported",
        4000..=4999 => "internal error",
        5000..=5999 => "it failed on the device",
        _ => "cuDNN gives no further information",
    };
    Err(GpuError::Call { function, code, text: text.to_owned() })
}

/// Descriptor types.
pub(super) mod kind {
    pub(crate) const POINTWISE: i32 = 0;
    pub(crate) const CONVOLUTION: i32 = 1;
    pub(crate) const ENGINE: i32 = 2;
    pub(crate) const CONFIGURATION: i32 = 3;
    pub(crate) const HEURISTICS: i32 = 4;
    pub(crate) const PLAN: i32 = 5;
    pub(crate) const RUN_CONVOLUTION: i32 = 10;
    pub(crate) const RUN_WEIGHT_GRADIENT: i32 = 11;
    pub(crate) const RUN_DATA_GRADIENT: i32 = 12;
    pub(crate) const RUN_POINTWISE: i32 = 13;
    pub(crate) const GRAPH: i32 = 15;
    pub(crate) const VARIANT_PACK: i32 = 16;
    pub(crate) const TENSOR: i32 = 17;
    pub(crate) const MATMUL: i32 = 18;
    pub(crate) const RUN_MATMUL: i32 = 19;
    pub(crate) const REDUCTION: i32 = 21;
    pub(crate) const RUN_REDUCTION: i32 = 22;
    /// Since cuDNN 9.13.
    pub(crate) const RUN_ATTENTION: i32 = 41;
}

/// Attribute types.
const HANDLE: i32 = 0;
const DATA_TYPE: i32 = 1;
const BOOLEAN: i32 = 2;
const INT64: i32 = 3;
const FLOAT: i32 = 4;
const POINTER: i32 = 6;
const DESCRIPTOR: i32 = 15;

/// A descriptor of cuDNN.
pub(super) struct Descriptor {
    library: Arc<Cudnn>,
    handle: Handle,
}

// SAFETY: descriptors may be used from any thread, one at a time.
unsafe impl Send for Descriptor {}
// SAFETY: final descriptors are not changed any more.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    pub(super) fn new(library: &Arc<Cudnn>, kind: i32) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        let code = unsafe { (library.functions.descriptor_create)(kind, &raw mut handle) };
        check(code, "create a descriptor")?;
        Ok(Self { library: Arc::clone(library), handle })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Sets an attribute to values of a type.
    fn set<T>(&self, attribute: i32, ty: i32, values: &[T]) -> Result<()> {
        let (count, data) = (values.len() as i64, values.as_ptr().cast::<c_void>());
        // SAFETY: there are so many values, of the type that the number says.
        let code = unsafe { (self.library.functions.set)(self.handle, attribute, ty, count, data) };
        check(code, "set an attribute of a descriptor")
    }

    pub(super) fn int64s(&self, attribute: i32, values: &[i64]) -> Result<()> {
        self.set(attribute, INT64, values)
    }

    pub(super) fn float(&self, attribute: i32, value: f32) -> Result<()> {
        self.set(attribute, FLOAT, &[value])
    }

    pub(super) fn flag(&self, attribute: i32, value: bool) -> Result<()> {
        self.set(attribute, BOOLEAN, &[value])
    }

    pub(super) fn data_type(&self, attribute: i32, value: i32) -> Result<()> {
        self.set(attribute, DATA_TYPE, &[value])
    }

    /// A value of an enumeration type.
    pub(super) fn choice(&self, attribute: i32, ty: i32, value: i32) -> Result<()> {
        self.set(attribute, ty, &[value])
    }

    pub(super) fn library_handle(&self, attribute: i32, value: Handle) -> Result<()> {
        self.set(attribute, HANDLE, &[value])
    }

    pub(super) fn pointers(&self, attribute: i32, values: &[u64]) -> Result<()> {
        self.set(attribute, POINTER, values)
    }

    pub(super) fn descriptors(&self, attribute: i32, values: &[Handle]) -> Result<()> {
        self.set(attribute, DESCRIPTOR, values)
    }

    /// Finalises the descriptor; its attributes cannot be set any more.
    pub(super) fn finalise(self) -> Result<Self> {
        // SAFETY: the descriptor lives.
        check(unsafe { (self.library.functions.finalise)(self.handle) }, "make a descriptor final")?;
        Ok(self)
    }

    fn get(&self, attribute: i32, ty: i32, most: usize, to: *mut c_void) -> Result<usize> {
        let mut count = 0;
        // SAFETY: there is room for so many values of that type.
        let code = unsafe {
            (self.library.functions.get)(self.handle, attribute, ty, most as i64, &raw mut count, to)
        };
        check(code, "read an attribute of a descriptor")?;
        Ok(usize::try_from(count).unwrap_or(0).min(most))
    }

    pub(super) fn int64(&self, attribute: i32) -> Result<i64> {
        let mut value = 0i64;
        self.get(attribute, INT64, 1, (&raw mut value).cast())?;
        Ok(value)
    }

    /// Enumeration values, at most `most`.
    pub(super) fn choices(&self, attribute: i32, ty: i32, most: usize) -> Result<Vec<i32>> {
        let mut values = vec![0i32; most];
        let count = self.get(attribute, ty, most, values.as_mut_ptr().cast())?;
        values.truncate(count);
        Ok(values)
    }

    /// Descriptors that this one contains, at most `most`.
    pub(super) fn inner(&self, attribute: i32, kind: i32, most: usize) -> Result<Vec<Self>> {
        let made: Vec<Self> = (0..most).map(|_| Self::new(&self.library, kind)).collect::<Result<_>>()?;
        let mut handles: Vec<Handle> = made.iter().map(Self::handle).collect();
        let count = self.get(attribute, DESCRIPTOR, most, handles.as_mut_ptr().cast())?;
        Ok(made.into_iter().take(count).collect())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.library.functions.descriptor_destroy)(self.handle) };
    }
}
