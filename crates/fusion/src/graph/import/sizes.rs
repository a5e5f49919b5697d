//! Lists of attributes as sizes and offsets.

/// Sizes; none where one is negative.
pub(super) fn sizes(values: &[i64]) -> Option<Vec<usize>> {
    values.iter().map(|&value| usize::try_from(value).ok()).collect()
}

/// Offsets of either sign.
pub(super) fn signed(values: &[i64]) -> Vec<isize> {
    values.iter().map(|&value| value as isize).collect()
}
