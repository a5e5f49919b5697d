//! Aligned buffers, and a pool of them that calls share.

// Buffers are raw allocations.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use thiserror::Error;

/// A cache line, and the size of the largest vector.
const ALIGNMENT: usize = 64;
/// The size of a huge page.
const HUGE_PAGE: usize = 2 << 20;
/// The size of memory that buffers share. What no buffer touches takes no memory.
const SHARED_BYTES: usize = 32 * HUGE_PAGE;
/// The least and the most bytes of such a buffer. The end of a larger one, smaller than a huge page, is a small part of it.
const SHARED_LEAST: usize = 16 << 10;
const SHARED_MOST: usize = SHARED_BYTES / 2;

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
    /// The memory that it is a part of, if it is not memory of its own.
    part_of: Option<Arc<AlignedBuffer>>,
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
        Ok(Self { data, layout, part_of: None })
    }

    /// Allocates `bytes` bytes that live long and are read again and again, such as weights: all but the largest share
    /// huge pages, which the CPU reads faster than others.
    ///
    /// # Errors
    ///
    /// When the allocation fails.
    pub fn lasting(bytes: usize) -> Result<Self, AllocationError> {
        static SHARED: Mutex<SharedPages> = Mutex::new(SharedPages { pages: Weak::new(), taken: 0 });
        match bytes {
            SHARED_LEAST..=SHARED_MOST => SHARED.lock().unwrap_or_else(PoisonError::into_inner).take(bytes),
            _ => Self::new(bytes),
        }
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
        if self.part_of.is_none() {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.data.as_ptr(), self.layout) };
        }
    }
}

/// Huge pages that buffers share. They are freed with the last of these.
struct SharedPages {
    pages: Weak<AlignedBuffer>,
    taken: usize,
}

impl SharedPages {
    fn take(&mut self, bytes: usize) -> Result<AlignedBuffer, AllocationError> {
        let fitting = self.pages.upgrade().filter(|pages| self.taken + bytes <= pages.len());
        let pages = match fitting {
            Some(pages) => pages,
            None => {
                let pages = Arc::new(AlignedBuffer::new(SHARED_BYTES)?);
                (self.pages, self.taken) = (Arc::downgrade(&pages), 0);
                pages
            }
        };
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| AllocationError { bytes })?;
        // SAFETY: the pages have so many bytes behind those that are taken.
        let data = unsafe { pages.data.add(self.taken) };
        self.taken = (self.taken + bytes).next_multiple_of(ALIGNMENT);
        Ok(AlignedBuffer { data, layout, part_of: Some(pages) })
    }
}

/// Buffers for reuse by later calls: page faults cost more than small GEMMs. Kernels that run one after the other share them, so that what one has
/// just used is still in cache for the next.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Mutex<Vec<AlignedBuffer>>,
}

impl BufferPool {
    /// The pool that all kernels share; its memory lives as long as one of them.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<BufferPool>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let pool = Arc::new(Self::default());
            *shared = Arc::downgrade(&pool);
            pool
        })
    }

    /// Takes a buffer of at least `bytes` bytes with arbitrary contents.
    pub(crate) fn take(&self, bytes: usize) -> Result<PooledBuffer<'_>, AllocationError> {
        let found = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let fitting = (0..free.len()).filter(|&at| free[at].len() >= bytes);
            match fitting.min_by_key(|&at| free[at].len()) {
                Some(at) => Some(free.swap_remove(at)),
                // The largest buffer, which is too small, is replaced, so that the pool does not grow without bound.
                None => {
                    if let Some(at) = (0..free.len()).max_by_key(|&at| free[at].len()) {
                        free.swap_remove(at);
                    }
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
#[derive(Debug)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_the_largest_is_replaced() {
        let pool = BufferPool::default();
        let address = |buffer: &PooledBuffer<'_>| buffer.as_ptr().addr();
        let (small, large) = (pool.take(1 << 10).unwrap(), pool.take(1 << 16).unwrap());
        let (first, second) = (address(&small), address(&large));
        drop((small, large));
        assert_eq!(address(&pool.take(1 << 12).unwrap()), second);
        assert_eq!(address(&pool.take(1 << 9).unwrap()), first);
        drop(pool.take(1 << 20).unwrap());
        let sizes: Vec<usize> = pool.free.lock().unwrap().iter().map(AlignedBuffer::len).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().any(|&len| len < 1 << 12) && sizes.iter().any(|&len| len >= 1 << 20));
    }

    #[test]
    fn small_lasting_buffers_share_pages_and_do_not_overlap() {
        let mut shared = SharedPages { pages: Weak::new(), taken: 0 };
        let buffers: Vec<AlignedBuffer> = [100_000, 1 << 20, 33, SHARED_BYTES - (1 << 20), 200_000]
            .map(|bytes| shared.take(bytes).unwrap())
            .into_iter()
            .collect();
        let mut spans: Vec<(usize, usize)> =
            buffers.iter().map(|buffer| (buffer.as_ptr().addr(), buffer.len())).collect();
        assert!(spans.iter().all(|(start, _)| start % ALIGNMENT == 0));
        // The first three fit together; the fourth does not fit behind them.
        assert!(spans[1].0 - spans[0].0 < SHARED_BYTES && spans[2].0 - spans[1].0 < SHARED_BYTES);
        let pages = shared.pages.clone();
        assert_eq!(pages.strong_count(), 2);
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{spans:?}");
        drop(buffers);
        assert_eq!(pages.strong_count(), 0);
    }
}
