//! What can be wrong with bytecode, and where.

use super::version::Version;

/// Why bytecode was not read, with the byte that shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {kind}")]
pub struct Error {
    kind: ErrorKind,
    offset: usize,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The first four bytes are not those of MLIR bytecode.
    #[error("this is no MLIR bytecode, which starts with the bytes 4d 4c ef 52")]
    NotBytecode,
    /// The artifact is of a version of StableHLO that is not known yet.
    #[error(
        "the artifact is of StableHLO {0}, a future version: versions from {oldest} to {current} are read; write it for an \
         older one, or use a newer warpt",
        oldest = Version::OLDEST,
        current = Version::CURRENT
    )]
    FutureVersion(Version),
    /// The artifact is older than the first version with guarantees of compatibility.
    #[error("the artifact is of StableHLO {0}: only versions from {oldest} on are read", oldest = Version::OLDEST)]
    TooOld(Version),
    /// The container is of a version of MLIR's format that is not known yet.
    #[error("version {0} of MLIR's bytecode is a future one: versions up to {latest} are read", latest = super::wire::LATEST_FORMAT)]
    FutureFormat(u64),
    /// The data ends too early.
    #[error("cut off: more bytes must follow here")]
    CutOff,
    /// Anything else that does not make sense.
    #[error("{0}")]
    Malformed(String),
}

impl Error {
    pub(super) fn new(offset: usize, kind: ErrorKind) -> Self {
        Self { kind, offset }
    }

    pub(super) fn malformed(offset: usize, message: impl Into<String>) -> Self {
        Self::new(offset, ErrorKind::Malformed(message.into()))
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The byte of the file that shows it.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// The result of a step of reading.
pub(super) type Read<T> = Result<T, Error>;
