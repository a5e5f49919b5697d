//! What becomes of two elements, and so of many.

/// A computation of two elements of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Their sum, 0 of none; of integers modulo their range, of truth values whether one holds.
    Sum,
    /// Their product, 1 of none; of integers modulo their range, of truth values whether both hold.
    Product,
    /// The larger; NaN wins, and a positive zero is larger than a negative one. The least of the type of none.
    Maximum,
    /// The smaller; NaN wins, and a negative zero is smaller than a positive one. The largest of the type of none.
    Minimum,
    /// The bits that both have; integers and truth values only.
    And,
    /// The bits that one has; integers and truth values only.
    Or,
}

impl Fold {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Sum, Self::Product, Self::Maximum, Self::Minimum, Self::And, Self::Or];

    /// Whether folding the same element in once more changes nothing.
    pub(crate) fn is_idempotent(self) -> bool {
        matches!(self, Self::Maximum | Self::Minimum | Self::And | Self::Or)
    }

    /// The same for truth values that are bytes of 0 and 1.
    pub(crate) fn of_truths(self) -> Self {
        match self {
            Self::Sum | Self::Maximum | Self::Or => Self::Or,
            Self::Product | Self::Minimum | Self::And => Self::And,
        }
    }
}
