//! Kernels for 64-bit Arm: NEON, and its bf16 and int8 products where the processor has them.

// Code that uses an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::chain::{Bf16Dot, Chains, Fma, chain_kernel, dot, fma, run, verify};
use super::{KnownPeak, PeakKernel};
use crate::cpu::Dtype;
use crate::cpu::bf16::Bf16;

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

/// A kernel's row in the table below, with the scalar code that it is verified against.
macro_rules! kernel {
    ($dtype:ident, $isa:literal, $feature:tt, $function:ident, $ops_per_step:expr, $step:expr) => {
        KnownPeak {
            dtype: Dtype::$dtype,
            isa: $isa,
            kernel: is_aarch64_feature_detected!($feature).then(|| PeakKernel {
                dtype: Dtype::$dtype,
                isa: $isa,
                ops_per_iteration: 2 * CHAINS as u64 * $ops_per_step,
                run: |iterations| {
                    run(|chains| {
                        // SAFETY: this function is reachable only where the processor has the feature.
                        unsafe { $function(chains, iterations) }
                    })
                },
                verify: || {
                    // SAFETY: as above.
                    verify(|chains, iterations| unsafe { $function(chains, iterations) }, $step)
                },
            }),
        }
    };
}

/// The kernels for this architecture, the widest of a type first.
pub(super) fn kernels() -> [KnownPeak; 5] {
    [
        kernel!(F64, "neon", "neon", neon_f64, 4, fma),
        kernel!(F32, "neon", "neon", neon_f32, 8, fma),
        kernel!(Bf16, "neon_bf16", "bf16", bfmmla, 32, |x, p, q| matrix_product(
            x,
            p,
            q,
            |p: Bf16, q: Bf16| p.to_f32() * q.to_f32()
        )),
        kernel!(Int8, "neon_i8mm", "i8mm", smmla, 64, |x, p, q| matrix_product(x, p, q, int8)),
        kernel!(Int8, "neon_dotprod", "dotprod", sdot, 32, |x, p, q| dot(x, p, q, int8, |products| products
            .sum())),
    ]
}

/// A product of two 8-bit integers.
fn int8(p: i8, q: i8) -> i32 {
    i32::from(p) * i32::from(q)
}
