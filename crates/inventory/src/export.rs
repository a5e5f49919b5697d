//! Files that commands write: their default names, and writing them whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Zoned;
use tempfile::NamedTempFile;

/// The default name of an exported file: `warpt_<what>_<TIMESTAMP>_<RANDOM>.json`.
#[must_use]
pub fn default_file_name(what: &str) -> PathBuf {
    let timestamp = Zoned::now().strftime("%Y%m%d_%H%M%S");
    let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(6).collect();
    PathBuf::from(format!("warpt_{what}_{timestamp}_{}.json", random.to_lowercase()))
}

/// Writes a file by way of a temporary one beside it, so that a reader, a killed program or a machine that stops never
/// leaves half of it.
///
/// # Errors
/// If the folder cannot be written to or has no space; the file is then as it was before.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = temporary_beside(path, |file| file.write_all(bytes))?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes a large file piece by piece, so that it is there whole or as it was before. It is not waited for until the disk
/// has it: what is lost when the machine stops has to be made again.
///
/// # Errors
/// As [`write_atomically`], and what `write` fails with.
pub fn write_atomically_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = temporary_beside(path, write)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

fn temporary_beside(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Readable for whom the user's mask allows, as any other file.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".warpt-").permissions(permissions).tempfile_in(folder)?;
    let mut buffered = io::BufWriter::with_capacity(1 << 20, file.as_file_mut());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");

        let missing = folder.path().join("no-such-folder").join("result.json");
        assert_eq!(write_atomically(&missing, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn default_names_carry_their_subject_and_differ() {
        let (a, b) = (default_file_name("list"), default_file_name("list"));
        assert_ne!(a, b);
        let name = a.to_str().unwrap();
        assert!(name.starts_with("warpt_list_2") && name.ends_with(".json"), "{name}");
    }
}
