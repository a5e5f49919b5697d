//! Aligned buffers, and a pool of them that calls share.

// Buffers are raw allocations.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// A cache line, and the size of the largest vector.
const ALIGNMENT: usize = 64;
/// The size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// The allocation of a buffer failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot allocate {bytes} bytes: use smaller sizes or free memory")]
pub struct AllocationError {
    /// The requested size.
    pub bytes: usize,
}

/// An uninitialized buffer aligned to a cache line, or to a huge page if it is as large as one.
#[derive(Debug)]
pub struct AlignedBuffer {
    data: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory; writers through the pointer synchronize themselves.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Allocates `bytes` bytes.
    ///
    /// # Errors
    ///
    /// When the allocation fails.
    pub fn new(bytes: usize) -> Result<Self, AllocationError> {
        let alignment = if bytes >= HUGE_PAGE { HUGE_PAGE } else { ALIGNMENT };
        let layout = Layout::from_size_align(bytes.max(ALIGNMENT), alignment)
            .map_err(|_| AllocationError { bytes })?;
        // SAFETY: the size is not 0.
        let data = NonNull::new(unsafe { alloc(layout) }).ok_or(AllocationError { bytes })?;
        #[cfg(target_os = "linux")]
        if bytes >= HUGE_PAGE {
            use rustix::mm::{Advice, madvise};
            let whole = bytes / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: the range is that of the allocation, and the advice changes no contents. A refusal costs only
            // speed.
            let _ = unsafe { madvise(data.as_ptr().cast(), whole, Advice::LinuxHugepage) };
        }
        Ok(Self { data, layout })
    }

    /// The first byte.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// The size in bytes: that of the allocation, at least a cache line.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there is always a line of cache")]
    pub fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.data.as_ptr(), self.layout) };
    }
}

/// Buffers for reuse by later calls: page faults cost more than small GEMMs.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Mutex<Vec<AlignedBuffer>>,
}

impl BufferPool {
    /// Takes a buffer of at least `bytes` bytes with arbitrary contents.
    pub(crate) fn take(&self, bytes: usize) -> Result<PooledBuffer<'_>, AllocationError> {
        let found = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let fitting = (0..free.len()).filter(|&at| free[at].len() >= bytes);
            match fitting.min_by_key(|&at| free[at].len()) {
                Some(at) => Some(free.swap_remove(at)),
                // A buffer that is too small is replaced, so that the pool does not grow without bound.
                None => {
                    free.pop();
                    None
                }
            }
        };
        let buffer = match found {
            Some(buffer) => buffer,
            None => AlignedBuffer::new(bytes)?,
        };
        Ok(PooledBuffer { pool: self, buffer: Some(buffer) })
    }
}

/// A buffer that returns to its pool when dropped.
pub(crate) struct PooledBuffer<'a> {
    pool: &'a BufferPool,
    buffer: Option<AlignedBuffer>,
}

impl Deref for PooledBuffer<'_> {
    type Target = AlignedBuffer;

    fn deref(&self) -> &AlignedBuffer {
        self.buffer.as_ref().unwrap_or_else(|| unreachable!("only drop takes the buffer"))
    }
}

impl Drop for PooledBuffer<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}
