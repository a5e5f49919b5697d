//! Running the conformance files of the StableHLO project.
//!
//! A file is one module or several separated by `// -----`. What is done with each follows from what it contains:
//! checks are executed and must hold, a chunk with an `expected-error` comment must be refused by the reader or the
//! verifier, and anything else is read, verified, printed and read again, and must stay the same. A bytecode file is one
//! module; an artifact that says it is of a future version of StableHLO must be refused with that version.

mod case;
mod engine;
mod folder;

use std::sync::Arc;

pub use engine::Engine;

use crate::Options;

/// How files are judged.
#[derive(Clone, Default)]
pub struct Judge {
    /// How the reference evaluates.
    pub options: Options,
    /// Who computes what checks look at; the reference where there is none.
    pub engine: Option<Arc<dyn Engine>>,
}

pub use case::{Case, Mode, Status, run_artifact, run_chunk};
pub use folder::{Summary, files_below, run_file, run_folder};
