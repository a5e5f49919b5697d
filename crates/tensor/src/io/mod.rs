//! Tensor files, and how all files are read and written.

pub mod carrier;
mod copy;
pub mod gguf;
pub mod input;
mod map;
pub mod npy;
pub mod output;
pub mod safetensors;
mod unfinished;

use std::path::Path;

pub use map::map_file;
pub use unfinished::{Unfinished, remove_unfinished};

use crate::Error;

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::Io { path, source }
}
