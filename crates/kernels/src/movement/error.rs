//! Why a movement cannot be planned.

/// Sizes, strides or dimension numbers that do not fit together.
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
    /// Sizes do not fit together.
    #[error("{0}")]
    Sizes(&'static str),
    /// Elements of this type are not served.
    #[error("{what} cannot be of {found}")]
    Element {
        /// What has the type.
        what: &'static str,
        /// The type.
        found: warpforge_tensor::ElementType,
    },
    /// Bytes cannot be counted.
    #[error("the sizes overflow")]
    Overflow,
}

/// Refuses a list that has not one entry for each dimension.
pub(crate) fn check_rank(what: &'static str, found: usize, wanted: usize) -> Result<(), LayoutError> {
    if found == wanted { Ok(()) } else { Err(LayoutError::Rank { what, found, wanted }) }
}
