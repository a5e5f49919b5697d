//! Prefetches and store fences.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T1, _mm_prefetch, _mm_sfence};

/// Prefetches a cache line for reading or writing; any address is allowed.
#[inline(always)]
pub(super) fn prefetch<const WRITE: bool>(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint touches nothing, and processors that do not know one ignore it.
    unsafe {
        if WRITE {
            _mm_prefetch::<_MM_HINT_ET0>(at.cast());
        } else {
            _mm_prefetch::<_MM_HINT_T1>(at.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Orders earlier non-temporal stores of this thread before later stores.
pub(crate) fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe {
        _mm_sfence();
    }
}
