//! Prefetches of single cache lines. Any address is allowed.

// Instructions of the processor.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

/// Prefetches into the L1 cache.
#[inline(always)]
pub(crate) fn prefetch_l1(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction, and it ignores invalid addresses.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches into the L2 cache.
#[inline(always)]
pub(crate) fn prefetch_l2(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches for writing.
#[inline(always)]
pub(crate) fn prefetch_for_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above; processors that do not know the hint ignore it.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
