//! Kernels for any processor: multiply, then add, as the compiler makes it of plain code.

use super::PeakKernel;
use super::chain::{Fma, run};
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

/// The portable kernels.
pub(super) fn kernels() -> Vec<PeakKernel> {
    let ops_per_iteration = 2 * 2 * 4 * CHAINS as u64;
    let isa = "portable";
    vec![
        PeakKernel {
            dtype: Dtype::F64,
            isa,
            ops_per_iteration,
            run: |n| run(|chains| portable_f64(chains, n)),
        },
        PeakKernel {
            dtype: Dtype::F32,
            isa,
            ops_per_iteration,
            run: |n| run(|chains| portable_f32(chains, n)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::peak::chain::check;

    #[test]
    fn multiplies_and_adds() {
        check(portable_f32, |x, p, q| *x = std::array::from_fn(|lane| x[lane] * p[lane] + q[lane]));
        check(portable_f64, |x, p, q| *x = std::array::from_fn(|lane| x[lane] * p[lane] + q[lane]));
    }
}
