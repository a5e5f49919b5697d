//! Copies of operands into the arrangement that kernels read: panels for the right one, whole rows for the left one.

use half::{bf16, f16};
use warpforge_tensor::ElementType;

use super::convert::{Convert, Rounded};
use super::packed::Format;
#[cfg(target_arch = "x86_64")]
use super::pairs;
use crate::isa::Isa;
use crate::movement::{Loop, Tile};

/// A part of an operand and where it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Where the part begins; a row of it is what lies side by side in the packed copy.
    pub(crate) source: *const u8,
    /// From one row of the part to the next, in elements.
    pub(crate) row_stride: usize,
    /// From one column of the part to the next, in elements.
    pub(crate) column_stride: usize,
    /// Rows to copy.
    pub(crate) rows: usize,
    /// Columns to copy.
    pub(crate) columns: usize,
    /// Rows to write: those without a source are zero.
    pub(crate) rows_written: usize,
    /// Columns to write: those without a source are zero.
    pub(crate) columns_written: usize,
    /// Rows of the target before the part's first one.
    pub(crate) first_row: usize,
    /// Rows that lie side by side for each column.
    pub(crate) group: usize,
    /// Where the copy goes.
    pub(crate) target: *mut u8,
    /// From one group of rows of the copy to the next, in elements.
    pub(crate) target_stride: usize,
}

/// A function that copies a part.
///
/// # Safety
///
/// The part's addresses are good for what it says, and nobody else uses the target.
pub(crate) type Copy = unsafe fn(&Part);

/// The function that makes elements of `format` from ones of type `element`; none where products take no such elements.
pub(crate) fn copier(format: Format, element: ElementType, isa: Isa) -> Option<Copy> {
    Some(match (format, element) {
        (Format::F32, ElementType::F32) => match isa {
            Isa::Avx512 => turned,
            _ => compiled::<f32, f32>(isa),
        },
        (Format::F32, ElementType::BF16) => compiled::<bf16, f32>(isa),
        (Format::F32, ElementType::F16) => compiled::<f16, f32>(isa),
        (Format::F64, ElementType::F64) => compiled::<f64, f64>(isa),
        (Format::Rounded, ElementType::F32) => compiled::<f32, Rounded>(isa),
        (Format::Rounded, ElementType::BF16) => compiled::<bf16, Rounded>(isa),
        (Format::Rounded, ElementType::F16) => compiled::<f16, Rounded>(isa),
        // Only machines with instructions for bf16 have such operands.
        #[cfg(target_arch = "x86_64")]
        (Format::Bf16, ElementType::F32) if isa == Isa::Avx512 => pairs::rounded,
        #[cfg(target_arch = "x86_64")]
        (Format::Bf16, ElementType::BF16) if isa == Isa::Avx512 => pairs::same,
        (Format::Bf16, ElementType::F32) => compiled::<f32, bf16>(isa),
        (Format::Bf16, ElementType::BF16) => compiled::<bf16, bf16>(isa),
        (Format::Bf16, ElementType::F16) => compiled::<f16, bf16>(isa),
        (Format::I8, ElementType::I8) => compiled::<i8, i8>(isa),
        (Format::Widened, ElementType::I8) => compiled::<i8, i32>(isa),
        _ => return None,
    })
}

/// The copy compiled for these instructions.
fn compiled<S: std::marker::Copy, T: Convert<S>>(isa: Isa) -> Copy {
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
pub(super) unsafe fn copy_avx512<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    // SAFETY: as the caller promises.
    unsafe { copy::<S, T>(part) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn copy_avx2<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    // SAFETY: as the caller promises.
    unsafe { copy::<S, T>(part) }
}

/// A copy of f32 as they are, by AVX-512: where what lies side by side in the source is apart in the copy, squares of them
/// are turned in registers.
unsafe fn turned(part: &Part) {
    // SAFETY: as the caller promises, who has AVX-512; the part's elements are those of the block.
    unsafe {
        if part.group != 1 || part.row_stride != 1 || part.column_stride == 1 {
            return compiled::<f32, f32>(Isa::Avx512)(part);
        }
        const SIZE: usize = size_of::<f32>();
        let bytes = |elements: usize| (elements * SIZE) as isize;
        let rows = Loop { size: part.rows, source: bytes(1), target: bytes(part.target_stride) };
        let columns = Loop { size: part.columns, source: bytes(part.column_stride), target: bytes(1) };
        let target = part.target.add(part.first_row * part.target_stride * SIZE);
        Tile::best(SIZE).block(SIZE, (rows, columns), part.source, target, false);
        zero_the_rest::<f32, f32>(part);
    }
}

/// The loops of a copy, with the innermost one over what lies side by side in the source where anything does.
#[inline(always)]
unsafe fn copy<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    // SAFETY: as the caller promises.
    unsafe {
        match (part.group, part.column_stride, part.row_stride) {
            (1, 1, _) => rows_side_by_side::<S, T>(part),
            (2, 1, _) if part.first_row.is_multiple_of(2) => rows_interleaved::<S, T, 2>(part),
            (4, 1, _) if part.first_row.is_multiple_of(4) => rows_interleaved::<S, T, 4>(part),
            (_, _, 1) => columns_side_by_side::<S, T>(part),
            _ => scattered::<S, T>(part),
        }
        zero_the_rest::<S, T>(part);
    }
}

#[inline(always)]
unsafe fn rows_side_by_side<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    let (source, target) = (part.source.cast::<S>(), part.target.cast::<T>());
    for row in 0..part.rows {
        // SAFETY: the row has so many elements in the source and room for them in the target, which do not overlap.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(source.add(row * part.row_stride), part.columns),
                std::slice::from_raw_parts_mut(
                    target.add((part.first_row + row) * part.target_stride),
                    part.columns,
                ),
            )
        };
        for (to, from) in to.iter_mut().zip(from) {
            *to = T::convert(*from);
        }
    }
}

/// Rows that go side by side for each column; rows that are missing from the last group are zero.
#[inline(always)]
unsafe fn rows_interleaved<S: std::marker::Copy, T: Convert<S>, const GROUP: usize>(part: &Part) {
    let source = part.source.cast::<S>();
    for row in (0..part.rows).step_by(GROUP) {
        // SAFETY: the rows have so many elements in the source and room for them in the target, which do not overlap.
        // A missing row is not read: the address of the last one stands in for it.
        let (rows, to) = unsafe {
            let rows: [&[S]; GROUP] = std::array::from_fn(|at| {
                let from = source.add((row + at).min(part.rows - 1) * part.row_stride);
                std::slice::from_raw_parts(from, part.columns)
            });
            let to = part.target.cast::<[T; GROUP]>();
            let to = to.add((part.first_row + row) / GROUP * (part.target_stride / GROUP));
            (rows, std::slice::from_raw_parts_mut(to, part.columns))
        };
        let present = GROUP.min(part.rows - row);
        for (column, to) in to.iter_mut().enumerate() {
            *to = std::array::from_fn(|at| if at < present { T::convert(rows[at][column]) } else { T::ZERO });
        }
    }
}

/// How many elements of a column are copied before the next column's: a line of cache of f32.
const SIDE_BY_SIDE: usize = 16;

#[inline(always)]
unsafe fn columns_side_by_side<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    let mut first = 0;
    while first < part.rows {
        let end = (first + SIDE_BY_SIDE).min(part.rows);
        for column in 0..part.columns {
            for row in first..end {
                // SAFETY: as the caller promises for each row and column.
                unsafe { element::<S, T>(part, row, column) };
            }
        }
        first = end;
    }
}

#[inline(always)]
unsafe fn scattered<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    for row in 0..part.rows {
        for column in 0..part.columns {
            // SAFETY: as the caller promises for each row and column.
            unsafe { element::<S, T>(part, row, column) };
        }
    }
}

#[inline(always)]
unsafe fn element<S: std::marker::Copy, T: Convert<S>>(part: &Part, row: usize, column: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        let from = part.source.cast::<S>().add(row * part.row_stride + column * part.column_stride);
        place::<T>(part, row, column).write(T::convert(*from));
    }
}

/// Where an element of the copy goes.
#[inline(always)]
unsafe fn place<T>(part: &Part, row: usize, column: usize) -> *mut T {
    let row = part.first_row + row;
    let at = row / part.group * part.target_stride + column * part.group + row % part.group;
    // SAFETY: as the caller promises.
    unsafe { part.target.cast::<T>().add(at) }
}

#[inline(always)]
pub(super) unsafe fn zero_the_rest<S: std::marker::Copy, T: Convert<S>>(part: &Part) {
    let missing = |row: usize| if row < part.rows { part.columns } else { 0 };
    if part.rows == part.rows_written && part.columns == part.columns_written {
        return;
    }
    for row in 0..part.rows_written {
        for column in missing(row)..part.columns_written {
            // SAFETY: as the caller promises for each row and column that is to be written.
            unsafe { place::<T>(part, row, column).write(T::ZERO) };
        }
    }
}
