//! Copies of regions of operands, element by element, in the order of the packed copy.

use super::convert::Convert;
use crate::isa::Isa;

/// A region of an operand and its packed copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackRegion {
    /// The first element; a row of the region is contiguous in the packed copy.
    pub(crate) source: *const u8,
    /// Row stride, in elements.
    pub(crate) row_stride: usize,
    /// Column stride, in elements.
    pub(crate) column_stride: usize,
    /// Rows to copy.
    pub(crate) rows: usize,
    /// Columns to copy.
    pub(crate) columns: usize,
    /// Rows to write: those beyond `rows` are zero.
    pub(crate) rows_written: usize,
    /// Columns to write: those beyond `columns` are zero.
    pub(crate) columns_written: usize,
    /// Row of the target that is the first row of the region.
    pub(crate) first_row: usize,
    /// Rows that are interleaved for each column.
    pub(crate) group: usize,
    /// The packed copy.
    pub(crate) target: *mut u8,
    /// Stride of groups of interleaved rows in the copy, in elements.
    pub(crate) target_stride: usize,
}

/// A packing function.
///
/// # Safety
///
/// The pointers of the region are valid, and nothing else uses the target.
pub(crate) type PackFn = unsafe fn(&PackRegion);

/// The copy compiled for an instruction set.
pub(super) fn for_isa<S: std::marker::Copy, T: Convert<S>>(isa: Isa) -> PackFn {
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512 => return copy_avx512::<S, T>,
        Isa::Avx2 => return copy_avx2::<S, T>,
        Isa::Portable => {}
    }
    copy::<S, T>
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn copy_avx512<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy::<S, T>(region) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn copy_avx2<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy::<S, T>(region) }
}

/// The copy loops; the innermost one is over contiguous source elements where there are any.
#[inline(always)]
unsafe fn copy<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (region.group, region.column_stride, region.row_stride) {
            (1, 1, _) => copy_contiguous_rows::<S, T>(region),
            (2, 1, _) if region.first_row.is_multiple_of(2) => copy_interleaved_rows::<S, T, 2>(region),
            (4, 1, _) if region.first_row.is_multiple_of(4) => copy_interleaved_rows::<S, T, 4>(region),
            // A known number of interleaved rows takes no divisions.
            (1, _, 1) => copy_contiguous_columns::<S, T>(&PackRegion { group: 1, ..*region }),
            (_, _, 1) => copy_contiguous_columns::<S, T>(region),
            _ => copy_strided::<S, T>(region),
        }
        zero_padding::<S, T>(region);
    }
}

#[inline(always)]
unsafe fn copy_contiguous_rows<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    let (source, target) = (region.source.cast::<S>(), region.target.cast::<T>());
    for row in 0..region.rows {
        // SAFETY: the row has that many elements in the source and space for them in the target, which do not overlap.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(source.add(row * region.row_stride), region.columns),
                std::slice::from_raw_parts_mut(
                    target.add((region.first_row + row) * region.target_stride),
                    region.columns,
                ),
            )
        };
        for (to, from) in to.iter_mut().zip(from) {
            *to = T::convert(*from);
        }
    }
}

/// Interleaves rows; rows missing from the last group are zero.
#[inline(always)]
unsafe fn copy_interleaved_rows<S: std::marker::Copy, T: Convert<S>, const GROUP: usize>(
    region: &PackRegion,
) {
    let source = region.source.cast::<S>();
    for row in (0..region.rows).step_by(GROUP) {
        // SAFETY: the rows have that many elements in the source and in the target, which do not overlap. A missing row
        // is not read: the pointer of the last row stands in for it.
        let (rows, to) = unsafe {
            let rows: [&[S]; GROUP] = std::array::from_fn(|at| {
                let from = source.add((row + at).min(region.rows - 1) * region.row_stride);
                std::slice::from_raw_parts(from, region.columns)
            });
            let to = region.target.cast::<[T; GROUP]>();
            let to = to.add((region.first_row + row) / GROUP * (region.target_stride / GROUP));
            (rows, std::slice::from_raw_parts_mut(to, region.columns))
        };
        let present = GROUP.min(region.rows - row);
        for (column, to) in to.iter_mut().enumerate() {
            *to = std::array::from_fn(|at| if at < present { T::convert(rows[at][column]) } else { T::ZERO });
        }
    }
}

/// Elements of a column that are copied before the next column: a cache line of f32.
const COLUMN_RUN: usize = 16;

#[inline(always)]
unsafe fn copy_contiguous_columns<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    let mut first = 0;
    while first < region.rows {
        let end = (first + COLUMN_RUN).min(region.rows);
        for column in 0..region.columns {
            for row in first..end {
                // SAFETY: guaranteed by the caller for each row and column.
                unsafe { element::<S, T>(region, row, column) };
            }
        }
        first = end;
    }
}

#[inline(always)]
unsafe fn copy_strided<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    for row in 0..region.rows {
        for column in 0..region.columns {
            // SAFETY: guaranteed by the caller for each row and column.
            unsafe { element::<S, T>(region, row, column) };
        }
    }
}

#[inline(always)]
unsafe fn element<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion, row: usize, column: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let from = region.source.cast::<S>().add(row * region.row_stride + column * region.column_stride);
        target_of::<T>(region, row, column).write(T::convert(*from));
    }
}

/// The target of an element.
#[inline(always)]
unsafe fn target_of<T>(region: &PackRegion, row: usize, column: usize) -> *mut T {
    let row = region.first_row + row;
    let at = row / region.group * region.target_stride + column * region.group + row % region.group;
    // SAFETY: guaranteed by the caller.
    unsafe { region.target.cast::<T>().add(at) }
}

#[inline(always)]
pub(super) unsafe fn zero_padding<S: std::marker::Copy, T: Convert<S>>(region: &PackRegion) {
    let missing = |row: usize| if row < region.rows { region.columns } else { 0 };
    if region.rows == region.rows_written && region.columns == region.columns_written {
        return;
    }
    for row in 0..region.rows_written {
        for column in missing(row)..region.columns_written {
            // SAFETY: guaranteed by the caller for each row and column that is to be written.
            unsafe { target_of::<T>(region, row, column).write(T::ZERO) };
        }
    }
}
