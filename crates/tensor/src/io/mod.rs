//! Tensor files.

pub mod npy;
pub mod safetensors;

use std::path::Path;

use crate::Error;

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::Io { path, source }
}
