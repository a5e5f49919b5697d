//! Tensor files.

pub mod carrier;
mod copy;
mod map;
pub mod npy;
pub mod safetensors;

use std::path::Path;

pub use map::map_file;

use crate::Error;

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::Io { path, source }
}
