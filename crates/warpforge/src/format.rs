//! What a model file is, told by its first bytes.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use warpforge_snakeburger::{Loaded, load, load_file, text};
use warpforge_tensor::io::gguf;
use warpforge_tensor::io::input::{self, Input};

/// What a model file holds.
#[derive(Debug)]
pub enum Contents {
    /// A PyTorch archive, which is mapped and not read.
    Archive,
    /// Modules, or what is wrong with them.
    Modules {
        /// Whether they are text or bytecode.
        format: Format,
        /// The modules in order.
        modules: Vec<Loaded>,
    },
}

impl Contents {
    /// Reads the modules of a file. `-` is standard input; what comes out of a pipe is read once, to its end.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is an archive in a pipe.
    pub fn read(path: &Path, options: &text::Options) -> std::io::Result<Self> {
        match input::open(path)? {
            Input::Stream(bytes) => match Format::of(&bytes) {
                Format::Pt2 => {
                    let reason = format!("a PyTorch archive {}", input::CANNOT_MAP);
                    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, reason))
                }
                _ if is_tensors(&bytes) => Err(no_model()),
                format => Ok(Self::Modules { format, modules: load(&shown(path), bytes, options) }),
            },
            Input::File => match Format::of_file(path)? {
                Format::Pt2 => Ok(Self::Archive),
                _ if is_tensors(&start_of(path)?) => Err(no_model()),
                format => Ok(Self::Modules { format, modules: load_file(path, options)? }),
            },
        }
    }
}

/// The bytes of a file that tell what it is.
pub(crate) fn start_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(9).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether a file begins as files of tensors do: npy, GGUF, or safetensors, whose JSON follows its length.
fn is_tensors(start: &[u8]) -> bool {
    start.starts_with(b"\x93NUMPY")
        || start.starts_with(gguf::MAGIC)
        || start.get(4..9) == Some(&[0, 0, 0, 0, b'{'])
}

fn no_model() -> std::io::Error {
    let reason = "a file of tensors, no model: --inputs and --weights take safetensors, --weights GGUF too, --input takes npy";
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}

/// What messages call a model file.
#[must_use]
pub fn shown(path: &Path) -> String {
    if input::is_standard(path) { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// The form of a model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// StableHLO as MLIR text.
    Text,
    /// StableHLO as MLIR bytecode.
    Bytecode,
    /// PyTorch's archive of an exported program.
    Pt2,
}

impl Format {
    /// The form of a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn of_file(path: &Path) -> std::io::Result<Self> {
        Ok(Self::of(&start_of(path)?))
    }

    /// The form that a file's bytes have. Whatever is neither bytecode nor an archive is read as text.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [b'M', b'L', 0xef, b'R', ..] => Format::Bytecode,
            // A zip file begins with its first entry, or with its end where it is empty.
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Format::Pt2,
            _ => Format::Text,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "StableHLO text",
            Format::Bytecode => "StableHLO bytecode",
            Format::Pt2 => "PyTorch archive",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        assert_eq!(Format::of(b"ML\xefR\x0dStableHLO"), Format::Bytecode);
        assert_eq!(Format::of(b"PK\x03\x04"), Format::Pt2);
        assert_eq!(Format::of(b"module {}"), Format::Text);
        assert_eq!(Format::of(b""), Format::Text);
        assert!(is_tensors(b"\x93NUMPY\x01\x00") && is_tensors(b"\x10\x02\0\0\0\0\0\0{\"x\""));
        assert!(!is_tensors(b"module {}") && !is_tensors(b"") && !is_tensors(b"ML\xefR\x0dStableHLO"));
    }
}
