//! What can go wrong with a tensor.

use crate::ElementType;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text names no element type.
    #[error("unknown element type `{0}`")]
    UnknownElementType(String),
    /// The number of elements or bytes does not fit the address space.
    #[error("shape {0:?} has more elements than can be addressed")]
    ShapeOverflow(Vec<usize>),
    /// The memory for a tensor could not be had.
    #[error("no memory for a tensor of {bytes} bytes")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// Data and shape disagree.
    #[error("{what}: expected {expected}, found {found}")]
    SizeMismatch {
        /// What was counted.
        what: &'static str,
        /// What the shape asks for.
        expected: usize,
        /// What the data has.
        found: usize,
    },
    /// Elements at regular distances lie outside the tensor.
    #[error(
        "{dims:?} elements from {start} on in steps of {steps:?} are not inside a tensor of {len} elements"
    )]
    OutOfBounds {
        /// Position of the first element.
        start: usize,
        /// Distance of neighbours along each dimension.
        steps: Vec<isize>,
        /// How many elements along each dimension.
        dims: Vec<usize>,
        /// How many elements there are.
        len: usize,
    },
    /// Two tensors that must have the same type do not.
    #[error("expected a tensor of {expected}, found {found}")]
    TypeMismatch {
        /// The type asked for.
        expected: String,
        /// The type found.
        found: String,
    },
    /// The parameters of a quantized type are inconsistent.
    #[error("bad quantized type: {0}")]
    Quantization(String),
    /// A file format has no code for an element type.
    #[error("{format} files cannot hold elements of type {element}")]
    UnsupportedElement {
        /// The file format.
        format: &'static str,
        /// The element type.
        element: ElementType,
    },
    /// A file is not what its format asks for.
    #[error("bad {format} data: {reason}")]
    Malformed {
        /// The file format.
        format: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// Reading or writing a file failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
}
