//! What can go wrong.

use std::path::Path;

/// Why a golden benchmark cannot be described, recorded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no benchmark of that name.
    #[error("there is no golden benchmark `{name}`{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest, or all.
        hint: String,
    },
    /// A description cannot be used.
    #[error("{place}: {reason}")]
    Description {
        /// The file, with line and column where that is known.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A licence does not allow every use.
    #[error(
        "the licence of {what}, {licence}, is for non-commercial use only; accept it with --accept-licence '{licence}'"
    )]
    Licence {
        /// What it is the licence of.
        what: &'static str,
        /// Its name.
        licence: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {cause}")]
    Io {
        /// Which.
        path: String,
        /// The operating system's reason.
        cause: std::io::Error,
    },
    /// A file of data is not what its format asks for.
    #[error("{path}: {reason}")]
    Data {
        /// The file.
        path: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// The golden run is not one that this run can be compared with.
    #[error("{path}: {reason}")]
    Golden {
        /// The golden folder.
        path: String,
        /// What differs, and what to do.
        reason: String,
    },
    /// The folder of an unfinished run is of another one.
    #[error("{path}: {reason}")]
    Resume {
        /// The folder.
        path: String,
        /// What differs.
        reason: String,
    },
    /// Python could not record.
    #[error("{0}")]
    Python(String),
    /// The run cannot go on.
    #[error("{0}")]
    Stopped(String),
    /// The ranks of the run cannot go on together.
    #[error(transparent)]
    Group(#[from] warpforge_collective::Error),
    /// The folder of a run cannot be read or written.
    #[error(transparent)]
    Folder(#[from] warpforge_golden::Error),
    /// Annotations or detections of COCO cannot be used.
    #[error(transparent)]
    Detection(#[from] warpforge_detection::Error),
    /// A tensor is not what is needed, or cannot be read or written.
    #[error(transparent)]
    Tensor(#[from] warpforge_tensor::Error),
    /// The model cannot be read, compiled or run.
    #[error(transparent)]
    Model(#[from] warpforge::Error),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |cause| Self::Io { path, cause }
    }

    pub(crate) fn data(path: &Path, reason: impl Into<String>) -> Self {
        Self::Data { path: path.display().to_string(), reason: reason.into() }
    }

    pub(crate) fn golden(path: &Path, reason: impl Into<String>) -> Self {
        Self::Golden { path: path.display().to_string(), reason: reason.into() }
    }
}
