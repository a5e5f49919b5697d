//! Pooled device memory and pinned host memory.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use warpforge_tensor::Tensor;

use super::{Address, Gpu, Handle};
use crate::error::{GpuError, Result};

/// Rounding unit of small allocations.
const SMALL: usize = 512;

/// Threshold and rounding unit of large allocations.
const LARGE: usize = 2 << 20;

/// Out-of-memory status, equal for both vendors.
const OUT_OF_MEMORY: i32 = 2;

/// Freed allocations, by size.
#[derive(Debug, Default)]
pub(super) struct Pool {
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
