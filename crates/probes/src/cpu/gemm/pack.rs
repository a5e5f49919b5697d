//! Copies matrices into panels, in the order in which a kernel reads them.
//!
//! A panel of the left matrix holds `ROWS` of its rows: group by group of `LEFT_GROUP` columns, row by row, column by
//! column. A panel of the right matrix holds `COLUMNS` of its columns: group by group of `RIGHT_GROUP` rows, column by
//! column, row by row. What lies outside of the matrix is zero, so that kernels know only whole tiles.

use super::kernel::MicroKernel;

/// Columns of the left matrix copied at a time: few enough for their part of the panel to stay in the L1 cache.
const STRIP: usize = 64;

/// Fills a panel with the rows of a `k` columns wide matrix from `first_row` on.
pub(super) fn left<K: MicroKernel>(panel: &mut [K::Input], matrix: &[K::Input], first_row: usize, k: usize) {
    let (rows, group) = (K::ROWS, K::LEFT_GROUP);
    if matrix.len() < (first_row + rows) * k || !k.is_multiple_of(group) {
        panel.fill(K::Input::default());
    }
    for strip in (0..k).step_by(STRIP.max(group)) {
        let width = STRIP.max(group).min(k - strip);
        let panel = &mut panel[strip * rows..];
        for (at, row) in matrix.chunks_exact(k).skip(first_row).take(rows).enumerate() {
            for (groups, elements) in row[strip..strip + width].chunks(group).enumerate() {
                let start = (groups * rows + at) * group;
                panel[start..start + elements.len()].copy_from_slice(elements);
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
    let (columns, group) = (K::COLUMNS, K::RIGHT_GROUP);
    let width = columns.min(n - first_column);
    if width < columns || panel.len() > matrix.len() / n * columns {
        panel.fill(K::Input::default());
    }
    for (rows, part) in matrix.chunks(n * group).zip(panel.chunks_exact_mut(columns * group)) {
        for (within, row) in rows.chunks_exact(n).enumerate() {
            let row = &row[first_column..first_column + width];
            if group == 1 {
                part[..width].copy_from_slice(row);
            } else {
                for (column, &element) in row.iter().enumerate() {
                    part[column * group + within] = element;
                }
            }
        }
    }
}
