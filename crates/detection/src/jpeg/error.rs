//! What can be wrong with a JPEG.

/// Why an image cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JpegError {
    /// The bytes do not begin as a JPEG does.
    #[error("the file is no JPEG")]
    NotJpeg,
    /// The image ends before its last pixel.
    #[error("the image is cut off")]
    Truncated,
    /// The image breaks a rule of the format.
    #[error("the image is damaged: {0}")]
    Invalid(&'static str),
    /// The image is of a kind that is not decoded.
    #[error("{0} are not supported")]
    Unsupported(&'static str),
}
