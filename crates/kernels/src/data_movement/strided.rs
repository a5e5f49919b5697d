//! Inner loops of copies: runs of bytes, and strided elements.

use super::strided_loop::StridedLoop;

/// Fewer columns than this are not worth an inner loop.
const FEW_COLUMNS: usize = 8;

/// Copies `rows` runs of `length` bytes.
///
/// # Safety
///
/// All runs may be read and written, and none overlaps another on the target's side or on the other side.
pub(super) unsafe fn runs(rows: StridedLoop, length: usize, source: *const u8, target: *mut u8) {
    // SAFETY: the caller guarantees every run.
    let each = |copy: unsafe fn(*const u8, *mut u8, usize)| unsafe {
        for row in 0..rows.size as isize {
            copy(source.offset(row * rows.source), target.offset(row * rows.target), length);
        }
    };
    match length {
        17..=32 => each(two_overlapping::<16>),
        9..=15 => each(two_overlapping::<8>),
        5..=7 => each(two_overlapping::<4>),
        3 => each(two_overlapping::<2>),
        _ => each(memcpy),
    }
}

/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn memcpy(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(source, target, length) }
}

/// Copies from `N` to `2 N` bytes as the first and the last `N`.
///
/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`], with a length in those bounds.
#[inline(always)]
unsafe fn two_overlapping<const N: usize>(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: both halves are inside the run.
    unsafe {
        let last = source.add(length - N).cast::<[u8; N]>().read_unaligned();
        target.cast::<[u8; N]>().write_unaligned(source.cast::<[u8; N]>().read_unaligned());
        target.add(length - N).cast::<[u8; N]>().write_unaligned(last);
    }
}

/// Copies rows of columns of elements of 1, 2, 4, 8 or 16 bytes.
///
/// # Safety
///
/// All elements may be read and written, and none of the target's is one of the source's.
pub(crate) unsafe fn elements(
    size: usize,
    rows: StridedLoop,
    columns: StridedLoop,
    source: *const u8,
    target: *mut u8,
) {
    // With few columns, the loop over rows is the inner one.
    let few = columns.size < FEW_COLUMNS && columns.size < rows.size;
    let (rows, columns) = if few { (columns, rows) } else { (rows, columns) };
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            1 => copy_typed::<u8>(rows, columns, source, target),
            2 => copy_typed::<u16>(rows, columns, source, target),
            4 => copy_typed::<u32>(rows, columns, source, target),
            8 => copy_typed::<u64>(rows, columns, source, target),
            _ => copy_typed::<u128>(rows, columns, source, target),
        }
    }
}

/// # Safety
///
/// As for [`elements`].
unsafe fn copy_typed<T: Copy>(rows: StridedLoop, columns: StridedLoop, source: *const u8, target: *mut u8) {
    let size = size_of::<T>() as isize;
    for row in 0..rows.size as isize {
        // SAFETY: the caller guarantees every element.
        unsafe {
            let (from, to) = (source.offset(row * rows.source), target.offset(row * rows.target));
            // Constant strides of broadcasts, reversals and every second element let the compiler vectorize.
            match (columns.source, columns.target) {
                (0, step) if step == size => copy_row::<T>(columns.size, from, 0, to, size),
                (step, other) if step == -size && other == size => {
                    copy_row::<T>(columns.size, from, -size, to, size);
                }
                (step, other) if step == 2 * size && other == size => {
                    copy_row::<T>(columns.size, from, 2 * size, to, size);
                }
                (step, other) if other == size => copy_row::<T>(columns.size, from, step, to, size),
                (step, other) => copy_row::<T>(columns.size, from, step, to, other),
            }
        }
    }
}

/// # Safety
///
/// As for [`elements`].
#[inline(always)]
unsafe fn copy_row<T: Copy>(count: usize, source: *const u8, from: isize, target: *mut u8, to: isize) {
    for column in 0..count as isize {
        // SAFETY: the caller guarantees every element.
        unsafe {
            let value = source.offset(column * from).cast::<T>().read_unaligned();
            target.offset(column * to).cast::<T>().write_unaligned(value);
        }
    }
}
