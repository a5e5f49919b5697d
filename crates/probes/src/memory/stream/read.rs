//! Reading alone: weights are only read.

#![allow(unsafe_code)]

use super::kernel::InstructionSet;
use super::vector::Vector;

/// Sums in flight, so that the addition's latency is hidden.
const SUMS: usize = 8;

/// The sum of all elements in the widest instructions of the processor.
#[must_use]
pub(super) fn sum(values: &[f64]) -> f64 {
    match InstructionSet::available().first() {
        // SAFETY: the processor has the instructions.
        #[cfg(target_arch = "x86_64")]
        Some(InstructionSet::Avx512) => unsafe { avx512(values) },
        // SAFETY: the processor has the instructions.
        #[cfg(target_arch = "x86_64")]
        Some(InstructionSet::Avx2) => unsafe { avx2(values) },
        // SAFETY: the processor has the instructions.
        #[cfg(target_arch = "aarch64")]
        Some(InstructionSet::Neon) => unsafe { neon(values) },
        // SAFETY: a double is no vector.
        _ => unsafe { over::<f64>(values) },
    }
}

/// Compiles [`over`] for an instruction set.
macro_rules! compiled_for {
    ($name:ident, $features:literal, $vector:ty) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(values: &[f64]) -> f64 {
            // SAFETY: the caller answers for the processor having the instructions.
            unsafe { over::<$vector>(values) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f", std::arch::x86_64::__m512d);
#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2,fma", std::arch::x86_64::__m256d);
#[cfg(target_arch = "aarch64")]
compiled_for!(neon, "neon", std::arch::aarch64::float64x2_t);

/// # Safety
/// The processor must have the instructions of `V`.
#[inline(always)]
unsafe fn over<V: Vector>(values: &[f64]) -> f64 {
    let blocks = values.chunks_exact(SUMS * V::LANES);
    let rest: f64 = blocks.remainder().iter().sum();
    // SAFETY: a block has the elements of `SUMS` vectors; `lanes` has those of one.
    unsafe {
        let mut sums = [V::splat(0.0); SUMS];
        for block in blocks {
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(block.as_ptr().add(at * V::LANES)));
            }
        }
        let mut lanes = [0.0; 8];
        let mut total = V::splat(0.0);
        for sum in sums {
            total = total.add(sum);
        }
        total.store(lanes.as_mut_ptr());
        rest + lanes.iter().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_read_once() {
        for length in [0, 1, 7, 63, 64, 65, 1000] {
            let values: Vec<f64> = (1..=length).map(f64::from).collect();
            let expected = f64::from(length) * f64::from(length + 1) / 2.0;
            assert_eq!(sum(&values), expected);
            // SAFETY: a double is no vector.
            assert_eq!(unsafe { over::<f64>(&values) }, expected);
        }
    }
}
