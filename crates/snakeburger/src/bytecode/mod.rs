//! MLIR bytecode: portable artifacts of StableHLO of every version, and modules as MLIR's own tools write them.
//!
//! An artifact is of a version of StableHLO. What was read is today's StableHLO, whatever the version: see
//! [`Version::OLDEST`] and [`Version::CURRENT`]. Nothing in a file is believed: every number is held against the bytes
//! that are there before memory is taken for it, nesting is bounded, and so is what a module is made of.
//!
//! ```
//! use warpforge_ir::{Blob, print::print};
//! use warpforge_snakeburger::{bytecode, text};
//! use warpforge_diag::Source;
//!
//! let options = text::Options::default();
//! let source = Source::new("m", "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
//!   return %a : tensor<2xf32>
//! }");
//! let module = text::parse(&source, &options).unwrap();
//! let bytes = bytecode::write(&module, bytecode::Target::default()).unwrap();
//! assert!(bytecode::is_bytecode(&bytes));
//! let again = bytecode::read(&Blob::from(bytes), &options).unwrap();
//! assert_eq!(print(&again), print(&module));
//! ```

mod error;
mod read;
mod version;
mod vhlo;
mod wire;
mod write;

pub use error::{Error, ErrorKind};
pub use version::{BadVersion, Version};
use warpforge_ir::{Blob, Module};
pub use write::{Target, WriteError};

use crate::text::Options;

/// Whether a file is MLIR bytecode, by its first bytes.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(&wire::MAGIC)
}

/// Reads a module. Its constants share the bytes of the file.
///
/// # Errors
///
/// The first thing that is not bytecode, with its position; an artifact of a future version, with the version.
pub fn read(bytes: &Blob, options: &Options) -> Result<Module, Error> {
    read::module(bytes, options.keep_locations)
}

/// The version of StableHLO that a portable artifact is of; `None` for bytecode that is none.
///
/// # Errors
///
/// When the file is not bytecode.
pub fn version(bytes: &[u8]) -> Result<Option<Version>, Error> {
    read::version(bytes)
}

/// Writes a module as a portable artifact.
///
/// # Errors
///
/// When the module has in it what artifacts have no place for, or what the version asked for does not have.
pub fn write(module: &Module, target: Target) -> Result<Vec<u8>, WriteError> {
    write::module(module, target)
}
