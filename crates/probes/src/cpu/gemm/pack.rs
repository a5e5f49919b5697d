//! Copies matrices into panels, in the order in which a kernel reads them.
//!
//! A panel of the left matrix holds `ROWS` of its rows: group by group of `LEFT_GROUP` columns, row by row, column by
//! column. A panel of the right matrix holds `COLUMNS` of its columns: group by group of `RIGHT_GROUP` rows, column by
//! column, row by row. What lies outside of the matrix is zero, so that kernels know only whole tiles.

use super::kernel::MicroKernel;

/// Fills a panel with the columns `from` up to `to` of so many rows of a `k` columns wide matrix, which may be fewer
/// than a panel has.
pub(super) fn left<K: MicroKernel>(
    panel: &mut [K::Input],
    rows: &[K::Input],
    k: usize,
    from: usize,
    to: usize,
) {
    let group = K::LEFT_GROUP;
    if rows.len() < K::ROWS * k || !(to - from).is_multiple_of(group) {
        panel.fill(K::Input::default());
    }
    for (at, row) in rows.chunks_exact(k).take(K::ROWS).enumerate() {
        let places = panel[at * group..].chunks_mut(K::ROWS * group);
        for (place, elements) in places.zip(row[from..to].chunks(group)) {
            if elements.len() == group {
                // Of a length known when this is compiled.
                place[..group].copy_from_slice(elements);
            } else {
                place[..elements.len()].copy_from_slice(elements);
            }
        }
    }
}

/// Fills a panel with the columns of an `n` columns wide matrix from `first_column` on.
pub(super) fn right<K: MicroKernel>(
    panel: &mut [K::Input],
    matrix: &[K::Input],
    first_column: usize,
    n: usize,
) {
    match K::RIGHT_GROUP {
        2 => interleave::<K::Input, 2>(panel, K::COLUMNS, matrix, first_column, n),
        4 => interleave::<K::Input, 4>(panel, K::COLUMNS, matrix, first_column, n),
        group => {
            assert_eq!(group, 1, "no way to pack groups of {group} rows");
            interleave::<K::Input, 1>(panel, K::COLUMNS, matrix, first_column, n);
        }
    }
}

/// Fills a panel of so many columns with groups of `GROUP` rows, column by column.
#[inline(always)] // so that `columns`, and with it the length of every copy, is known when it is compiled
fn interleave<T: Copy + Default, const GROUP: usize>(
    panel: &mut [T],
    columns: usize,
    matrix: &[T],
    first_column: usize,
    n: usize,
) {
    let width = columns.min(n - first_column);
    let k = matrix.len() / n;
    if width < columns || panel.len() > k * columns {
        panel.fill(T::default());
    }
    for (rows, part) in matrix.chunks(n * GROUP).zip(panel.chunks_exact_mut(columns * GROUP)) {
        let (part, _) = part.as_chunks_mut::<GROUP>();
        if width == columns && rows.len() == n * GROUP {
            let rows: [&[T]; GROUP] = std::array::from_fn(|at| &rows[at * n + first_column..][..columns]);
            for (column, place) in part[..columns].iter_mut().enumerate() {
                *place = rows.map(|row| row[column]);
            }
        } else {
            for (at, row) in rows.chunks_exact(n).enumerate() {
                for (place, &element) in part.iter_mut().zip(&row[first_column..first_column + width]) {
                    place[at] = element;
                }
            }
        }
    }
}
