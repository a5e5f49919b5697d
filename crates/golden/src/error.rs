//! What stops a validation before it can judge.

/// Why two runs could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("{path}: {cause}")]
    Io {
        /// Which.
        path: String,
        /// The operating system's reason.
        cause: std::io::Error,
    },
    /// A run is a folder.
    #[error("{path}: a file; a run is a folder, as `warpt run --save DIR` writes one")]
    NoFolder {
        /// The file.
        path: String,
    },
    /// A file of tensors is not what its format asks for.
    #[error("{path}: {cause}")]
    Tensors {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: warpforge_tensor::Error,
    },
    /// A JSON file cannot be used.
    #[error("{path}: {reason}")]
    Json {
        /// The file.
        path: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// A manifest cannot be used, or a file is not what it says.
    #[error("{path}: {reason}")]
    Manifest {
        /// The manifest.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Two files of a folder have a tensor of the same name.
    #[error("{first} and {second} both have {class} `{name}`; keep one of them")]
    Twice {
        /// One file.
        first: String,
        /// The other.
        second: String,
        /// Its class.
        class: crate::Class,
        /// The tensor.
        name: String,
    },
    /// A folder nests or holds more than a run writes.
    #[error("{path}: {reason}")]
    TooLarge {
        /// The folder.
        path: String,
        /// Which bound.
        reason: String,
    },
    /// A file of tolerances cannot be used.
    #[error("{place}: {reason}")]
    Tolerances {
        /// The file, or the part of it.
        place: String,
        /// What is wrong.
        reason: String,
    },
}
