//! Anonymous page mappings. Measurements need them beside the engine's aligned mapping: the size of the pages is a
//! parameter, and a page belongs to the thread that first touches it.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The size of a huge page on the architectures we know; elsewhere this is only an alignment.
const HUGE_PAGE: usize = 2 << 20;

/// Why memory could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The system refused.
    #[error("cannot get {bytes} bytes of memory: {reason}; ask for less or free some")]
    Refused {
        /// How much was asked for.
        bytes: usize,
        /// What the system said.
        reason: String,
    },
    /// Too little for what it is to hold.
    #[error("{bytes} bytes are too few: at least {least} are needed")]
    TooSmall {
        /// How much was asked for.
        bytes: usize,
        /// How much is needed.
        least: usize,
    },
}

/// The pages to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// What a program gets that says nothing: small pages, unless the system makes all memory huge pages.
    Default,
    /// Huge pages where the system has any.
    Huge,
}

impl Pages {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Default, Self::Huge];

    /// The name used in parameters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Huge => "huge",
        }
    }
}

/// Memory of its own, zeroed by the system when first touched, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    mapping: NonNull<c_void>,
    mapped_bytes: usize,
    /// The mapping's first huge page boundary, or its start where it is small.
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and addresses are valid in every thread.
unsafe impl Send for Mapping {}
// SAFETY: shared access reads only; whoever writes through the address sees to it that nobody reads meanwhile.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of this size. Nothing is touched yet, so each page will lie near the thread that first writes to it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(bytes: usize, pages: Pages) -> Result<Self, MemoryError> {
        let refused = |reason: String| MemoryError::Refused { bytes, reason };
        let slack = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        let mapped_bytes = bytes.checked_add(slack).ok_or_else(|| refused("too much".to_owned()))?;
        // SAFETY: a new private mapping at an address the system chooses touches no memory that is in use.
        let mapping = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let mapping = mapping.map_err(|error| refused(error.to_string()))?;
        let mapping = NonNull::new(mapping).ok_or_else(|| refused("no address".to_owned()))?;
        let ahead = if slack == 0 { 0 } else { mapping.cast::<u8>().align_offset(HUGE_PAGE) };
        debug_assert!(ahead <= slack);
        // SAFETY: `ahead` is at most `slack`, so the start is within the mapping.
        let start = unsafe { mapping.cast::<u8>().add(ahead) };
        let whole = Self { mapping, mapped_bytes, start, bytes };
        if pages == Pages::Huge {
            whole.ask_for_huge_pages();
        }
        Ok(whole)
    }

    /// Whether they are given is for the system to say, and for [`Self::huge_share`] to find out.
    fn ask_for_huge_pages(&self) {
        // SAFETY: the range is this mapping's own mapping, and the advice does not change what it holds.
        let _ = unsafe { madvise(self.mapping.as_ptr(), self.mapped_bytes, Advice::LinuxHugepage) };
    }

    /// Asks the system to move the pages to swap now. What they hold comes back when they are touched again.
    ///
    /// # Errors
    /// If the kernel does not know the request (Linux before 5.4).
    pub fn page_out(&self) -> std::io::Result<()> {
        // SAFETY: the range is this mapping's own mapping, and the advice does not change what it holds.
        Ok(unsafe { madvise(self.mapping.as_ptr(), self.mapped_bytes, Advice::LinuxPageOut) }?)
    }

    /// The first byte, aligned to a page, and to a huge page if there is room for one.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The size asked for.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Which part of the memory touched so far lies in huge pages, from 0 to 1; `None` if the system does not report it.
    #[must_use]
    pub fn huge_share(&self) -> Option<f64> {
        let maps = std::fs::read_to_string(Path::new("/proc/self/smaps")).ok()?;
        huge_share(&maps, self.start.as_ptr() as usize)
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range is inside the mapping, which is readable, zeroed by the system and lives as long as `self`.
        // Whoever writes through `start` sees to it that no such slice exists meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; it is writable, and the exclusive borrow makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and no reference into it outlives its owner. An error would mean
        // that it is not mapped, and leaves nothing to do.
        let _ = unsafe { munmap(self.mapping.as_ptr(), self.mapped_bytes) };
    }
}

/// [`Mapping::huge_share`] for the mapping around an address, from the text of `/proc/self/smaps`.
fn huge_share(maps: &str, address: usize) -> Option<f64> {
    let holds_address = |line: &str| {
        let range = line.split_ascii_whitespace().next()?;
        let (from, to) = range.split_once('-')?;
        let from = usize::from_str_radix(from, 16).ok()?;
        let to = usize::from_str_radix(to, 16).ok()?;
        Some((from..to).contains(&address))
    };
    let mut lines = maps.lines().skip_while(|line| holds_address(line) != Some(true)).skip(1);
    let (mut resident, mut huge) = (None, None);
    for line in lines.by_ref().take_while(|line| holds_address(line).is_none()) {
        let kibibytes = |name: &str| -> Option<f64> {
            line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok()
        };
        resident = resident.or_else(|| kibibytes("Rss:"));
        huge = huge.or_else(|| kibibytes("AnonHugePages:"));
    }
    match (resident?, huge?) {
        (resident, huge) if resident > 0.0 => Some((huge / resident).min(1.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_aligned_zeroed_and_writable_to_its_last_byte() {
        for bytes in [4096, 5000, HUGE_PAGE, 3 * HUGE_PAGE + 4096] {
            for pages in Pages::ALL {
                let mut mapping = Mapping::new(bytes, pages).unwrap();
                let alignment = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 4096 };
                assert_eq!(mapping.start().as_ptr() as usize % alignment, 0);
                assert!(mapping.len() == bytes && mapping.iter().all(|&byte| byte == 0));
                mapping[bytes - 1] = 1;
                assert_eq!(mapping.last(), Some(&1));
            }
        }
    }

    #[test]
    fn what_was_paged_out_comes_back() {
        let mut mapping = Mapping::new(4 * HUGE_PAGE, Pages::Default).unwrap();
        mapping.fill(7);
        mapping.page_out().unwrap();
        assert!(mapping.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn more_than_the_system_has_is_an_error() {
        assert!(Mapping::new(0, Pages::Default).is_err());
        assert!(matches!(Mapping::new(usize::MAX, Pages::Huge), Err(MemoryError::Refused { .. })));
        let error = Mapping::new(1 << 60, Pages::Default).unwrap_err().to_string();
        assert!(error.contains(&(1_u64 << 60).to_string()), "{error}");
    }

    #[test]
    fn the_share_is_that_of_the_mapping_asked_for() {
        let maps = "1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\nRss: 4 kB\nAnonHugePages: 0 kB\nVmFlags: rd wr\n\
                    400000-c00000 rw-p 00000000 00:00 0 \nRss:   4096 kB\nAnonHugePages:   2048 kB\n\
                    d00000-e00000 r--p 00000000 00:00 0 /lib/x\nRss: 0 kB\nAnonHugePages: 0 kB\n";
        assert_eq!(huge_share(maps, 0x1800), Some(0.0));
        assert_eq!(huge_share(maps, 0x40_0000), Some(0.5));
        assert_eq!(huge_share(maps, 0xd0_0000), None, "nothing is resident");
        assert_eq!(huge_share(maps, 0x2000), None, "no mapping there");
        assert_eq!(huge_share("nonsense\n", 0x2000), None);
    }
}
