//! Values of vector registers from arrays and back.

// Reading an array as a register of the same size is a reinterpretation of its bytes.
#![allow(unsafe_code)]

use super::bf16::Bf16;

/// A type of which every pattern of bytes is a value, so that its bytes may be read as those of another such type.
///
/// # Safety
/// The implementor must have no padding and no invalid bit patterns.
pub(super) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {$(
        // SAFETY: integers, floats and vectors of them have neither padding nor invalid bit patterns.
        unsafe impl Plain for $type {}
    )*};
}

plain!(f64, f32, i32, u8, i8, Bf16);

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{__m256, __m256d, __m256i, __m512, __m512bh, __m512d, __m512i};
    plain!(__m256, __m256d, __m256i, __m512, __m512bh, __m512d, __m512i);
    use super::Plain;
}

#[cfg(target_arch = "aarch64")]
mod vectors {
    use std::arch::aarch64::{float32x4_t, float64x2_t, int8x16_t, int32x4_t, uint16x8_t};
    plain!(float32x4_t, float64x2_t, int8x16_t, int32x4_t, uint16x8_t);
    use super::Plain;
}

/// The register that these elements fill.
#[inline(always)]
pub(super) fn load<V: Plain, E: Plain, const N: usize>(elements: &[E; N]) -> V {
    const { assert!(size_of::<V>() == size_of::<[E; N]>()) };
    // SAFETY: the sizes are equal, any bytes are a valid `V`, and the read asks for no alignment.
    unsafe { elements.as_ptr().cast::<V>().read_unaligned() }
}

/// The elements of a register.
#[inline(always)]
pub(super) fn store<V: Plain, E: Plain, const N: usize>(register: V, elements: &mut [E; N]) {
    const { assert!(size_of::<V>() == size_of::<[E; N]>()) };
    // SAFETY: the sizes are equal, any bytes are valid elements, and the write asks for no alignment.
    unsafe { elements.as_mut_ptr().cast::<V>().write_unaligned(register) }
}
