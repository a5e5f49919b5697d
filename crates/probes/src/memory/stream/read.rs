//! Reading alone: weights are only read.

#![allow(unsafe_code)]

use super::kernel::InstructionSet;
use super::vector::Vector;

/// Sums in flight, so that the addition's latency is hidden.
const SUMS: usize = 8;

/// Reads arrays and sums their elements, in the instructions of one set.
#[derive(Clone, Copy)]
pub(super) struct Reader(unsafe fn([&[f64]; 3]) -> f64);

impl Reader {
    /// The widest instructions of the processor. Chosen once: to look for them takes longer than to read a small cache.
    pub(super) fn widest() -> Self {
        match InstructionSet::available().first() {
            #[cfg(target_arch = "x86_64")]
            Some(InstructionSet::Avx512) => Self(avx512),
            #[cfg(target_arch = "x86_64")]
            Some(InstructionSet::Avx2) => Self(avx2),
            #[cfg(target_arch = "aarch64")]
            Some(InstructionSet::Neon) => Self(neon),
            _ => Self(over::<f64>),
        }
    }

    /// The sum of all elements.
    pub(super) fn sum(self, arrays: [&[f64]; 3]) -> f64 {
        // SAFETY: `widest` found the instructions on this processor.
        unsafe { self.0(arrays) }
    }
}

/// Compiles [`over`] for an instruction set.
macro_rules! compiled_for {
    ($name:ident, $features:literal, $vector:ty) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(arrays: [&[f64]; 3]) -> f64 {
            // SAFETY: the caller answers for the processor having the instructions.
            unsafe { over::<$vector>(arrays) }
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
unsafe fn over<V: Vector>(arrays: [&[f64]; 3]) -> f64 {
    let mut rest = 0.0;
    // SAFETY: a block has the elements of `SUMS` vectors; `lanes` has those of one.
    unsafe {
        let mut sums = [V::splat(0.0); SUMS];
        for values in arrays {
            let blocks = values.chunks_exact(SUMS * V::LANES);
            rest += blocks.remainder().iter().sum::<f64>();
            for block in blocks {
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.add(V::load(block.as_ptr().add(at * V::LANES)));
                }
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
            let arrays = [&values[..], &values[..values.len() / 2], &values[values.len() / 2..]];
            assert_eq!(Reader::widest().sum(arrays), 2.0 * expected);
            assert_eq!(Reader(over::<f64>).sum(arrays), 2.0 * expected);
        }
    }
}
