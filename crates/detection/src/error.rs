//! What can go wrong.

/// Why annotations, detections or an image cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{path}: {cause}")]
    Io {
        /// Which.
        path: String,
        /// The operating system's reason.
        cause: std::io::Error,
    },
    /// A text is not JSON, or not of the form that COCO has.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Annotations contradict each other or cannot be evaluated.
    #[error("{0}")]
    Annotations(String),
    /// Detections cannot be evaluated.
    #[error("detection {index}: {reason}")]
    Detection {
        /// Which, from 0.
        index: usize,
        /// What is wrong.
        reason: String,
    },
    /// An image cannot be decoded.
    #[error(transparent)]
    Jpeg(#[from] crate::jpeg::JpegError),
    /// An image cannot be resized.
    #[error("an image of {}×{} pixels cannot become one of {}×{}", .from.0, .from.1, .to.0, .to.1)]
    Size {
        /// Its width and height.
        from: (usize, usize),
        /// Those that it would get.
        to: (usize, usize),
    },
    /// An error in a file.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: String,
        /// What is wrong with it.
        cause: Box<Error>,
    },
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The content of a file, read by a function of bytes.
pub(crate) fn of_file<T>(path: &std::path::Path, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let name = || path.display().to_string();
    let bytes = std::fs::read(path).map_err(|cause| Error::Io { path: name(), cause })?;
    read(&bytes).map_err(|cause| Error::File { path: name(), cause: Box::new(cause) })
}
