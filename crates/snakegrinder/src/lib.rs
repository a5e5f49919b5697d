//! PyTorch's exported programs (`.pt2`), read and lowered to StableHLO.
//!
//! ```no_run
//! use std::path::Path;
//! use warpforge_snakegrinder::{ImportOptions, open};
//!
//! let archive = open(Path::new("model.pt2"))?;
//! let imported = archive.import(&ImportOptions::default())?;
//! println!("{} weights", imported.weights.len());
//! # Ok::<(), warpforge_snakegrinder::Error>(())
//! ```
//!
//! - [`archive`] reads the zip in place: graph JSON, weights and constants; no Python, no pickle.
//! - `graph` is the JSON of `torch.export`, with sizes as expressions of symbols.
//! - [`lower`] turns each node into StableHLO operations; an operation that cannot be lowered exactly is an error that
//!   lists all such operations. Its documentation says how to add one.
//! - `modules` says which value of the graph each module of the Python model returned.
//!
//! The module that comes out has one function `@main` whose arguments are parameters, buffers, constants and user inputs
//! in PyTorch's order, with names and roles ([`warpforge_ir::signature`]). Weights are not part of it: they are tensors
//! beside it that share the file's bytes.
#![forbid(unsafe_code)]

pub mod archive;
mod error;
mod graph;
pub mod lower;
mod modules;
mod packing;

use std::path::Path;

pub use archive::Archive;
pub use error::Error;
pub use lower::{ImportOptions, Imported};
pub use modules::ModuleValue;

/// Opens an archive and reads its graph: [`Archive::open`].
///
/// # Errors
///
/// When the file cannot be mapped, is not an archive of `torch.export.save`, or is of a version not known here.
pub fn open(path: &Path) -> Result<Archive, Error> {
    Archive::open(path)
}
