//! A test file: without a name, on a disk with room for it, reached past the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::drive::{BLOCK_ALIGNMENT, Once, drive};
use super::page_cache::cached_pages;
use super::{DiskError, queue};
use crate::memory::{Mapping, Pages};

/// Room that must be left on the file system beside the file.
const MARGIN_BYTES: u64 = 64 << 20;

/// The layout writes blocks of this size, this many at a time.
const LAYOUT_BLOCK_BYTES: u64 = 1 << 20;
const LAYOUT_DEPTH: usize = 8;

/// ZFS accepts direct I/O and may serve it from a cache of its own, which nobody can look into.
const ZFS_MAGIC: u64 = 0x2fc1_2fc1;

/// A file for measuring, which nobody else sees. It has no name from the start, so the system removes it when this
/// value is dropped and also when the process is killed.
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    folder: PathBuf,
    bytes: u64,
}

impl ScratchFile {
    /// Makes an empty file in this folder that will have this size.
    ///
    /// # Errors
    /// If the folder cannot be used, has too little space, or knows no direct I/O.
    pub fn create(folder: &Path, bytes: u64) -> Result<Self, DiskError> {
        check_space(folder, bytes)?;
        let system =
            |what, cause: Errno| DiskError::System { what, path: folder.to_owned(), cause: cause.into() };
        let file = nameless(folder).map_err(|cause| system("make a test file", cause))?;
        let flags = rustix::fs::fcntl_getfl(&file).map_err(|cause| system("look at the test file", cause))?;
        match rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT) {
            Err(Errno::INVAL) => return Err(not_direct(folder, "the file system refuses O_DIRECT")),
            outcome => outcome.map_err(|cause| system("set O_DIRECT on the test file", cause))?,
        }
        let file = Self { file, folder: folder.to_owned(), bytes };
        file.check_direct()?;
        Ok(file)
    }

    /// Reserves the file's space and writes all of it once with random data, so that later reads meet data and later
    /// writes meet blocks that exist. Says whether it got to the end; it does not if `stop` says so before.
    ///
    /// # Errors
    /// If the space is not there after all, or a write fails.
    pub fn lay_out(&self, stop: &dyn Fn() -> bool) -> Result<bool, DiskError> {
        let stopped = std::cell::Cell::new(false);
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, self.bytes) {
            // Not every file system can reserve; the writes will show it.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(cause) => return Err(self.error("reserve space for the test file", cause.into())),
        }
        let write = |from: u64, to: u64, block_bytes: u64, depth: usize| {
            let (mut queue, _) = queue::open(&self.file, depth, block_bytes as usize)
                .map_err(|cause| self.error("set up the queue", cause))?;
            let ask = || {
                stopped.set(stopped.get() || stop());
                stopped.get()
            };
            drive(&mut *queue, &mut Once::new(from, to, block_bytes, ask))
        };
        let whole_blocks = self.bytes - self.bytes % LAYOUT_BLOCK_BYTES;
        write(0, whole_blocks, LAYOUT_BLOCK_BYTES, LAYOUT_DEPTH)?;
        write(whole_blocks, self.bytes, BLOCK_ALIGNMENT as u64, 1)?;
        Ok(!stopped.get())
    }

    /// The file's size once it is laid out.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes of the file the page cache holds.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn cached_bytes(&self) -> io::Result<u64> {
        let pages = cached_pages(&self.file, usize::try_from(self.bytes).map_err(io::Error::other)?)?;
        Ok((pages * rustix::param::page_size()) as u64)
    }

    /// The open file.
    #[must_use]
    pub fn handle(&self) -> &File {
        &self.file
    }

    /// An error of the system about this file.
    pub(super) fn error(&self, what: &'static str, cause: io::Error) -> DiskError {
        DiskError::System { what, path: self.folder.clone(), cause }
    }

    /// Makes sure that a block goes to the disk and not to the page cache. The flag alone does not say so: some file
    /// systems accept it and pass the block through memory all the same.
    fn check_direct(&self) -> Result<(), DiskError> {
        let not_direct = |reason: &str| Err(not_direct(&self.folder, reason));
        let kind =
            rustix::fs::fstatfs(&self.file).map_err(|e| self.error("look at the file system", e.into()))?;
        if kind.f_type as u64 == ZFS_MAGIC {
            return not_direct("ZFS may answer from its own cache");
        }
        if let Ok(facts) = rustix::fs::statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
            && facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0
        {
            let unit = facts.stx_dio_offset_align as usize;
            if unit == 0 {
                return not_direct("the file system says that this file has none");
            }
            if !BLOCK_ALIGNMENT.is_multiple_of(unit) {
                return not_direct(&format!("the disk takes no blocks smaller than {unit} bytes"));
            }
        }
        let block = Mapping::new(BLOCK_ALIGNMENT, Pages::Default)
            .map_err(|cause| self.error("get memory", io::Error::other(cause)))?;
        match self.file.write_all_at(&block, 0) {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                return not_direct("the file system refuses a direct write of 4096 bytes");
            }
            outcome => outcome.map_err(|cause| self.error("write to the test file", cause))?,
        }
        let cached = cached_pages(&self.file, BLOCK_ALIGNMENT)
            .map_err(|cause| self.error("look into the page cache", cause))?;
        if cached > 0 { not_direct("a direct write went to the page cache") } else { Ok(()) }
    }
}

fn not_direct(folder: &Path, reason: &str) -> DiskError {
    DiskError::NotDirect { path: folder.to_owned(), reason: reason.to_owned() }
}

/// Refuses a folder that is none or has too little room.
fn check_space(folder: &Path, bytes: u64) -> Result<(), DiskError> {
    let bad = |cause| DiskError::BadFolder { path: folder.to_owned(), cause };
    if !std::fs::metadata(folder).map_err(bad)?.is_dir() {
        return Err(bad(io::ErrorKind::NotADirectory.into()));
    }
    let facts = rustix::fs::statvfs(folder).map_err(|cause| bad(cause.into()))?;
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let needed = bytes.saturating_add(MARGIN_BYTES);
    if free < needed {
        return Err(DiskError::NoSpace { path: folder.to_owned(), needed, free });
    }
    Ok(())
}

/// A new file without a name. It is opened without O_DIRECT: where that is refused, `open` would leave the file behind.
fn nameless(folder: &Path) -> Result<File, Errno> {
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    match rustix::fs::openat(CWD, folder, flags | OFlags::TMPFILE, mode) {
        // What file systems and kernels without nameless files say.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {}
        outcome => return outcome.map(File::from),
    }
    let name = format!(".warpt-disk-{}-{:016x}", std::process::id(), fastrand::u64(..));
    let path = folder.join(name);
    let file = rustix::fs::openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    rustix::fs::unlinkat(CWD, &path, AtFlags::empty())?;
    Ok(file.into())
}
