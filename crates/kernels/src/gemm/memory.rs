//! Aligned memory that kernels pack into, and a store of it that calls share.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// Two of the largest vectors and one line of cache begin at such an address.
const ALIGNMENT: usize = 64;
/// What the system can back with one large page.
const LARGE_PAGE: usize = 2 << 20;

/// The system gives no memory for packed operands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no memory for {bytes} bytes of packed operands: use smaller sizes or free memory")]
pub struct MemoryError {
    /// How much was asked for.
    pub bytes: usize,
}

/// Bytes that begin at a line of cache; in large pages where there are enough of them. Their values are arbitrary at
/// first.
#[derive(Debug)]
pub struct Memory {
    data: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to the value; who writes through the pointer sees to it that nobody else does.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// So many bytes.
    ///
    /// # Errors
    ///
    /// When the system gives none.
    pub fn new(bytes: usize) -> Result<Self, MemoryError> {
        let alignment = if bytes >= LARGE_PAGE { LARGE_PAGE } else { ALIGNMENT };
        let layout =
            Layout::from_size_align(bytes.max(ALIGNMENT), alignment).map_err(|_| MemoryError { bytes })?;
        // SAFETY: the size is not 0.
        let data = NonNull::new(unsafe { alloc(layout) }).ok_or(MemoryError { bytes })?;
        #[cfg(target_os = "linux")]
        if bytes >= LARGE_PAGE {
            use rustix::mm::{Advice, madvise};
            let whole = bytes / LARGE_PAGE * LARGE_PAGE;
            // SAFETY: the range is that of the allocation, and the advice changes no contents. A refusal costs speed only.
            let _ = unsafe { madvise(data.as_ptr().cast(), whole, Advice::LinuxHugepage) };
        }
        Ok(Self { data, layout })
    }

    /// Where they begin.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// How many there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there is always a line of cache")]
    pub fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.data.as_ptr(), self.layout) };
    }
}

/// Memory that lies ready for the next call, since fresh pages cost more than small products.
#[derive(Debug, Default)]
pub(crate) struct Store {
    free: Mutex<Vec<Memory>>,
}

impl Store {
    /// At least so many bytes, of arbitrary values.
    pub(crate) fn take(&self, bytes: usize) -> Result<Lent<'_>, MemoryError> {
        let found = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let fitting = (0..free.len()).filter(|&at| free[at].len() >= bytes);
            match fitting.min_by_key(|&at| free[at].len()) {
                Some(at) => Some(free.swap_remove(at)),
                // One that is too small makes room for one that is not, so that the store does not grow for ever.
                None => {
                    free.pop();
                    None
                }
            }
        };
        let memory = match found {
            Some(memory) => memory,
            None => Memory::new(bytes)?,
        };
        Ok(Lent { store: self, memory: Some(memory) })
    }
}

/// Memory of a store, given back when dropped.
pub(crate) struct Lent<'a> {
    store: &'a Store,
    memory: Option<Memory>,
}

impl Deref for Lent<'_> {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        self.memory.as_ref().unwrap_or_else(|| unreachable!("only drop takes the memory"))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.store.free.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        }
    }
}
