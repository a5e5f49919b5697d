//! Why an operation cannot be planned.

use warpforge_tensor::ElementType;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The element type has no kernel.
    #[error("regions of {0} have no kernel")]
    Element(ElementType),
    /// A dimension is zero, or the sizes overflow.
    #[error("the sizes of regions or features are zero or overflow")]
    Sizes,
}
