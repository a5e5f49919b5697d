//! Iteration layouts: dimensions merged where all accesses allow it, and access patterns over them.

use super::domain::Access;
use super::error::FusedLoopError;

/// Minimum columns of an inner loop: dimensions are taken as columns until there are that many.
const FEW_COLUMNS: usize = 64;

/// The dimensions that a value varies with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct VariesWith {
    pub(super) rows: bool,
    pub(super) columns: bool,
}

impl VariesWith {
    /// The union.
    pub(super) fn join(self, other: Self) -> Self {
        Self { rows: self.rows || other.rows, columns: self.columns || other.columns }
    }

    /// Whether a value that varies so can be stored to a location that varies with `place`.
    pub(super) fn fits(self, place: Self) -> bool {
        (place.rows || !self.rows) && (place.columns || !self.columns)
    }
}

/// An access over the merged dimensions of a layout.
#[derive(Debug, Clone)]
pub(super) struct AccessPattern {
    pub(super) offset: isize,
    pub(super) rows: Vec<isize>,
    pub(super) columns: Vec<isize>,
    /// The row stride, if it is constant.
    pub(super) even_rows: Option<isize>,
    /// Whether columns are contiguous.
    pub(super) dense_columns: bool,
    pub(super) kind: VariesWith,
    /// The least and the largest element.
    pub(super) extent: (isize, isize),
}

/// Sizes of row and column dimensions, and the access patterns over them.
#[derive(Debug, Clone)]
pub(super) struct IterationLayout {
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<usize>,
    pub(super) row_count: usize,
    pub(super) column_count: usize,
    pub(super) patterns: Vec<AccessPattern>,
}

impl IterationLayout {
    /// The layout of accesses with the rank of the domain. Unless `apart`, rows and columns may be split anew.
    pub(super) fn new(
        rows: &[usize],
        columns: &[usize],
        accesses: &[Access],
        apart: bool,
    ) -> Result<Self, FusedLoopError> {
        let row_strides: Vec<&[isize]> = accesses.iter().map(|access| &access.rows[..]).collect();
        let column_strides: Vec<&[isize]> = accesses.iter().map(|access| &access.columns[..]).collect();
        let (rows, columns, strides) = if apart {
            let (rows, of_rows) = merged(rows, &row_strides);
            let (columns, of_columns) = merged(columns, &column_strides);
            (rows, columns, of_rows.into_iter().zip(of_columns).collect::<Vec<_>>())
        } else {
            let all: Vec<usize> = rows.iter().chain(columns).copied().collect();
            let strides: Vec<Vec<isize>> = row_strides
                .iter()
                .zip(&column_strides)
                .map(|(rows, columns)| [*rows, *columns].concat())
                .collect();
            let strides: Vec<&[isize]> = strides.iter().map(|strides| &strides[..]).collect();
            let (dims, strides) = merged(&all, &strides);
            let mut split = dims.len();
            let mut count = 1usize;
            while split > 0 && count < FEW_COLUMNS {
                split -= 1;
                count = count.saturating_mul(dims[split]);
            }
            let (rows, columns) = dims.split_at(split);
            let divided = strides.iter().map(|strides| {
                let (rows, columns) = strides.split_at(split);
                (rows.to_vec(), columns.to_vec())
            });
            (rows.to_vec(), columns.to_vec(), divided.collect())
        };
        let count = |dims: &[usize]| {
            dims.iter()
                .try_fold(1usize, |count, &size| count.checked_mul(size))
                .ok_or(FusedLoopError::TooLarge)
        };
        let (row_count, column_count) = (count(&rows)?, count(&columns)?);
        row_count
            .checked_mul(column_count)
            .and_then(|all| all.checked_mul(8))
            .ok_or(FusedLoopError::TooLarge)?;
        let patterns = accesses
            .iter()
            .zip(strides)
            .map(|(access, (of_rows, of_columns))| {
                let kind = VariesWith {
                    rows: of_rows.iter().any(|&stride| stride != 0),
                    columns: of_columns.iter().any(|&stride| stride != 0),
                };
                let even_rows = even(&rows, &of_rows);
                let dense_columns = column_count <= 1 || even(&columns, &of_columns) == Some(1);
                let extent = extent(access.offset, &rows, &of_rows)
                    .and_then(|(low, high)| {
                        let (low, high) =
                            (extent(low, &columns, &of_columns)?, extent(high, &columns, &of_columns)?);
                        Some((low.0, high.1))
                    })
                    .ok_or(FusedLoopError::TooLarge)?;
                Ok(AccessPattern {
                    offset: access.offset,
                    rows: of_rows,
                    columns: of_columns,
                    even_rows,
                    dense_columns,
                    kind,
                    extent,
                })
            })
            .collect::<Result<_, FusedLoopError>>()?;
        Ok(Self { rows, columns, row_count, column_count, patterns })
    }
}

/// Drops dimensions of size one and merges neighbours where every access allows it.
fn merged(dims: &[usize], strides: &[&[isize]]) -> (Vec<usize>, Vec<Vec<isize>>) {
    let mut sizes: Vec<usize> = Vec::with_capacity(dims.len());
    let mut merged: Vec<Vec<isize>> = vec![Vec::with_capacity(dims.len()); strides.len()];
    for (axis, &size) in dims.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let joins = |(outer, strides): (&Vec<isize>, &&[isize])| {
            let through = isize::try_from(size).ok().and_then(|size| strides[axis].checked_mul(size));
            outer.last().is_some_and(|&outer| Some(outer) == through)
        };
        match sizes.last_mut() {
            Some(last) if merged.iter().zip(strides).all(joins) && last.checked_mul(size).is_some() => {
                *last *= size;
                merged.iter_mut().for_each(|strides| {
                    strides.pop();
                });
            }
            _ => sizes.push(size),
        }
        merged.iter_mut().zip(strides).for_each(|(merged, strides)| merged.push(strides[axis]));
    }
    (sizes, merged)
}

/// The stride in row-major order, if it is constant.
fn even(dims: &[usize], strides: &[isize]) -> Option<isize> {
    let innermost = strides.last().copied().unwrap_or(0);
    let pairs = dims.windows(2).zip(strides.windows(2));
    let joined = |(dims, strides): (&[usize], &[isize])| {
        isize::try_from(dims[1]).ok().and_then(|size| strides[1].checked_mul(size)) == Some(strides[0])
    };
    pairs.into_iter().all(joined).then_some(innermost)
}

/// The minimum and maximum position, in elements of up to eight bytes, or `None` on overflow.
fn extent(start: isize, dims: &[usize], strides: &[isize]) -> Option<(isize, isize)> {
    let mut ends = (start, start);
    for (&size, &stride) in dims.iter().zip(strides) {
        let reach = isize::try_from(size.saturating_sub(1)).ok()?.checked_mul(stride)?;
        if reach < 0 {
            ends.0 = ends.0.checked_add(reach)?;
        } else {
            ends.1 = ends.1.checked_add(reach)?;
        }
    }
    ends.0.checked_mul(8)?;
    ends.1.checked_mul(8)?;
    Some(ends)
}

/// The position of an index in row-major order.
pub(super) fn position(dims: &[usize], strides: &[isize], mut index: usize) -> isize {
    let mut position = 0;
    for (&size, &stride) in dims.iter().zip(strides).rev() {
        // A dimension without positions has nothing at any.
        let size = size.max(1);
        position += (index % size) as isize * stride;
        index /= size;
    }
    position
}

/// Calls `each` for the runs along the innermost dimension that cover `count` indices from `start` on: with the number
/// of preceding indices, the position, the stride and the length.
pub(super) fn runs(
    dims: &[usize],
    strides: &[isize],
    start: usize,
    count: usize,
    mut each: impl FnMut(usize, isize, isize, usize),
) {
    let (Some(&inner), Some(&stride)) = (dims.last(), strides.last()) else {
        if count > 0 {
            each(0, 0, 0, count);
        }
        return;
    };
    // A value that does not vary with columns exists even without columns.
    let inner = inner.max(1);
    let mut done = 0;
    while done < count {
        let index = start + done;
        let length = (inner - index % inner).min(count - done);
        each(done, position(dims, strides, index), stride, length);
        done += length;
    }
}

/// The size of balanced parts of `count`, at most `most` and multiples of a cache line.
pub(super) fn balanced_part(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).next_multiple_of(64).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(rows: &[isize], columns: &[isize]) -> Access {
        Access { offset: 0, rows: rows.to_vec(), columns: columns.to_vec() }
    }

    #[test]
    fn dimensions_merge_where_all_accesses_allow_it() {
        let dense = access(&[240, 60, 20], &[5, 1]);
        let layout = IterationLayout::new(&[2, 4, 3], &[4, 5], std::slice::from_ref(&dense), false).unwrap();
        assert_eq!((layout.rows.len(), &layout.columns[..]), (0, &[480][..]));
        let mask = access(&[60, 0, 20], &[5, 1]);
        let layout = IterationLayout::new(&[2, 4, 3], &[4, 5], &[dense, mask], true).unwrap();
        assert_eq!((&layout.rows[..], &layout.columns[..]), (&[2, 4, 3][..], &[20][..]));
        assert_eq!(layout.patterns[0].even_rows, Some(20));
        assert_eq!(layout.patterns[1].even_rows, None);
        assert!(layout.patterns.iter().all(|pattern| pattern.dense_columns));
    }

    #[test]
    fn runs_cover_the_indices_in_order() {
        let (dims, strides) = ([3, 4], [100, -7]);
        let mut seen = Vec::new();
        runs(&dims, &strides, 2, 8, |before, at, stride, length| {
            assert_eq!(before, seen.len());
            seen.extend((0..length as isize).map(|index| at + index * stride));
        });
        let expected: Vec<isize> = (2..10).map(|index| position(&dims, &strides, index)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn overflowing_sizes_are_rejected() {
        let huge = IterationLayout::new(&[usize::MAX, 2], &[3], &[], true);
        assert_eq!(huge.unwrap_err(), FusedLoopError::TooLarge);
        let far = access(&[isize::MAX], &[1]);
        assert_eq!(IterationLayout::new(&[4], &[3], &[far], true).unwrap_err(), FusedLoopError::TooLarge);
    }
}
