//! Kernels for any processor: multiply, then add, as the compiler makes it of plain code.

use super::chain::{Fma, run, verify};
use super::{KnownPeak, PeakKernel};
use crate::cpu::Dtype;

/// Chains enough to fill the pipelines of a processor with two units of four cycles, few enough for 16 registers.
const CHAINS: usize = 12;

macro_rules! portable {
    ($name:ident, $type:ty) => {
        fn $name(chains: &mut Fma<$type, 4, CHAINS>, iterations: u64) {
            let Fma { p, q, mut acc } = chains.clone();
            for _ in 0..iterations {
                for step in 0..2 {
                    for lanes in &mut acc {
                        for ((x, p), q) in lanes.iter_mut().zip(p[step]).zip(q[step]) {
                            *x = *x * p + q;
                        }
                    }
                }
            }
            chains.acc = acc;
        }
    };
}

portable!(portable_f32, f32);
portable!(portable_f64, f64);

macro_rules! kernel {
    ($dtype:ident, $function:ident) => {
        KnownPeak {
            dtype: Dtype::$dtype,
            isa: "portable",
            kernel: Some(PeakKernel {
                dtype: Dtype::$dtype,
                isa: "portable",
                ops_per_iteration: 2 * 2 * 4 * CHAINS as u64,
                run: |iterations| run(|chains| $function(chains, iterations)),
                verify: || {
                    verify($function, |x, p, q| *x = std::array::from_fn(|lane| x[lane] * p[lane] + q[lane]))
                },
            }),
        }
    };
}

/// The portable kernels.
pub(super) fn kernels() -> [KnownPeak; 2] {
    [kernel!(F64, portable_f64), kernel!(F32, portable_f32)]
}
