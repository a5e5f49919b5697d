//! Kernels for NEON.

// Code that uses an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::Gemm;
use super::kernel::fma_kernel;
use crate::cpu::Dtype;

fma_kernel! {
    /// 24 of 32 registers accumulate; three hold the right panel's vectors.
    struct NeonF32, neon_f32;
    tile 8 by 3 of float32x4_t = [f32; 4];
    detect is_aarch64_feature_detected!("neon");
    #[target_feature(enable = "neon")]
    |x, scalar, y| vfmaq_n_f32(*x, y, scalar); add |old, new| vaddq_f32(old, new)
}
fma_kernel! {
    /// As for f32, with half the numbers a register.
    struct NeonF64, neon_f64;
    tile 8 by 3 of float64x2_t = [f64; 2];
    detect is_aarch64_feature_detected!("neon");
    #[target_feature(enable = "neon")]
    |x, scalar, y| vfmaq_n_f64(*x, y, scalar); add |old, new| vaddq_f64(old, new)
}

/// The products that this processor can run.
pub(super) fn gemms() -> impl Iterator<Item = Gemm> {
    [Gemm::of::<NeonF64>(Dtype::F64, "neon"), Gemm::of::<NeonF32>(Dtype::F32, "neon")].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::blocked::check;
    use super::*;

    #[test]
    fn products_are_right() {
        check::<NeonF32>();
        check::<NeonF64>();
    }
}
