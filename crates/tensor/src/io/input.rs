//! Reading what may be a pipe: once, from its beginning, and not without a bound.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// The name that stands for standard input.
pub const STANDARD: &str = "-";

/// The most bytes that are read from a pipe.
pub const MOST: u64 = 4 << 30;
/// The most bytes that are read from a device, which may have no end.
const MOST_OF_A_DEVICE: u64 = 64 << 20;

/// What a path leads to.
#[derive(Debug)]
pub enum Input {
    /// A plain file: it can be mapped, and read again.
    File,
    /// Everything that came out of standard input, a pipe, a socket or a device.
    Stream(Vec<u8>),
}

/// Whether a path stands for standard input.
#[must_use]
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

/// Looks at a path, and reads what can be read only once.
///
/// # Errors
///
/// When it cannot be opened or read, or has more than [`MOST`] bytes.
pub fn open(path: &Path) -> io::Result<Input> {
    if is_standard(path) {
        return bounded(io::stdin().lock(), MOST).map(Input::Stream);
    }
    let file = File::open(path)?;
    let found = file.metadata()?;
    // What is empty may yet have bytes: the files of /proc have no size.
    if found.is_dir() || found.is_file() && found.len() > 0 {
        return Ok(Input::File);
    }
    let most = if found.file_type().is_char_device() { MOST_OF_A_DEVICE } else { MOST };
    bounded(file, most).map(Input::Stream)
}

/// Reads a text: a plain file whole, everything else as [`open`] does.
///
/// # Errors
///
/// As [`open`], and when it is no text.
pub fn read_text(path: &Path) -> io::Result<String> {
    match open(path)? {
        Input::File => std::fs::read_to_string(path),
        Input::Stream(bytes) => String::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error())),
    }
}

fn bounded(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("there are more than {most} bytes and no end in sight");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Refuses what cannot be mapped.
pub(super) fn mappable(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    if found.is_file() || found.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, CANNOT_MAP))
}

/// What is said of a format that is mapped and comes from a pipe.
pub const CANNOT_MAP: &str = "cannot be read from a pipe: save it first";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        assert_eq!(bounded(&b"four"[..], 4).expect("few enough"), b"four");
        assert_eq!(bounded(io::repeat(0), 4).expect_err("endless").kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn plain_files_are_left_to_whoever_maps_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("data");
        std::fs::write(&path, "x").expect("writable");
        assert!(matches!(open(&path), Ok(Input::File)));
        std::fs::write(&path, "").expect("writable");
        assert!(matches!(open(&path), Ok(Input::Stream(bytes)) if bytes.is_empty()));
        assert!(matches!(open(folder.path()), Ok(Input::File)));
        assert!(open(&folder.path().join("none")).is_err());
    }
}
