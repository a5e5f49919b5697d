//! What becomes of two elements.

/// A computation of two elements of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Their sum; of integers modulo their range, of truth values whether one holds.
    Sum,
    /// Their product; of integers modulo their range, of truth values whether both hold.
    Product,
    /// The larger; NaN wins, and a positive zero is larger than a negative one.
    Largest,
    /// The smaller; NaN wins, and a negative zero is smaller than a positive one.
    Smallest,
    /// The bits that both have; integers and truth values only.
    And,
    /// The bits that one has; integers and truth values only.
    Or,
}

impl Fold {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Sum, Self::Product, Self::Largest, Self::Smallest, Self::And, Self::Or];

    /// Whether folding the same element in once more changes nothing.
    pub(super) fn is_idempotent(self) -> bool {
        matches!(self, Self::Largest | Self::Smallest | Self::And | Self::Or)
    }

    /// The same for truth values that are bytes of 0 and 1.
    pub(crate) fn of_truths(self) -> Self {
        match self {
            Self::Sum | Self::Largest | Self::Or => Self::Or,
            Self::Product | Self::Smallest | Self::And => Self::And,
        }
    }
}
