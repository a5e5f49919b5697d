//! Holding files against the hashes of a manifest.

use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use warpforge_tensor::io::map_file;

use crate::Error;

/// The SHA-256 of a file's bytes, in hexadecimal.
pub(super) fn sha256(path: &Path) -> Result<String, Error> {
    let bytes = map_file(path).map_err(|cause| Error::Tensors { path: path.display().to_string(), cause })?;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(&*bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
