//! Devices and their memory: pooled device memory and pinned host memory.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use warpforge_tensor::Tensor;

use super::api::Driver;
use super::compiler::Compiler;
use super::functions::{Address, Handle};
use super::properties::{CUDA_ATTRIBUTES, HIP_ATTRIBUTES, Properties, guid};
use crate::error::{GpuError, Result};
use crate::vendor::Vendor;

/// A device with its context and memory pool.
pub(crate) struct Gpu {
    pub(crate) driver: Driver,
    pub(crate) properties: Properties,
    context: Handle,
    pool: Mutex<Pool>,
    pub(super) constants: Mutex<Constants>,
    compiler: OnceLock<Result<Arc<Compiler>>>,
}

// SAFETY: the driver may be called from any thread; the context is made current before each use.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// When there is no such device, or the driver fails.
    pub(crate) fn open(driver: &Driver, number: u32) -> Result<Arc<Self>> {
        let no_such = GpuError::NoSuchDevice { number, count: driver.count };
        let index = i32::try_from(number).map_err(|_| no_such.clone())?;
        if number >= driver.count {
            return Err(no_such);
        }
        let functions = &driver.functions;
        let mut device = 0;
        let mut context = std::ptr::null_mut();
        let mut name = [0 as c_char; 256];
        // SAFETY: the addresses are those of variables of these sizes.
        let name = unsafe {
            driver.check((functions.device_get)(&raw mut device, index), "device_get")?;
            driver.check((functions.device_name)(name.as_mut_ptr(), 255, device), "device_name")?;
            driver.check((functions.context_retain)(&raw mut context, device), "context_retain")?;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        let numbers = if driver.vendor == Vendor::Cuda { CUDA_ATTRIBUTES } else { HIP_ATTRIBUTES };
        let attribute = |number: i32| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the address is that of a variable.
            let code = unsafe { (functions.device_attribute)(&raw mut value, number, device) };
            driver.check(code, "device_attribute")?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let mut uuid = [0; 16];
        // SAFETY: the address is that of a variable.
        let told = unsafe { (functions.device_uuid)(&raw mut uuid, device) } == 0;
        let properties = Properties {
            name,
            guid: told.then(|| guid(driver.vendor, uuid)),
            capability: (attribute(numbers.major)?, attribute(numbers.minor)?),
            multiprocessors: attribute(numbers.multiprocessors)?,
            shared_bytes: attribute(numbers.shared_bytes)?,
        };
        let (pool, constants) = (Mutex::default(), Mutex::default());
        let compiler = OnceLock::new();
        Ok(Arc::new(Self { driver: driver.clone(), properties, context, pool, constants, compiler }))
    }

    /// Makes the context current on this thread.
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as the process.
        self.check(unsafe { (self.driver.functions.context_set)(self.context) }, "context_set")
    }

    /// Converts a status to a result.
    pub(crate) fn check(&self, code: i32, function: &'static str) -> Result<()> {
        self.driver.check(code, function)
    }

    /// The run-time compiler.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn compiler(&self) -> Result<Arc<Compiler>> {
        self.compiler.get_or_init(|| Compiler::of(self.driver.vendor)).clone()
    }

    /// Replaces the compiler.
    #[cfg(test)]
    pub(crate) fn use_compiler(&self, compiler: Compiler) {
        let _ = self.compiler.set(Ok(Arc::new(compiler)));
    }

    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the addresses are those of variables.
        let code = unsafe { (self.driver.functions.memory_info)(&raw mut free, &raw mut total) };
        self.check(code, "memory_info")?;
        Ok((free, total))
    }
}

/// Host address and size of a tensor's bytes. A buffer keeps its tensor alive, so the address stays unique.
pub(super) type ConstantKey = (usize, usize);

/// Constants in use.
pub(super) type Constants = HashMap<ConstantKey, Weak<Buffer>>;

/// Rounding unit of small allocations.
const SMALL: usize = 512;

/// Threshold and rounding unit of large allocations.
const LARGE: usize = 2 << 20;

/// Out-of-memory status, equal for both vendors.
const OUT_OF_MEMORY: i32 = 2;

/// Freed allocations, by size.
#[derive(Debug, Default)]
struct Pool {
    spare: HashMap<usize, Vec<Address>>,
    /// Freed pinned allocations, by size.
    pinned: HashMap<usize, Vec<usize>>,
}

impl Gpu {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates uninitialised memory.
    ///
    /// # Errors
    ///
    /// When out of memory.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<Buffer> {
        let unit = if bytes >= LARGE { LARGE } else { SMALL };
        let size = bytes.max(1).checked_next_multiple_of(unit);
        let size = size.ok_or_else(|| GpuError::Other(format!("{bytes} bytes are too many")))?;
        self.enter()?;
        let spare = self.pool().spare.get_mut(&size).and_then(Vec::pop);
        let address = match spare {
            Some(address) => address,
            None => match self.fresh(size)? {
                Some(address) => address,
                None => {
                    self.release_spare()?;
                    match self.fresh(size)? {
                        Some(address) => address,
                        None => {
                            let (free, total) = self.memory()?;
                            return Err(GpuError::OutOfMemory { needed: size, free, total });
                        }
                    }
                }
            },
        };
        Ok(Buffer { gpu: Arc::clone(self), address, size, _held: None })
    }

    fn fresh(&self, size: usize) -> Result<Option<Address>> {
        let mut address = 0;
        // SAFETY: the address is that of a variable.
        let code = unsafe { (self.driver.functions.allocate)(&raw mut address, size) };
        if code == OUT_OF_MEMORY {
            return Ok(None);
        }
        self.check(code, "allocate").map(|()| Some(address))
    }

    fn release_spare(&self) -> Result<()> {
        let spare = std::mem::take(&mut self.pool().spare);
        for address in spare.into_values().flatten() {
            // SAFETY: nobody holds it any more.
            self.check(unsafe { (self.driver.functions.free)(address) }, "free")?;
        }
        Ok(())
    }
}

/// Device memory; returned to the pool when dropped.
pub(crate) struct Buffer {
    gpu: Arc<Gpu>,
    address: Address,
    size: usize,
    /// The tensor that it holds, kept alive.
    _held: Option<Tensor>,
}

impl Buffer {
    /// Keeps a tensor alive with the buffer.
    pub(super) fn holding(mut self, tensor: &Tensor) -> Self {
        self._held = Some(tensor.clone());
        self
    }

    /// The address.
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.size
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.gpu.pool().spare.entry(self.size).or_default().push(self.address);
    }
}

/// Pinned host memory; returned to the pool when dropped.
pub(crate) struct Pinned {
    gpu: Arc<Gpu>,
    data: usize,
    bytes: usize,
}

impl Pinned {
    /// Allocates pinned memory.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        let spare = gpu.pool().pinned.get_mut(&bytes).and_then(Vec::pop);
        let data = match spare {
            Some(data) => data,
            None => {
                let mut data: Handle = std::ptr::null_mut();
                gpu.enter()?;
                // SAFETY: the address is that of a variable.
                let code = unsafe { (gpu.driver.functions.allocate_host)(&raw mut data, bytes.max(1)) };
                gpu.check(code, "allocate_host")?;
                data as usize
            }
        };
        Ok(Self { gpu: Arc::clone(gpu), data, bytes })
    }

    /// The bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory has so many bytes, and the borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.data as *mut u8, self.bytes) }
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory has so many bytes, and nobody writes there while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.data as *const u8, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.gpu.pool().pinned.entry(self.bytes).or_default().push(self.data);
    }
}
