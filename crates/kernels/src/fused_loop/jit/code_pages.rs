//! Code pages, never writable and executable at once.

// Pages are mapped and code is called by address.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Pages that hold machine code and the constants that it reads.
#[derive(Debug)]
pub(super) struct CodePages {
    address: *mut c_void,
    length: usize,
}

// SAFETY: nothing else writes to the pages after they are made.
unsafe impl Send for CodePages {}
// SAFETY: the same.
unsafe impl Sync for CodePages {}

impl CodePages {
    /// Pages with these bytes.
    ///
    /// # Errors
    ///
    /// When the system cannot allocate memory or lets none be executed.
    pub(super) fn new(bytes: &[u8]) -> io::Result<Self> {
        let length = bytes.len().max(1);
        // SAFETY: the system chooses the address; nothing else knows it.
        let address = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let pages = Self { address, length };
        // SAFETY: the pages are as long as the bytes, and writable until the next line.
        unsafe {
            address.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            mprotect(address, length, MprotectFlags::READ | MprotectFlags::EXEC)?;
        }
        Ok(pages)
    }

    /// The address of a byte.
    pub(super) fn at(&self, offset: usize) -> *const u8 {
        self.address.cast::<u8>().wrapping_add(offset)
    }
}

impl Drop for CodePages {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own. If the system refuses, they stay.
        let _ = unsafe { munmap(self.address, self.length) };
    }
}
