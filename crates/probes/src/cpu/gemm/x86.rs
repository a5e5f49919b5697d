//! Kernels for AVX2 with FMA and for AVX-512.

// Code that uses an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Gemm;
use super::kernel::fma_kernel;
use crate::cpu::Dtype;

fma_kernel! {
    /// 28 of 32 registers accumulate; two hold the right panel's vectors, one a number of the left panel.
    struct Avx512F32, avx512_f32;
    tile 14 by 2 of __m512 = [f32; 16];
    detect is_x86_feature_detected!("avx512f");
    #[target_feature(enable = "avx512f")]
    |x, scalar, y| _mm512_fmadd_ps(_mm512_set1_ps(scalar), y, *x); add |old, new| _mm512_add_ps(old, new)
}
fma_kernel! {
    /// As for f32, with half the numbers a register.
    struct Avx512F64, avx512_f64;
    tile 14 by 2 of __m512d = [f64; 8];
    detect is_x86_feature_detected!("avx512f");
    #[target_feature(enable = "avx512f")]
    |x, scalar, y| _mm512_fmadd_pd(_mm512_set1_pd(scalar), y, *x); add |old, new| _mm512_add_pd(old, new)
}
fma_kernel! {
    /// 12 of 16 registers accumulate.
    struct Avx2F32, avx2_f32;
    tile 6 by 2 of __m256 = [f32; 8];
    detect is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[target_feature(enable = "avx2,fma")]
    |x, scalar, y| _mm256_fmadd_ps(_mm256_set1_ps(scalar), y, *x); add |old, new| _mm256_add_ps(old, new)
}
fma_kernel! {
    /// As for f32, with half the numbers a register.
    struct Avx2F64, avx2_f64;
    tile 6 by 2 of __m256d = [f64; 4];
    detect is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[target_feature(enable = "avx2,fma")]
    |x, scalar, y| _mm256_fmadd_pd(_mm256_set1_pd(scalar), y, *x); add |old, new| _mm256_add_pd(old, new)
}

/// The products that this processor can run, the widest of a type first.
pub(super) fn gemms() -> impl Iterator<Item = Gemm> {
    [
        Gemm::of::<Avx512F64>(Dtype::F64, "avx512"),
        Gemm::of::<Avx2F64>(Dtype::F64, "avx2"),
        Gemm::of::<Avx512F32>(Dtype::F32, "avx512"),
        Gemm::of::<Avx2F32>(Dtype::F32, "avx2"),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::super::blocked::check;
    use super::*;

    #[test]
    fn products_are_right() {
        check::<Avx512F32>();
        check::<Avx512F64>();
        check::<Avx2F32>();
        check::<Avx2F64>();
    }
}
