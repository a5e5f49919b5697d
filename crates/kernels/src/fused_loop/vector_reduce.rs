//! f32 row reductions with explicit vectors, compiled for each instruction set.

// Vectors are loaded by pointer.
#![allow(unsafe_code)]

use crate::isa::Isa;
use crate::math::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::math::{Avx2, Avx512};

/// A reduction of a row.
trait RowReduction: Copy {
    fn of<V: Lanes>(self, values: &[f32]) -> f32;
}

/// Runs the reduction on an instruction set.
fn whole<W: RowReduction>(isa: Isa, whole: W, values: &[f32]) -> f32 {
    /// # Safety
    ///
    /// The CPU has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn avx512<W: RowReduction>(whole: W, values: &[f32]) -> f32 {
        whole.of::<Avx512>(values)
    }
    /// # Safety
    ///
    /// The CPU has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<W: RowReduction>(whole: W, values: &[f32]) -> f32 {
        whole.of::<Avx2>(values)
    }
    match isa {
        // SAFETY: the instruction set is one that this CPU has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(whole, values) },
        // SAFETY: the same.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(whole, values) },
        _ => whole.of::<f32>(values),
    }
}

/// The sum of a row, in four vectors that are added pairwise at the end; the remainder is added to the first.
pub(super) fn sum(isa: Isa, values: &[f32]) -> f32 {
    whole(isa, Sum, values)
}

/// The maximum of a row, or NaN if there is one; zeros are not ordered.
pub(super) fn maximum(isa: Isa, values: &[f32]) -> f32 {
    whole(isa, Largest, values)
}

#[derive(Clone, Copy)]
struct Sum;

impl RowReduction for Sum {
    #[inline(always)]
    fn of<V: Lanes>(self, values: &[f32]) -> f32 {
        let mut sums = [V::splat(0.0); 4];
        let mut at = 0;
        let data = values.as_ptr();
        // SAFETY: all offsets are within the row.
        unsafe {
            while at + 4 * V::COUNT <= values.len() {
                sums[0] = sums[0].add(V::load(data.add(at)));
                sums[1] = sums[1].add(V::load(data.add(at + V::COUNT)));
                sums[2] = sums[2].add(V::load(data.add(at + 2 * V::COUNT)));
                sums[3] = sums[3].add(V::load(data.add(at + 3 * V::COUNT)));
                at += 4 * V::COUNT;
            }
            while at + V::COUNT <= values.len() {
                sums[0] = sums[0].add(V::load(data.add(at)));
                at += V::COUNT;
            }
            if at < values.len() {
                sums[0] = sums[0].add(V::load_part(data.add(at), values.len() - at));
            }
        }
        let mut lanes = [0f32; 16];
        // SAFETY: there is space for the lanes of every vector.
        unsafe { sums[0].add(sums[2]).add(sums[1].add(sums[3])).store(lanes.as_mut_ptr()) };
        let mut width = V::COUNT;
        while width > 1 {
            width /= 2;
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes[0]
    }
}

#[derive(Clone, Copy)]
struct Largest;

impl RowReduction for Largest {
    #[inline(always)]
    fn of<V: Lanes>(self, values: &[f32]) -> f32 {
        let mut largest = [V::splat(f32::NEG_INFINITY); 2];
        let mut at = 0;
        let data = values.as_ptr();
        // SAFETY: all offsets are within the row.
        unsafe {
            while at + 2 * V::COUNT <= values.len() {
                largest[0] = larger_or_nan(largest[0], V::load(data.add(at)));
                largest[1] = larger_or_nan(largest[1], V::load(data.add(at + V::COUNT)));
                at += 2 * V::COUNT;
            }
        }
        let mut lanes = [f32::NEG_INFINITY; 16];
        // SAFETY: there is space for the lanes of every vector.
        unsafe { larger_or_nan(largest[0], largest[1]).store(lanes.as_mut_ptr()) };
        let all = lanes[..V::COUNT].iter().chain(&values[at..]);
        all.fold(f32::NEG_INFINITY, |largest, &x| if x > largest || x.is_nan() { x } else { largest })
    }
}

/// The larger, NaN if either is; of zeros, either.
#[inline(always)]
fn larger_or_nan<V: Lanes>(a: V, b: V) -> V {
    V::select(a.unordered(b), a.add(b), a.max(b))
}
