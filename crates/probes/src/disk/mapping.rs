//! Memory mappings: page-aligned buffers, as direct I/O needs them, and a look at what the page cache holds.

// Mappings are raw memory: making, viewing and unmapping one is unsafe.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping that is removed when dropped.
#[derive(Debug)]
struct Mapping {
    start: *mut c_void,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by us with this start and length, and nobody borrows from it any more.
        // It cannot fail for such a range, and if it did, nothing but memory would be lost.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// Zeroed memory that begins at a page, for one block of a file.
#[derive(Debug)]
pub(super) struct Buffer {
    mapping: Mapping,
}

// SAFETY: the memory is private to this value, which owns it alone; no thread has a special claim on it.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A buffer of this size, which is not 0.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: a new private mapping at an address that the system chooses overlaps nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        Ok(Self { mapping: Mapping { start, bytes } })
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable for its whole length, initialised by the system with zeros, and lives as
        // long as the borrow of `self`.
        unsafe { std::slice::from_raw_parts(self.mapping.start.cast(), self.mapping.bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; it is writable, and the exclusive borrow of `self` makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.cast(), self.mapping.bytes) }
    }
}

/// How many pages of the file's first `bytes` the page cache holds. Looking does not load any.
pub(super) fn cached_pages(file: &File, bytes: usize) -> io::Result<usize> {
    // SAFETY: a new mapping at an address that the system chooses overlaps nothing; it is never read through.
    let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
    let mapping = Mapping { start, bytes };
    let mut residency = vec![0_u8; bytes.div_ceil(rustix::param::page_size())];
    // SAFETY: the range is the mapping above, which is still there, and the vector has a byte for each of its pages.
    let status = unsafe { libc::mincore(mapping.start, mapping.bytes, residency.as_mut_ptr()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(residency.iter().filter(|&&page| page & 1 == 1).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn buffers_begin_at_a_page_and_are_zeroed_and_writable() {
        let mut buffer = Buffer::new(5000).unwrap();
        assert_eq!(buffer.as_ptr() as usize % rustix::param::page_size(), 0);
        assert!(buffer.len() == 5000 && buffer.iter().all(|&byte| byte == 0));
        buffer[4999] = 9;
        assert_eq!(buffer.last(), Some(&9));
        assert!(Buffer::new(0).is_err());
    }

    #[test]
    fn what_was_written_through_the_cache_is_seen_in_it() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = 3 * rustix::param::page_size();
        file.set_len(bytes as u64).unwrap();
        assert_eq!(cached_pages(&file, bytes).unwrap(), 0);
        file.write_all(&vec![1; bytes]).unwrap();
        assert_eq!(cached_pages(&file, bytes).unwrap(), 3);
    }
}
