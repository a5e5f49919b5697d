//! The files that a program writes, each whole or not at all.
//!
//! A plain file is written under another name, or under none, in its own folder, and takes its name when it is whole and on
//! the disk. Symbolic links are followed: the file behind them is replaced, they stay. Devices, pipes and sockets are written
//! to as they are, and `-` is standard output. What is not finished is removed on an error, when the value is dropped, and by
//! `remove_unfinished` when a signal ends the program.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::unfinished::Unfinished;

/// The name that stands for standard output.
pub const STANDARD: &str = "-";

/// The most symbolic links that are followed, as in the system.
const LINKS: usize = 40;

/// What is buffered before it is written.
const BUFFER: usize = 1 << 20;

/// A file being written.
#[derive(Debug)]
pub struct Output {
    file: BufWriter<File>,
    place: Place,
}

/// Where the bytes go.
#[derive(Debug)]
enum Place {
    /// Into a device, a pipe, a socket or standard output.
    Through { standard: bool },
    /// Into a file without a name yet.
    Nameless { target: PathBuf },
    /// Into a file of another name.
    Named { target: PathBuf, temporary: Unfinished },
}

/// Whether a path stands for standard output.
#[must_use]
pub fn is_standard(path: &Path) -> bool {
    [STANDARD, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Writes a file from bytes.
///
/// # Errors
///
/// As [`Output::create`] and [`Output::finish`].
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |out| out.write_all(bytes))
}

/// Writes a file piece by piece.
///
/// # Errors
///
/// As [`Output::create`] and [`Output::finish`], and what `write` fails with.
pub fn write_with(path: &Path, write: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<()> {
    let mut out = Output::create(path)?;
    match write(&mut out) {
        Err(error) if out.nobody_reads(&error) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => out.finish(),
    }
}

/// Finds out that a file could not be written before the work that it is for, and changes nothing.
///
/// # Errors
///
/// When the path is a folder, or the file or its folder cannot be written.
pub fn check(path: &Path) -> io::Result<()> {
    if is_standard(path) {
        return Ok(());
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => writable(path),
        // Whether a file can be made is known when it was: there are read-only file systems, quotas, and root.
        _ => Output::create(path).map(drop),
    }
}

fn writable(path: &Path) -> io::Result<()> {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(Into::into)
}

impl Output {
    /// Starts to write. What is there under that name stays until [`Output::finish`].
    ///
    /// # Errors
    ///
    /// When the path is a folder, the file is write-protected, or its folder does not exist or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        if is_standard(path) {
            let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            return Ok(Self::new(file, Place::Through { standard: true }));
        }
        let earlier = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if found.is_file() && !is_descriptor(path) => Some(found),
            Ok(found) => {
                let stream = found.file_type().is_fifo() || found.file_type().is_socket();
                // Another program may have written into a file that is open already.
                let file = OpenOptions::new().write(true).append(!stream).open(path)?;
                return Ok(Self::new(file, Place::Through { standard: false }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let target = behind_links(path)?;
        if earlier.is_some() {
            writable(&target)?;
        }
        let mode = earlier.as_ref().map_or(0o666, |earlier| earlier.permissions().mode() & 0o7777);
        let (file, place) = unnamed(target, mode)?;
        if let Some(earlier) = &earlier {
            as_before(&file, earlier)?;
        }
        Ok(Self::new(file, place))
    }

    fn new(file: File, place: Place) -> Self {
        Self { file: BufWriter::with_capacity(BUFFER, file), place }
    }

    /// The file with everything written so far, for bytes that the system copies from another file.
    ///
    /// # Errors
    ///
    /// When what is buffered cannot be written.
    pub(super) fn flushed(&mut self) -> io::Result<&File> {
        self.file.flush()?;
        Ok(self.file.get_ref())
    }

    /// Whether this is standard output, and an error says that its reader has gone: that is the reader's wish.
    #[must_use]
    pub fn nobody_reads(&self, error: &io::Error) -> bool {
        matches!(self.place, Place::Through { standard: true }) && error.kind() == io::ErrorKind::BrokenPipe
    }

    /// Gives the file its name. A plain file is on the disk before it has it.
    ///
    /// # Errors
    ///
    /// When the rest cannot be written, or the name cannot be taken. The file of that name is then as it was before.
    pub fn finish(mut self) -> io::Result<()> {
        match self.file.flush() {
            Err(error) if self.nobody_reads(&error) => return Ok(()),
            flushed => flushed?,
        }
        let file = self.file.get_ref();
        match &mut self.place {
            Place::Through { .. } => Ok(()),
            Place::Named { target, temporary } => {
                file.sync_all()?;
                std::fs::rename(temporary.path(), &*target)?;
                temporary.keep();
                Ok(())
            }
            Place::Nameless { target } => {
                file.sync_all()?;
                name(file, target)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file in the folder of the target: without a name where the file system has such files, else with one that is
/// removed unless the file is finished.
fn unnamed(target: PathBuf, mode: u32) -> io::Result<(File, Place)> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        // Linking a nameless file needs /proc.
        if Path::new("/proc/self/fd").exists()
            && let Ok(file) = rustix::fs::open(folder_of(&target), flags, Mode::from_raw_mode(mode))
        {
            return Ok((File::from(file), Place::Nameless { target }));
        }
    }
    let temporary = temporary_name(&target);
    // Registered before it exists, so that no moment is left in which a signal would miss it.
    let unfinished = Unfinished::new(temporary.clone());
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    Ok((file, Place::Named { target, temporary: unfinished }))
}

/// Gives a nameless file its name: at once where there is no such file, else by way of another name, since a link
/// does not replace a file.
#[cfg(target_os = "linux")]
fn name(file: &File, target: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let link = |to: &Path| linkat(CWD, &own, CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(target) {
        Err(rustix::io::Errno::EXIST) => {}
        linked => return linked.map_err(Into::into),
    }
    let mut temporary = Unfinished::new(temporary_name(target));
    link(temporary.path())?;
    std::fs::rename(temporary.path(), target)?;
    temporary.keep();
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// A name in the target's folder that no other program uses.
fn temporary_name(target: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.subsec_nanos());
    folder_of(target).join(format!(".warpt-{}-{count}-{now:08x}", std::process::id()))
}

/// The mode of the file that is replaced, whatever the mask, and its owner where that is allowed.
fn as_before(file: &File, earlier: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    file.set_permissions(earlier.permissions())?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
        // Only root may give files away; for others the file is now theirs.
        let _ = std::os::unix::fs::fchown(file, Some(earlier.uid()), Some(earlier.gid()));
    }
    Ok(())
}

/// Whether a path names an open file of this process rather than a place in a folder.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stderr", "/dev/stdin", "/proc/self/fd"].iter().any(|start| path.starts_with(start))
}

/// The file that a path leads to. It need not exist.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match std::fs::read_link(&path) {
            Ok(next) => path = folder_of(&path).join(next),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound || error.kind() == io::ErrorKind::InvalidInput =>
            {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_as_before_until_it_is_finished() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("result.json");
        write(&path, b"old").expect("writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("its owner");
        let mut out = Output::create(&path).expect("writable");
        out.write_all(b"half").expect("writable");
        drop(out);
        assert_eq!(std::fs::read(&path).expect("readable"), b"old");
        let failed = write_with(&path, |_| Err(io::Error::other("no")));
        assert_eq!(failed.expect_err("refused").to_string(), "no");
        assert_eq!(
            (std::fs::read(&path).expect("readable"), names(folder.path())),
            (b"old".to_vec(), vec!["result.json".to_owned()])
        );
        write(&path, b"new").expect("writable");
        assert_eq!(std::fs::read(&path).expect("readable"), b"new");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["result.json"]);
        let missing = write(&folder.path().join("none/result.json"), b"x");
        assert_eq!(missing.expect_err("no folder").kind(), io::ErrorKind::NotFound);
        assert_eq!(write(folder.path(), b"x").expect_err("a folder").kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (real, link) = (folder.path().join("inner/real"), folder.path().join("link"));
        std::fs::create_dir(folder.path().join("inner")).expect("a folder");
        symlink("inner/real", &link).expect("a link");
        for text in ["made", "replaced"] {
            check(&link).expect("writable");
            write(&link, text.as_bytes()).expect("writable");
            assert_eq!(std::fs::read_to_string(&real).expect("readable"), text);
            assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
        }
        let circle = folder.path().join("circle");
        symlink("circle", &circle).expect("a link");
        assert!(write(&circle, b"x").is_err() && check(&circle).is_err());
    }

    #[test]
    fn files_with_a_name_of_their_own_go_with_what_was_not_finished() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("result");
        for finished in [false, true] {
            let temporary = temporary_name(&path);
            let file = File::create_new(&temporary).expect("writable");
            let place = Place::Named { target: path.clone(), temporary: Unfinished::new(temporary) };
            let mut out = Output::new(file, place);
            out.write_all(b"all").expect("writable");
            if finished {
                out.finish().expect("renamed");
                assert_eq!(std::fs::read(&path).expect("readable"), b"all");
            }
        }
        assert_eq!(names(folder.path()), ["result"]);
    }
}
