//! Vectors of neighbouring channels.

/// A vector of f32.
///
/// # Safety
///
/// All functions may be called only where the vector's instructions exist, and must be inlined into a function that
/// enables them.
pub(super) unsafe trait Lanes: Copy {
    /// How many elements there are: a divisor of [`MOST`].
    const COUNT: usize;
    /// Reads so many elements.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes so many elements.
    unsafe fn store(self, to: *mut f32);
    /// The same in all lanes.
    unsafe fn all(value: f32) -> Self;
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// `self - other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// `self · by`.
    unsafe fn times(self, by: f32) -> Self;
}

/// The most elements of a vector.
pub(super) const MOST: usize = 16;

// SAFETY: needs no instructions.
unsafe impl Lanes for [f32; 4] {
    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the address is good for so many.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the address is good for so many.
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

    use super::Lanes;

    macro_rules! lanes {
        ($vector:ty, $count:literal, $load:ident, $store:ident, $all:ident, $add:ident, $sub:ident, $mul:ident) => {
            // SAFETY: inlined into functions that enable the instructions.
            unsafe impl Lanes for $vector {
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn load(from: *const f32) -> Self {
                    // SAFETY: the instructions exist and the address is good.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut f32) {
                    // SAFETY: as above.
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn all(value: f32) -> Self {
                    // SAFETY: the instructions exist.
                    unsafe { $all(value) }
                }

                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: the instructions exist.
                    unsafe { $add(self, other) }
                }

                #[inline(always)]
                unsafe fn sub(self, other: Self) -> Self {
                    // SAFETY: the instructions exist.
                    unsafe { $sub(self, other) }
                }

                #[inline(always)]
                unsafe fn times(self, by: f32) -> Self {
                    // SAFETY: the instructions exist.
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
