//! Vectors of adjacent channels.

/// A vector of f32.
///
/// # Safety
///
/// All functions may be called only where the vector's instruction set is available, and must be inlined into a
/// function that enables them.
pub(super) unsafe trait ChannelVector: Copy {
    /// How many elements there are: a divisor of [`MAX_LANES`].
    const COUNT: usize;
    /// Reads that many elements.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes that many elements.
    unsafe fn store(self, to: *mut f32);
    /// Broadcasts a value.
    unsafe fn all(value: f32) -> Self;
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// `self - other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// `self · by`.
    unsafe fn times(self, by: f32) -> Self;
}

/// Maximum lanes of a vector.
pub(super) const MAX_LANES: usize = 16;

// SAFETY: needs no instruction set extension.
unsafe impl ChannelVector for [f32; 4] {
    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the pointer is valid for that many.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the pointer is valid for that many.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn all(value: f32) -> Self {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|at| self[at] + other[at])
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        std::array::from_fn(|at| self[at] - other[at])
    }

    #[inline(always)]
    unsafe fn times(self, by: f32) -> Self {
        self.map(|value| value * by)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_add_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps,
        _mm256_sub_ps, _mm512_add_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_ps, _mm512_storeu_ps,
        _mm512_sub_ps,
    };

    use super::ChannelVector;

    macro_rules! lanes {
        ($vector:ty, $count:literal, $load:ident, $store:ident, $all:ident, $add:ident, $sub:ident, $mul:ident) => {
            // SAFETY: inlined into functions that enable the instructions.
            unsafe impl ChannelVector for $vector {
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn load(from: *const f32) -> Self {
                    // SAFETY: the instruction set is available and the pointer is valid.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut f32) {
                    // SAFETY: as above.
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn all(value: f32) -> Self {
                    // SAFETY: the instruction set is available.
                    unsafe { $all(value) }
                }

                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: the instruction set is available.
                    unsafe { $add(self, other) }
                }

                #[inline(always)]
                unsafe fn sub(self, other: Self) -> Self {
                    // SAFETY: the instruction set is available.
                    unsafe { $sub(self, other) }
                }

                #[inline(always)]
                unsafe fn times(self, by: f32) -> Self {
                    // SAFETY: the instruction set is available.
                    unsafe { $mul(self, $all(by)) }
                }
            }
        };
    }

    lanes!(
        __m512,
        16,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps
    );
    lanes!(
        __m256,
        8,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps
    );
}
