//! Copies with non-temporal stores.

/// A cache line.
const LINE: usize = 64;

/// Copies rows of `bytes` bytes; whole aligned cache lines are written with non-temporal stores.
///
/// # Safety
///
/// Both have that many rows, and nothing else uses the target during the call.
pub(crate) unsafe fn copy_nontemporal(
    from: *const u8,
    from_stride: usize,
    to: *mut u8,
    to_stride: usize,
    rows: usize,
    bytes: usize,
) {
    let aligned = to.addr().is_multiple_of(LINE) && to_stride.is_multiple_of(LINE);
    let lines = if aligned { bytes / LINE } else { 0 };
    for row in 0..rows {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (from, to) = (from.add(row * from_stride), to.add(row * to_stride));
            for line in 0..lines {
                copy_line(from.add(line * LINE), to.add(line * LINE));
            }
            let done = lines * LINE;
            to.add(done).copy_from_nonoverlapping(from.add(done), bytes - done);
        }
    }
    store_fence();
}

/// Orders earlier non-temporal stores of this thread before later stores.
pub(crate) fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies a cache line with non-temporal stores.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_line(from: *const u8, to: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    // SAFETY: all x86-64 CPUs have the instructions; the target begins with a line.
    unsafe {
        let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
        for part in 0..LINE / size_of::<__m128i>() {
            _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part)));
        }
    }
}

/// Copies a line.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn copy_line(from: *const u8, to: *mut u8) {
    // SAFETY: guaranteed by the caller.
    unsafe { to.copy_from_nonoverlapping(from, LINE) }
}
