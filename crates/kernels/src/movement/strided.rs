//! The two inner loops of a copy: runs of bytes, and single elements.

use super::nest::Loop;

/// Fewer columns than this are not worth a loop inside that over rows.
const FEW: usize = 8;

/// Copies `rows` runs of `length` bytes.
///
/// # Safety
///
/// All runs may be read and written, and none overlaps another on the target's side or on the other side.
pub(super) unsafe fn runs(rows: Loop, length: usize, source: *const u8, target: *mut u8) {
    // SAFETY: the caller vouches for every run.
    let each = |copy: unsafe fn(*const u8, *mut u8, usize)| unsafe {
        for row in 0..rows.size as isize {
            copy(source.offset(row * rows.source), target.offset(row * rows.target), length);
        }
    };
    match length {
        17..=32 => each(overlapping::<16>),
        9..=15 => each(overlapping::<8>),
        5..=7 => each(overlapping::<4>),
        3 => each(overlapping::<2>),
        _ => each(long),
    }
}

/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn long(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(source, target, length) }
}

/// Copies from `N` to `2 N` bytes as the first and the last `N`.
///
/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`], with a length in those bounds.
#[inline(always)]
unsafe fn overlapping<const N: usize>(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: both halves lie inside the run.
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
pub(super) unsafe fn elements(size: usize, rows: Loop, columns: Loop, source: *const u8, target: *mut u8) {
    // Few columns are done one after the other.
    let few = columns.size < FEW && columns.size < rows.size;
    let (rows, columns) = if few { (columns, rows) } else { (rows, columns) };
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => typed::<u8>(rows, columns, source, target),
            2 => typed::<u16>(rows, columns, source, target),
            4 => typed::<u32>(rows, columns, source, target),
            8 => typed::<u64>(rows, columns, source, target),
            _ => typed::<u128>(rows, columns, source, target),
        }
    }
}

/// # Safety
///
/// As for [`elements`].
unsafe fn typed<T: Copy>(rows: Loop, columns: Loop, source: *const u8, target: *mut u8) {
    let size = size_of::<T>() as isize;
    for row in 0..rows.size as isize {
        // SAFETY: the caller vouches for every element.
        unsafe {
            let (from, to) = (source.offset(row * rows.source), target.offset(row * rows.target));
            // The steps of repeating, reversing and taking every second one are known to the compiler.
            match (columns.source, columns.target) {
                (0, step) if step == size => row_of::<T>(columns.size, from, 0, to, size),
                (step, other) if step == -size && other == size => {
                    row_of::<T>(columns.size, from, -size, to, size);
                }
                (step, other) if step == 2 * size && other == size => {
                    row_of::<T>(columns.size, from, 2 * size, to, size);
                }
                (step, other) if other == size => row_of::<T>(columns.size, from, step, to, size),
                (step, other) => row_of::<T>(columns.size, from, step, to, other),
            }
        }
    }
}

/// # Safety
///
/// As for [`elements`].
#[inline(always)]
unsafe fn row_of<T: Copy>(count: usize, source: *const u8, from: isize, target: *mut u8, to: isize) {
    for column in 0..count as isize {
        // SAFETY: the caller vouches for every element.
        unsafe {
            let value = source.offset(column * from).cast::<T>().read_unaligned();
            target.offset(column * to).cast::<T>().write_unaligned(value);
        }
    }
}
