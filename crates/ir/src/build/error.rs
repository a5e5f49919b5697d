//! Why an operation could not be built.

use crate::attr::ElementsError;
use crate::verify::InferError;

/// Why an operation could not be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Constraints of the operation are broken, or its results cannot be inferred.
    #[error("{why}{}", location.as_ref().map_or(String::new(), |at| format!(", at {at}")))]
    Refused {
        /// What is wrong.
        why: InferError,
        /// The location that the operation would have had.
        location: Option<String>,
    },
    /// The operation has not one result where one was asked for.
    #[error("`{op}` has {count} results where one was asked for")]
    Results {
        /// The operation.
        op: String,
        /// How many results it has.
        count: usize,
    },
    /// A ranked tensor was needed.
    #[error("a ranked tensor is needed, not {0}")]
    NotATensor(String),
    /// Dimensions must be known for this.
    #[error("{0} has dimensions that are not known")]
    NotStatic(String),
    /// The data does not make a constant of the type.
    #[error("a constant: {0}")]
    Constant(#[from] ElementsError),
}
