//! Vectors of doubles: what the kernels need of each instruction set.

#![allow(unsafe_code)]

/// A register of doubles.
///
/// # Safety
/// Every method may be called only where the processor has the instructions of the implementing type. They are inlined
/// into functions compiled for those.
pub(super) trait Vector: Copy {
    /// Doubles in it.
    const LANES: usize;

    /// All lanes the same.
    unsafe fn splat(value: f64) -> Self;
    /// From any address of `LANES` readable doubles.
    unsafe fn load(from: *const f64) -> Self;
    /// To any address of `LANES` writable doubles.
    unsafe fn store(self, to: *mut f64);
    /// To `LANES` writable doubles, non-temporally if there is a way; the address is aligned to the vector's size.
    unsafe fn store_nontemporal(self, to: *mut f64);
    /// The sum.
    unsafe fn add(self, other: Self) -> Self;
    /// The product.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor + addend`.
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self;
}

/// No vector instructions written out; the compiler makes what it can of it.
impl Vector for f64 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        value
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the caller passes the address of a readable double.
        unsafe { from.read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller passes the address of a writable double.
        unsafe { to.write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn store_nontemporal(self, to: *mut f64) {
        // SAFETY: as for `store`.
        unsafe { self.store(to) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self * other
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        self * factor + addend
    }
}

/// Implements [`Vector`] by intrinsics, named in the order of the trait.
macro_rules! by_intrinsics {
    ($vector:ty, $lanes:literal, $($arch:ident)::+,
     $splat:ident, $load:ident, $store:ident, $past:ident, $add:ident, $mul:ident, $mul_add:expr) => {
        impl Vector for $vector {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: f64) -> Self {
                // SAFETY: the caller has made sure of the instruction set.
                unsafe { $($arch)::+::$splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const f64) -> Self {
                // SAFETY: the caller has made sure of the instruction set and the address.
                unsafe { $($arch)::+::$load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f64) {
                // SAFETY: the caller has made sure of the instruction set and the address.
                unsafe { $($arch)::+::$store(to, self) }
            }
            #[inline(always)]
            unsafe fn store_nontemporal(self, to: *mut f64) {
                // SAFETY: the caller has made sure of the instruction set, the address and its alignment.
                unsafe { $($arch)::+::$past(to, self) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the caller has made sure of the instruction set.
                unsafe { $($arch)::+::$add(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: the caller has made sure of the instruction set.
                unsafe { $($arch)::+::$mul(self, other) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
                // SAFETY: the caller has made sure of the instruction set.
                unsafe { $mul_add(self, factor, addend) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64 as arch;

    by_intrinsics!(
        arch::__m512d,
        8,
        arch,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_stream_pd,
        _mm512_add_pd,
        _mm512_mul_pd,
        arch::_mm512_fmadd_pd
    );
    by_intrinsics!(
        arch::__m256d,
        4,
        arch,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_stream_pd,
        _mm256_add_pd,
        _mm256_mul_pd,
        arch::_mm256_fmadd_pd
    );
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Vector;
    use std::arch::aarch64 as arch;

    // There is no intrinsic for a non-temporal store, and `kernel` offers none for this set.
    by_intrinsics!(
        arch::float64x2_t,
        2,
        arch,
        vdupq_n_f64,
        vld1q_f64,
        vst1q_f64,
        vst1q_f64,
        vaddq_f64,
        vmulq_f64,
        |x, factor, addend| arch::vfmaq_f64(addend, x, factor)
    );
}
