//! Files as memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use super::{input, io_error};
use crate::{Blob, Error};

/// A file's bytes, read from the disk when they are looked at and shared with every other reader.
///
/// The file must not be cut short while the bytes are in use: the system ends a program that looks at what is gone.
/// Writing a new file and renaming it over the old one, as [`safetensors::write`](super::safetensors::write) does, is
/// harmless.
///
/// # Errors
///
/// When the file cannot be opened or mapped, as a pipe cannot.
pub fn map_file(path: &Path) -> Result<Blob, Error> {
    if input::is_standard(path) {
        return Err(io_error(path)(std::io::Error::new(std::io::ErrorKind::Unsupported, input::CANNOT_MAP)));
    }
    let file = File::open(path).map_err(io_error(path))?;
    input::mappable(&file).map_err(io_error(path))?;
    // SAFETY: the mapping is private and only ever read. That its bytes do not change is what everything that maps
    // files takes on trust (a writer in place is another program's mistake); no value here relies on bytes it has
    // checked before for memory safety: they are only ever read as numbers, at offsets inside the mapping's length.
    let map = unsafe { Mmap::map(&file) }.map_err(io_error(path))?;
    Ok(Blob::of_file(map, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_has_its_bytes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("data");
        for content in [&b""[..], b"some bytes"] {
            std::fs::write(&path, content).expect("writable");
            assert_eq!(&*map_file(&path).expect("mapped"), content);
        }
        assert!(matches!(map_file(&folder.path().join("none")), Err(Error::Io { .. })));
        assert!(matches!(map_file(folder.path()), Err(Error::Io { .. })));
    }
}
