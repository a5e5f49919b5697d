//! Resampling of the last dimension: vectors of the result are made of elements that lie close together, and picked out of one vector.

use std::ops::Range;

use super::taps::{Shape, Taps};
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::math::{Avx2, Avx512};
use crate::math::{PICKED_FROM, Pick};

/// What each vector of a line picks and how it weighs it.
pub(super) struct LineBlocks {
    shape: Shape,
    isa: Isa,
    taps: usize,
    /// Vector by vector and tap by tap where the elements begin that are picked from.
    bases: Vec<usize>,
    /// For each of them as many places from there on, as bits, and weights as a vector has lanes.
    picks: Vec<f32>,
    weights: Vec<f32>,
}

impl LineBlocks {
    /// None where a vector is made of elements that are further apart than a vector holds.
    pub(super) fn of(taps: &Taps<f32>, shape: Shape, isa: Isa) -> Option<Self> {
        let lanes = match isa {
            Isa::Avx512 => 16,
            Isa::Avx2 => 8,
            Isa::Portable => 1,
        };
        let number = taps.places.len() / taps.count.max(1);
        let mut all =
            Self { shape, isa, taps: number, bases: Vec::new(), picks: Vec::new(), weights: Vec::new() };
        for start in (0..taps.count).step_by(lanes) {
            for tap in 0..number {
                let part = tap * taps.count + start..tap * taps.count + taps.count.min(start + lanes);
                let places = &taps.places[part.clone()];
                let least = places.iter().copied().min()?;
                let base = least.min(shape.length.saturating_sub(PICKED_FROM));
                if places.iter().any(|place| place - base >= PICKED_FROM) {
                    return None;
                }
                all.bases.push(base);
                let end = all.bases.len() * lanes;
                all.picks.extend(places.iter().map(|place| f32::from_bits((place - base) as u32)));
                all.picks.resize(end, 0.0);
                all.weights.extend_from_slice(&taps.weights[part]);
                all.weights.resize(end, 0.0);
            }
        }
        Some(all)
    }

    /// Resamples some lines.
    ///
    /// # Safety
    ///
    /// The lines of the source may be read, and those of the result written.
    pub(super) unsafe fn run(&self, source: *const f32, lines: Range<usize>, target: *mut f32) {
        // SAFETY: guaranteed by the caller; the instruction set is one that this CPU has.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => avx512(self, source, lines, target),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2(self, source, lines, target),
                _ => self.lines::<f32>(source, lines, target),
            }
        }
    }

    /// # Safety
    ///
    /// As for [`LineBlocks::run`].
    #[inline(always)]
    unsafe fn lines<V: Pick>(&self, source: *const f32, lines: Range<usize>, target: *mut f32) {
        let Shape { length, count, .. } = self.shape;
        let mut short = [0.0f32; PICKED_FROM];
        for line in lines {
            // SAFETY: guaranteed by the caller; bases are so far from the end of a line as picking reads, and a shorter line is copied.
            unsafe {
                let mut from = source.add(line * length);
                if length < PICKED_FROM {
                    std::ptr::copy_nonoverlapping(from, short.as_mut_ptr(), length);
                    from = short.as_ptr();
                }
                let to = target.add(line * count);
                let mut at = 0;
                for (block, bases) in self.bases.chunks_exact(self.taps).enumerate() {
                    let term = |tap: usize| {
                        let entry = (block * self.taps + tap) * V::COUNT;
                        let picks = V::load(self.picks.as_ptr().add(entry));
                        picks.pick(from.add(bases[tap])).mul(V::load(self.weights.as_ptr().add(entry)))
                    };
                    let mut sum = term(0);
                    for tap in 1..self.taps {
                        sum = sum.add(term(tap));
                    }
                    let left = count - at;
                    if left < V::COUNT {
                        sum.store_part(to.add(at), left);
                    } else {
                        sum.store(to.add(at));
                    }
                    at += V::COUNT;
                }
            }
        }
    }
}

/// # Safety
///
/// The CPU has AVX-512; the rest as for [`LineBlocks::run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512(blocks: &LineBlocks, source: *const f32, lines: Range<usize>, target: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { blocks.lines::<Avx512>(source, lines, target) }
}

/// # Safety
///
/// The CPU has AVX2; the rest as for [`LineBlocks::run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(blocks: &LineBlocks, source: *const f32, lines: Range<usize>, target: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { blocks.lines::<Avx2>(source, lines, target) }
}
