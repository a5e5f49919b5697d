//! Reading alone: weights are only read.

#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::hint::black_box;

use super::kernel::InstructionSet;
use super::vector::Vector;

/// Vectors in one turn of the loop.
const UNROLLED: usize = 8;

/// Reads arrays so many times, in the instructions of one set. Chosen once: to look for them takes longer than to read a small cache.
#[derive(Debug, Clone, Copy)]
pub struct Reader(unsafe fn([&[f64]; 3], u64));

impl Reader {
    /// The widest instructions of the processor.
    #[must_use]
    pub fn widest() -> Self {
        InstructionSet::available().into_iter().find_map(Self::new).unwrap_or(Self(portable))
    }

    /// The instructions of a set; `None` if this processor lacks it.
    #[must_use]
    pub fn new(set: InstructionSet) -> Option<Self> {
        let reader = match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => Self(avx512),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => Self(avx2),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => Self(neon),
            InstructionSet::Portable => Self(portable),
        };
        InstructionSet::available().contains(&set).then_some(reader)
    }

    /// Reads all elements so many times.
    #[inline(always)]
    pub(super) fn read(self, arrays: [&[f64]; 3], passes: u64) {
        // SAFETY: `new` found the instructions on this processor.
        unsafe { self.0(arrays, passes) }
    }
}

/// Goes through arrays so many times: `vector` gets the addresses of as many elements as there are lanes, `one` what is left of an array.
#[inline(always)]
fn walk<const LANES: usize>(
    arrays: [&[f64]; 3],
    passes: u64,
    mut vector: impl FnMut(*const f64),
    mut one: impl FnMut(&f64),
) {
    for _ in 0..passes {
        for values in arrays {
            let turns = values.chunks_exact(UNROLLED * LANES);
            let rest = turns.remainder();
            for turn in turns {
                for step in 0..UNROLLED {
                    vector(turn[step * LANES..].as_ptr());
                }
            }
            let vectors = rest.chunks_exact(LANES);
            vectors.remainder().iter().for_each(&mut one);
            vectors.for_each(|elements| vector(elements.as_ptr()));
        }
    }
}

/// A function that loads vectors and does nothing with them: arithmetic would take as long as a cache that is near.
macro_rules! reader {
    ($name:ident, $vector:ty, $register:ident $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $name(arrays: [&[f64]; 3], passes: u64) {
            let load = |from: *const f64| {
                // SAFETY: the address is that of a vector's elements, and the caller answers for the processor. The instruction is empty:
                // it takes a register, so that the load stays.
                unsafe {
                    let loaded = <$vector>::load(from);
                    asm!("/* {0} */", in($register) loaded, options(nomem, nostack, preserves_flags));
                }
            };
            walk::<{ <$vector as Vector>::LANES }>(arrays, passes, load, |value| {
                black_box(*value);
            });
        }
    };
}

#[cfg(target_arch = "x86_64")]
reader!(avx512, std::arch::x86_64::__m512d, zmm_reg, "avx512f");
#[cfg(target_arch = "x86_64")]
reader!(avx2, std::arch::x86_64::__m256d, ymm_reg, "avx2,fma");
#[cfg(target_arch = "x86_64")]
reader!(portable, f64, xmm_reg);
#[cfg(target_arch = "aarch64")]
reader!(neon, std::arch::aarch64::float64x2_t, vreg, "neon");
#[cfg(target_arch = "aarch64")]
reader!(portable, f64, vreg);

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn portable(arrays: [&[f64]; 3], passes: u64) {
    let read = |value: &f64| {
        black_box(*value);
    };
    // SAFETY: a vector has one element.
    walk::<1>(arrays, passes, |from| read(unsafe { &*from }), read);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each element of an array of this length is gone through, in vectors of so many.
    fn visits<const LANES: usize>(length: usize, passes: u64) -> Vec<u64> {
        let values = vec![0.0; length];
        let place = |from: *const f64| (from as usize - values.as_ptr() as usize) / size_of::<f64>();
        let seen = std::cell::RefCell::new(vec![0; length]);
        let arrays = [&values[..length / 2], &values[length / 2..], &[]];
        walk::<LANES>(
            arrays,
            passes,
            |from| seen.borrow_mut()[place(from)..place(from) + LANES].iter_mut().for_each(|seen| *seen += 1),
            |value| seen.borrow_mut()[place(value)] += 1,
        );
        seen.into_inner()
    }

    #[test]
    fn every_element_is_read_once_in_every_pass() {
        for length in [0, 1, 7, 63, 64, 65, 129, 1000] {
            for visits in [visits::<1>(length, 3), visits::<4>(length, 3), visits::<8>(length, 3)] {
                assert_eq!(visits, vec![3; length]);
            }
        }
    }

    #[test]
    fn passes_take_time() {
        let values = vec![1.0; 1 << 12];
        for reader in [Reader::widest(), Reader(portable)] {
            let took = |passes| {
                let begin = std::time::Instant::now();
                reader.read([&values, &values[..99], &[]], passes);
                begin.elapsed()
            };
            // 134 MB: no core reads them in so short a time.
            assert!(took(1 << 12) > std::time::Duration::from_micros(100));
        }
    }
}
