//! What can go wrong with an archive.

use crate::lower::Report;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or mapped.
    #[error(transparent)]
    File(#[from] warpforge_tensor::Error),
    /// The file is not a zip archive as PyTorch writes them.
    #[error("not a sound zip archive: {what}, at byte {offset}")]
    Zip {
        /// What is wrong.
        what: String,
        /// Where in the file.
        offset: u64,
    },
    /// An entry of the archive is not as it must be.
    #[error("entry `{entry}`: {what}")]
    Entry {
        /// The entry's name in the archive.
        entry: String,
        /// What is wrong.
        what: String,
    },
    /// An entry that the archive must have is not there.
    #[error("the archive has no entry `{entry}`: {hint}")]
    MissingEntry {
        /// The entry's name, without the archive's root folder.
        entry: String,
        /// What it probably means.
        hint: String,
    },
    /// An entry that must be JSON of the export schema is not.
    #[error("entry `{entry}`, line {line}, column {column}: {what}")]
    Json {
        /// The entry's name in the archive.
        entry: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// The archive was written by a PyTorch with another format.
    #[error("{what} {found} is not supported: this program reads {supported}")]
    Version {
        /// Which version.
        what: &'static str,
        /// The version found.
        found: String,
        /// The versions that are read.
        supported: String,
    },
    /// A weight or constant cannot be used.
    #[error("weight `{name}`: {what}")]
    Weight {
        /// The parameter, buffer or constant.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The graph contradicts itself.
    #[error("graph: {0}")]
    Graph(String),
    /// The shapes given do not fit the model.
    #[error("input `{input}`: {what}")]
    Shape {
        /// The input.
        input: String,
        /// What does not fit.
        what: String,
    },
    /// Operations that cannot be lowered exactly, all of them.
    #[error("{0}")]
    Unsupported(Report),
}
