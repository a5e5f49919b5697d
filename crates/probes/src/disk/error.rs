//! Why a disk could not be measured.

use std::io;
use std::path::PathBuf;

use super::{Engine, Operation};

/// Why a disk could not be measured. The message is whole: it includes what the system said, which is therefore not
/// chained as a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The folder does not exist, or is not one.
    #[error("{} cannot be used as the folder of the test file: {cause}", path.display())]
    BadFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file system has too little room.
    #[error(
        "{} has too little space: the test file and a margin need {needed} bytes ({} MiB), {free} bytes ({} MiB) are free",
        path.display(), needed / (1 << 20), free / (1 << 20)
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// Bytes of the file and the margin.
        needed: u64,
        /// Bytes that this user may still write.
        free: u64,
    },
    /// Reads and writes would pass through memory, so that the disk would not be measured.
    #[error("{}: no direct I/O ({reason}); name a folder on a disk", path.display())]
    NotDirect {
        /// The folder.
        path: PathBuf,
        /// How that was found out.
        reason: String,
    },
    /// A call to the system failed.
    #[error("{}: cannot {what}: {cause}", path.display())]
    System {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A read or write failed.
    #[error("a direct {operation} of the test file by {engine} failed at byte {offset:?}: {cause}")]
    Transfer {
        /// Read or write.
        operation: Operation,
        /// Who carried it out.
        engine: Engine,
        /// Where in the file, where that is known.
        offset: Option<u64>,
        /// What the system said.
        cause: io::Error,
    },
}
