//! Reduction operators, and their loops over arrays.

mod element;
mod lanes;

pub(crate) use element::{ReduceElement, for_element};
pub(crate) use lanes::{MAX_SCAN_LANES, ReduceLanes, Scan, ScanRows, reduce_lanes, scan};

/// The operator of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum, identity 0; wraps for integers, logical or for booleans.
    Sum,
    /// The product, identity 1; wraps for integers, logical and for booleans.
    Product,
    /// The maximum; propagates NaN, +0 is larger than -0. Identity: the least value of the type.
    Maximum,
    /// The minimum; propagates NaN, -0 is smaller than +0. Identity: the largest value of the type.
    Minimum,
    /// Bitwise and; integers and booleans only.
    And,
    /// Bitwise or; integers and booleans only.
    Or,
}

impl ReduceOp {
    /// Every operator.
    pub const ALL: [Self; 6] = [Self::Sum, Self::Product, Self::Maximum, Self::Minimum, Self::And, Self::Or];

    /// Whether reducing the same element twice changes nothing.
    pub(crate) fn is_idempotent(self) -> bool {
        matches!(self, Self::Maximum | Self::Minimum | Self::And | Self::Or)
    }

    /// The equivalent operator on booleans that are bytes of 0 and 1.
    pub(crate) fn for_bool(self) -> Self {
        match self {
            Self::Sum | Self::Maximum | Self::Or => Self::Or,
            Self::Product | Self::Minimum | Self::And => Self::And,
        }
    }
}
