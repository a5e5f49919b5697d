//! Kernels for 64-bit Arm: NEON, and its bf16 and int8 products where the processor has them.

// Code that uses an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::PeakKernel;
use super::chain::{Bf16Dot, Chains, Fma, chain_kernel, run};
use crate::cpu::Dtype;

/// Chains of a kernel: four units of four cycles, as the widest cores have, want 16; 32 registers hold 24 and the
/// operands.
const CHAINS: usize = 24;

type Int8Dot = Chains<i8, i8, i32, 16, 4, CHAINS>;

chain_kernel! {
    #[target_feature(enable = "neon")]
    fn neon_f32(Fma<f32, 4, CHAINS>; accumulators float32x4_t; operands float32x4_t, float32x4_t);
    |x, p, q| *x = vfmaq_f32(q, *x, p)
}
chain_kernel! {
    #[target_feature(enable = "neon")]
    fn neon_f64(Fma<f64, 2, CHAINS>; accumulators float64x2_t; operands float64x2_t, float64x2_t);
    |x, p, q| *x = vfmaq_f64(q, *x, p)
}

/// A kernel of an instruction that stable Rust has no function for.
macro_rules! product_kernel {
    ($name:ident, $feature:literal, $chains:ty, $acc:ty, $operand:ty, $instruction:literal) => {
        chain_kernel! {
            #[target_feature(enable = $feature)]
            fn $name($chains; accumulators $acc; operands $operand, $operand);
            |x, p, q| {
                // SAFETY: the caller has the instruction, and it works on registers only.
                unsafe {
                    asm!(
                        $instruction,
                        x = inout(vreg) *x,
                        p = in(vreg) p,
                        q = in(vreg) q,
                        options(pure, nomem, nostack, preserves_flags),
                    );
                }
            }
        }
    };
}

product_kernel!(
    bfmmla, "neon,bf16", Bf16Dot<8, 4, CHAINS>, float32x4_t, uint16x8_t, "bfmmla {x:v}.4s, {p:v}.8h, {q:v}.8h"
);
product_kernel!(smmla, "neon,i8mm", Int8Dot, int32x4_t, int8x16_t, "smmla {x:v}.4s, {p:v}.16b, {q:v}.16b");
product_kernel!(sdot, "neon,dotprod", Int8Dot, int32x4_t, int8x16_t, "sdot {x:v}.4s, {p:v}.16b, {q:v}.16b");

/// A kernel's row in the table below: absent unless the processor has the feature.
macro_rules! kernel {
    ($dtype:ident, $isa:literal, $feature:tt, $function:ident, $ops_per_step:expr) => {
        is_aarch64_feature_detected!($feature).then(|| PeakKernel {
            dtype: Dtype::$dtype,
            isa: $isa,
            ops_per_iteration: 2 * CHAINS as u64 * $ops_per_step,
            run: |iterations| {
                run(|chains| {
                    // SAFETY: this function is reachable only where the processor has the feature.
                    unsafe { $function(chains, iterations) }
                })
            },
        })
    };
}

/// The kernels that this processor can run, the widest of a type first.
pub(super) fn kernels() -> impl Iterator<Item = PeakKernel> {
    [
        kernel!(F64, "neon", "neon", neon_f64, 4),
        kernel!(F32, "neon", "neon", neon_f32, 8),
        kernel!(Bf16, "neon_bf16", "bf16", bfmmla, 32),
        kernel!(Int8, "neon_i8mm", "i8mm", smmla, 64),
        kernel!(Int8, "neon_dotprod", "dotprod", sdot, 32),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::bf16::Bf16;
    use crate::cpu::peak::chain::check;

    /// `x` plus the product of a matrix of two rows and the transpose of another.
    fn matrix_product<A: Copy + std::ops::AddAssign, E: Copy, const V: usize>(
        x: &mut [A; 4],
        p: &[E; V],
        q: &[E; V],
        product: impl Fn(E, E) -> A,
    ) {
        for (at, x) in x.iter_mut().enumerate() {
            for i in 0..V / 2 {
                *x += product(p[at / 2 * (V / 2) + i], q[at % 2 * (V / 2) + i]);
            }
        }
    }

    macro_rules! check_if {
        ($feature:tt, $function:ident, $step:expr) => {
            if is_aarch64_feature_detected!($feature) {
                // SAFETY: the processor has the feature.
                check(|chains, iterations| unsafe { $function(chains, iterations) }, $step);
            } else {
                eprintln!("not checked, the processor cannot run it: {}", stringify!($function));
            }
        };
    }

    #[test]
    fn kernels_compute_what_they_say() {
        check_if!("neon", neon_f32, |x, p, q| *x = std::array::from_fn(|i| x[i].mul_add(p[i], q[i])));
        check_if!("neon", neon_f64, |x, p, q| *x = std::array::from_fn(|i| x[i].mul_add(p[i], q[i])));
        check_if!("bf16", bfmmla, |x, p, q| matrix_product(x, p, q, |p: Bf16, q: Bf16| p.to_f32()
            * q.to_f32()));
        check_if!("i8mm", smmla, |x, p, q| matrix_product(x, p, q, |p, q| i32::from(p) * i32::from(q)));
        check_if!("dotprod", sdot, |x, p, q| {
            for (at, x) in x.iter_mut().enumerate() {
                *x += (4 * at..4 * at + 4).map(|i| i32::from(p[i]) * i32::from(q[i])).sum::<i32>();
            }
        });
    }
}
