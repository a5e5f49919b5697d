//! Asking for memory before it is needed, and waiting for what was written past the caches.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T1, _mm_prefetch, _mm_sfence};

/// Asks for the cache line of an address, which need not be a valid one, to be read or to be written.
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

/// Makes what this thread wrote past the caches visible before anything that it writes later.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        _mm_sfence();
    }
}
