//! Reading alone: weights are only read.

#![allow(unsafe_code)]

use super::kernel::InstructionSet;
use super::vector::Vector;

/// Sums in flight, so that the addition's latency is hidden.
const SUMS: usize = 8;

/// Sums that add up to that of all elements.
type Sums = [f64; SUMS * MOST_LANES];

/// The most elements of a vector.
const MOST_LANES: usize = 8;

/// Reads arrays and sums their elements, in the instructions of one set.
#[derive(Clone, Copy)]
pub(super) struct Reader(unsafe fn([&[f64]; 3], u64, &mut Sums));

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

    /// The sums of all elements, read so many times.
    #[inline(always)]
    pub(super) fn read(self, arrays: [&[f64]; 3], passes: u64) -> Sums {
        let mut sums = [0.0; SUMS * MOST_LANES];
        // SAFETY: `widest` found the instructions on this processor.
        unsafe { self.0(arrays, passes, &mut sums) }
        sums
    }
}

/// Compiles [`over`] for an instruction set.
macro_rules! compiled_for {
    ($name:ident, $features:literal, $vector:ty) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(arrays: [&[f64]; 3], passes: u64, sums: &mut Sums) {
            // SAFETY: the caller answers for the processor having the instructions.
            unsafe { over::<$vector>(arrays, passes, sums) }
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
unsafe fn over<V: Vector>(arrays: [&[f64]; 3], passes: u64, results: &mut Sums) {
    let mut rest = 0.0;
    // SAFETY: a block has the elements of `SUMS` vectors, and so have the results.
    unsafe {
        let mut sums = [V::splat(0.0); SUMS];
        for _ in 0..passes {
            for values in arrays {
                let blocks = values.chunks_exact(SUMS * V::LANES);
                rest += blocks.remainder().iter().sum::<f64>();
                for block in blocks {
                    for (at, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.add(V::load(block.as_ptr().add(at * V::LANES)));
                    }
                }
            }
        }
        for (at, sum) in sums.into_iter().enumerate() {
            sum.store(results.as_mut_ptr().add(at * V::LANES));
        }
    }
    results[0] += rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_read_in_every_pass() {
        for length in [0, 1, 7, 63, 64, 65, 1000] {
            let values: Vec<f64> = (1..=length).map(f64::from).collect();
            let expected = f64::from(length) * f64::from(length + 1) / 2.0;
            let arrays = [&values[..], &values[..values.len() / 2], &values[values.len() / 2..]];
            for reader in [Reader::widest(), Reader(over::<f64>)] {
                for passes in [1u32, 3] {
                    let sums = reader.read(arrays, passes.into());
                    assert_eq!(sums.iter().sum::<f64>(), f64::from(2 * passes) * expected);
                }
            }
        }
    }
}
