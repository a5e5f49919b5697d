//! What the page cache holds of a file.

// The system answers for a mapping of the file; making and unmapping one is unsafe.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping of a file, unmapped when dropped.
#[derive(Debug)]
struct FileMapping {
    start: *mut c_void,
    bytes: usize,
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by us with this start and length, and nobody borrows from it any more.
        // It cannot fail for such a range, and if it did, nothing but memory would be lost.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// How many pages of the file's first `bytes` the page cache holds. Looking does not load any.
pub(super) fn cached_pages(file: &File, bytes: usize) -> io::Result<usize> {
    // SAFETY: a new mapping at an address that the system chooses overlaps nothing; it is never read through.
    let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
    let mapping = FileMapping { start, bytes };
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
    fn what_was_written_through_the_cache_is_seen_in_it() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = 3 * rustix::param::page_size();
        file.set_len(bytes as u64).unwrap();
        assert_eq!(cached_pages(&file, bytes).unwrap(), 0);
        file.write_all(&vec![1; bytes]).unwrap();
        assert_eq!(cached_pages(&file, bytes).unwrap(), 3);
    }
}
