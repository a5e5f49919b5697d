//! Kernels for x86-64: AVX2 with FMA, AVX-512, their bf16 and int8 dot products.

// Code that uses an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::*;

use super::chain::{Bf16Dot, Chains, Fma, chain_kernel, dot, fma, run, verify};
use super::{KnownPeak, PeakKernel};
use crate::cpu::Dtype;
use crate::cpu::bf16::Bf16;

/// Chains of a kernel with 16 registers: two units of 4 or 5 cycles want 8 to 10, the four operands take the rest.
const CHAINS_16: usize = 12;
/// Chains of a kernel with 32 registers: twice what two units of four cycles need.
const CHAINS_32: usize = 16;

type Int8Dot<const V: usize, const L: usize, const CHAINS: usize> = Chains<u8, i8, i32, V, L, CHAINS>;

chain_kernel! {
    #[target_feature(enable = "avx512f")]
    fn avx512_f32(Fma<f32, 16, CHAINS_32>; accumulators __m512; operands __m512, __m512);
    |x, p, q| *x = _mm512_fmadd_ps(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avx512f")]
    fn avx512_f64(Fma<f64, 8, CHAINS_32>; accumulators __m512d; operands __m512d, __m512d);
    |x, p, q| *x = _mm512_fmadd_pd(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn avx512_bf16(Bf16Dot<32, 16, CHAINS_32>; accumulators __m512; operands __m512bh, __m512bh);
    |x, p, q| *x = _mm512_dpbf16_ps(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn avx512_vnni(Int8Dot<64, 16, CHAINS_32>; accumulators __m512i; operands __m512i, __m512i);
    |x, p, q| *x = _mm512_dpbusd_epi32(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avx2,fma")]
    fn avx2_f32(Fma<f32, 8, CHAINS_16>; accumulators __m256; operands __m256, __m256);
    |x, p, q| *x = _mm256_fmadd_ps(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avx2,fma")]
    fn avx2_f64(Fma<f64, 4, CHAINS_16>; accumulators __m256d; operands __m256d, __m256d);
    |x, p, q| *x = _mm256_fmadd_pd(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avxvnni")]
    fn avx_vnni(Int8Dot<32, 8, CHAINS_16>; accumulators __m256i; operands __m256i, __m256i);
    |x, p, q| *x = _mm256_dpbusd_avx_epi32(*x, p, q)
}
chain_kernel! {
    #[target_feature(enable = "avx2")]
    fn avx2_int8(Int8Dot<32, 8, 8>; accumulators __m256i; operands __m256i, __m256i);
    |x, p, q| *x = dot_by_three_instructions(*x, p, q)
}

/// `x` plus the products of `p` and `q` in groups of four, on a processor without an instruction for it. In assembly
/// since a compiler would see that the products are the same every time and make them only once.
#[inline]
#[target_feature(enable = "avx2")]
fn dot_by_three_instructions(mut x: __m256i, p: __m256i, q: __m256i) -> __m256i {
    let ones = _mm256_set1_epi16(1);
    // SAFETY: the instructions are those of AVX2, which the caller has, and work on registers only.
    unsafe {
        asm!(
            "vpmaddubsw {products}, {p}, {q}",
            "vpmaddwd {products}, {products}, {ones}",
            "vpaddd {x}, {x}, {products}",
            x = inout(ymm_reg) x,
            p = in(ymm_reg) p,
            q = in(ymm_reg) q,
            ones = in(ymm_reg) ones,
            products = out(ymm_reg) _,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    x
}

fn int8<const V: usize, const L: usize>(x: &mut [i32; L], p: &[u8; V], q: &[i8; V]) {
    dot(x, p, q, |p, q| i32::from(p) * i32::from(q), |products| products.sum());
}

fn bf16(x: &mut [f32; 16], p: &[Bf16; 32], q: &[Bf16; 32]) {
    dot(x, p, q, |p, q| p.to_f32() * q.to_f32(), |products| products.sum());
}

/// A kernel's row in the table below, with the scalar code that it is verified against.
macro_rules! kernel {
    ($dtype:ident, $isa:literal, [$($feature:tt),+], $function:ident, $chains:expr, $ops_per_step:expr, $step:expr) => {
        KnownPeak {
            dtype: Dtype::$dtype,
            isa: $isa,
            kernel: ($(is_x86_feature_detected!($feature))&&+).then(|| PeakKernel {
                dtype: Dtype::$dtype,
                isa: $isa,
                ops_per_iteration: 2 * $chains as u64 * $ops_per_step,
                run: |iterations| {
                    run(|chains| {
                        // SAFETY: this function is reachable only where the processor has the features.
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
pub(super) fn kernels() -> [KnownPeak; 8] {
    [
        kernel!(F64, "avx512", ["avx512f"], avx512_f64, CHAINS_32, 16, fma),
        kernel!(F64, "avx2", ["avx2", "fma"], avx2_f64, CHAINS_16, 8, fma),
        kernel!(F32, "avx512", ["avx512f"], avx512_f32, CHAINS_32, 32, fma),
        kernel!(F32, "avx2", ["avx2", "fma"], avx2_f32, CHAINS_16, 16, fma),
        kernel!(Bf16, "avx512_bf16", ["avx512f", "avx512bf16"], avx512_bf16, CHAINS_32, 64, bf16),
        kernel!(Int8, "avx512_vnni", ["avx512f", "avx512vnni"], avx512_vnni, CHAINS_32, 128, int8),
        kernel!(Int8, "avx_vnni", ["avxvnni"], avx_vnni, CHAINS_16, 64, int8),
        kernel!(Int8, "avx2", ["avx2"], avx2_int8, 8, 64, int8),
    ]
}
