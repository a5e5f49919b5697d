//! Why an operation cannot be planned.

/// Inconsistent sizes, strides or dimension numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A list has another length than there are dimensions.
    #[error("{what} has {found} entries where there are {wanted} dimensions")]
    Rank {
        /// The list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The number of dimensions.
        wanted: usize,
    },
    /// A dimension does not exist.
    #[error("{what} names dimension {found} of {rank}")]
    Dimension {
        /// Where the number stands.
        what: &'static str,
        /// The number.
        found: usize,
        /// How many dimensions there are.
        rank: usize,
    },
    /// Inconsistent sizes.
    #[error("{0}")]
    Sizes(&'static str),
    /// An unsupported element type.
    #[error("{what} cannot be of {found}")]
    Element {
        /// What has the type.
        what: &'static str,
        /// The type.
        found: warpforge_tensor::ElementType,
    },
    /// A size overflows.
    #[error("the sizes overflow")]
    Overflow,
}

/// Checks that a list has one entry per dimension.
pub(crate) fn check_rank(what: &'static str, found: usize, wanted: usize) -> Result<(), LayoutError> {
    if found == wanted { Ok(()) } else { Err(LayoutError::Rank { what, found, wanted }) }
}
