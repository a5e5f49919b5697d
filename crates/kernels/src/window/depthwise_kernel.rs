//! The inner loop of depthwise convolution: sums over taps, for all channels of some pixels.

use crate::isa::Isa;

/// A tap: the offsets of its channels in the image and of its weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    pub(super) source: usize,
    pub(super) weight: usize,
}

/// Output pixels whose windows have the same taps.
#[derive(Debug, Clone, Copy)]
pub(super) struct PixelGroup {
    pub(super) pixels: usize,
    /// Offset from the taps of one pixel to those of the next.
    pub(super) step: usize,
    pub(super) channels: usize,
}

type Sums = unsafe fn(&PixelGroup, &[Tap], *const f32, *const f32, *mut f32);

/// The loop for the instruction set of this CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct DepthwiseKernel(Sums);

impl DepthwiseKernel {
    pub(super) fn best() -> Self {
        match Isa::best() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Self(x86::avx512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Self(x86::avx2),
            _ => Self(portable),
        }
    }

    /// Sums over the taps of the first pixel, shifted by a step for each following pixel.
    ///
    /// # Safety
    ///
    /// All channels may be read at every tap of every pixel, as many weights at every tap, and all channels of all
    /// pixels may be written.
    pub(super) unsafe fn run(
        self,
        group: &PixelGroup,
        taps: &[Tap],
        source: *const f32,
        weights: *const f32,
        target: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller; the loop was chosen for this CPU.
        unsafe { (self.0)(group, taps, source, weights, target) }
    }
}

/// # Safety
///
/// As for [`DepthwiseKernel::run`].
unsafe fn portable(
    group: &PixelGroup,
    taps: &[Tap],
    source: *const f32,
    weights: *const f32,
    target: *mut f32,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { rows(group, taps, source, weights, target, |sum, x, weight| sum + x * weight) }
}

/// # Safety
///
/// As for [`DepthwiseKernel::run`].
#[inline(always)]
unsafe fn rows(
    group: &PixelGroup,
    taps: &[Tap],
    source: *const f32,
    weights: *const f32,
    target: *mut f32,
    multiply_add: impl Fn(f32, f32, f32) -> f32,
) {
    // SAFETY: guaranteed by the caller; the image, the weights and the result are different memory.
    unsafe {
        for pixel in 0..group.pixels {
            let sums = std::slice::from_raw_parts_mut(target.add(pixel * group.channels), group.channels);
            sums.fill(0.0);
            for tap in taps {
                let elements = source.add(tap.source + pixel * group.step);
                let elements = std::slice::from_raw_parts(elements, group.channels);
                let weights = std::slice::from_raw_parts(weights.add(tap.weight), group.channels);
                for ((sum, &x), &weight) in sums.iter_mut().zip(elements).zip(weights) {
                    *sum = multiply_add(*sum, x, weight);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The loop with fused multiplication and addition.

    use std::arch::x86_64::*;

    use super::{PixelGroup, Tap, rows};

    /// # Safety
    ///
    /// As for [`super::DepthwiseKernel::run`]; the CPU has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(
        group: &PixelGroup,
        taps: &[Tap],
        source: *const f32,
        weights: *const f32,
        target: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { rows(group, taps, source, weights, target, |sum, x, weight| x.mul_add(weight, sum)) }
    }

    /// # Safety
    ///
    /// As for [`super::DepthwiseKernel::run`]; the CPU has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(
        group: &PixelGroup,
        taps: &[Tap],
        source: *const f32,
        weights: *const f32,
        target: *mut f32,
    ) {
        // All pixels of a few channels at a time: their part of the image stays in the L1 cache.
        let mut channel = 0;
        while channel < group.channels {
            let left = group.channels - channel;
            // SAFETY: the caller guarantees all channels; masks keep what is beyond them from being touched.
            unsafe {
                let (source, weights, target) =
                    (source.add(channel), weights.add(channel), target.add(channel));
                if left >= 64 {
                    pixels::<4>(group, taps, source, weights, target, !0);
                    channel += 64;
                } else if left >= 32 {
                    pixels::<2>(group, taps, source, weights, target, !0);
                    channel += 32;
                } else {
                    let mask = if left >= 16 { !0 } else { (1u16 << left) - 1 };
                    pixels::<1>(group, taps, source, weights, target, mask);
                    channel += 16;
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for [`sums`], for all pixels of the group.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn pixels<const V: usize>(
        group: &PixelGroup,
        taps: &[Tap],
        source: *const f32,
        weights: *const f32,
        target: *mut f32,
        mask: __mmask16,
    ) {
        let whole = group.pixels / 4 * 4;
        // SAFETY: guaranteed by the caller.
        unsafe {
            for pixel in (0..whole).step_by(4) {
                let (from, to) = (source.add(pixel * group.step), target.add(pixel * group.channels));
                sums::<4, V>(group, taps, from, weights, to, mask);
            }
            for pixel in whole..group.pixels {
                let (from, to) = (source.add(pixel * group.step), target.add(pixel * group.channels));
                sums::<1, V>(group, taps, from, weights, to, mask);
            }
        }
    }

    /// `P` pixels by `V` registers of channels.
    ///
    /// # Safety
    ///
    /// So many channels, of the last register those in the mask, may be read at every tap of every pixel and at the
    /// weights, and written at every pixel of the target. A mask that is not full comes with one register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn sums<const P: usize, const V: usize>(
        group: &PixelGroup,
        taps: &[Tap],
        source: *const f32,
        weights: *const f32,
        target: *mut f32,
        mask: __mmask16,
    ) {
        let mut sums = [[_mm512_setzero_ps(); V]; P];
        for tap in taps {
            for part in 0..V {
                // SAFETY: guaranteed by the caller.
                let weight = unsafe { load::<V>(mask, weights.add(tap.weight + 16 * part)) };
                for (pixel, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    let x =
                        unsafe { load::<V>(mask, source.add(tap.source + pixel * group.step + 16 * part)) };
                    sums[part] = _mm512_fmadd_ps(x, weight, sums[part]);
                }
            }
        }
        for (pixel, sums) in sums.into_iter().enumerate() {
            for (part, sum) in sums.into_iter().enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let to = target.add(pixel * group.channels + 16 * part);
                    if V == 1 { _mm512_mask_storeu_ps(to, mask, sum) } else { _mm512_storeu_ps(to, sum) }
                }
            }
        }
    }

    /// # Safety
    ///
    /// The elements in the mask may be read; all, where there are several registers.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn load<const V: usize>(mask: __mmask16, from: *const f32) -> __m512 {
        // SAFETY: guaranteed by the caller.
        unsafe { if V == 1 { _mm512_maskz_loadu_ps(mask, from) } else { _mm512_loadu_ps(from) } }
    }
}
