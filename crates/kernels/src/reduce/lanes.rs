//! Elementwise reduction of arrays: the inner loop of windows, scatters and cumulative reductions.

// Arrays are pointers, because the threads of a pool share them.
#![allow(unsafe_code)]

use warpforge_tensor::ElementType;

use super::ReduceOp;
use super::element::{ReduceElement, for_element};
use crate::isa::Isa;

/// Reduces `lanes` contiguous elements at each of the pointers, in order, into the target. There is at least one
/// pointer; the target may be one of them.
///
/// # Safety
///
/// That many elements may be read at each pointer and written at the target.
pub(crate) type ReduceLanes = unsafe fn(&[*const u8], usize, *mut u8);

/// The reduction of an element type, if supported.
pub(crate) fn reduce_lanes(reduction: ReduceOp, element: ElementType) -> Option<ReduceLanes> {
    let reduction = if element == ElementType::Bool { reduction.for_bool() } else { reduction };
    #[cfg(target_arch = "x86_64")]
    if Isa::best() == Isa::Avx512 {
        match (reduction, element) {
            (ReduceOp::Sum, ElementType::F32) => return Some(x86::sums),
            (ReduceOp::Maximum, ElementType::F32) => return Some(x86::largest),
            (ReduceOp::Minimum, ElementType::F32) => return Some(x86::smallest),
            (ReduceOp::Maximum, ElementType::BF16) => return Some(x86::largest_of_bf16),
            (ReduceOp::Minimum, ElementType::BF16) => return Some(x86::smallest_of_bf16),
            _ => {}
        }
    }
    for_element!(element, T => by_op::<T>(reduction, element), else None)
}

/// Maximum lanes of a [`Scan`].
pub(crate) const MAX_SCAN_LANES: usize = 64;

/// A cumulative reduction of at most [`MAX_SCAN_LANES`] lanes: from the initial value over rows at a positive or
/// negative stride.
///
/// # Safety
///
/// The initial value may be read, and all rows may be read at the source and written at the target.
pub(crate) type Scan = unsafe fn(*const u8, *mut u8, &ScanRows, *const u8);

/// The rows of a scan.
pub(crate) struct ScanRows {
    pub(crate) count: usize,
    pub(crate) step: isize,
    pub(crate) lanes: usize,
}

/// The scan of an element type, if supported. Sums of f32 are accumulated in f64, so that long ones do not drift.
pub(crate) fn scan(reduction: ReduceOp, element: ElementType) -> Option<Scan> {
    let reduction = if element == ElementType::Bool { reduction.for_bool() } else { reduction };
    if (reduction, element) == (ReduceOp::Sum, ElementType::F32) {
        return Some(scan_sums);
    }
    fn by_op<T: ReduceElement>(reduction: ReduceOp, element: ElementType) -> Option<Scan> {
        Some(match reduction {
            ReduceOp::Sum => scan_by::<T, Sum>,
            ReduceOp::Product => scan_by::<T, Product>,
            ReduceOp::Maximum => scan_by::<T, Largest>,
            ReduceOp::Minimum => scan_by::<T, Smallest>,
            ReduceOp::And | ReduceOp::Or if element.is_float() => return None,
            ReduceOp::And => scan_by::<T, And>,
            ReduceOp::Or => scan_by::<T, Or>,
        })
    }
    for_element!(element, T => by_op::<T>(reduction, element), else None)
}

/// # Safety
///
/// As for [`Scan`].
unsafe fn scan_sums(source: *const u8, target: *mut u8, rows: &ScanRows, init: *const u8) {
    // SAFETY: guaranteed by the caller.
    unsafe { scan_with::<f32, f64>(source, target, rows, init, f64::from, |sum| sum as f32, |a, b| a + b) }
}

/// # Safety
///
/// As for [`Scan`].
unsafe fn scan_by<T: ReduceElement, F: BinaryFunction<T>>(
    source: *const u8,
    target: *mut u8,
    rows: &ScanRows,
    init: *const u8,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { scan_with::<T, T>(source, target, rows, init, |x| x, |x| x, F::of) }
}

/// # Safety
///
/// As for [`Scan`].
#[inline(always)]
unsafe fn scan_with<T: Copy, A: Copy>(
    source: *const u8,
    target: *mut u8,
    rows: &ScanRows,
    init: *const u8,
    widen: impl Fn(T) -> A,
    narrow: impl Fn(A) -> T,
    reduce: impl Fn(A, A) -> A,
) {
    let (source, target) = (source.cast::<T>(), target.cast::<T>());
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut values = [widen(init.cast::<T>().read_unaligned()); MAX_SCAN_LANES];
        for row in 0..rows.count as isize {
            let (from, to) = (source.offset(row * rows.step), target.offset(row * rows.step));
            for (lane, value) in values.iter_mut().enumerate().take(rows.lanes) {
                *value = reduce(*value, widen(from.add(lane).read_unaligned()));
                to.add(lane).write_unaligned(narrow(*value));
            }
        }
    }
}

/// A function of two elements that is known when the loop is compiled.
trait BinaryFunction<T> {
    fn of(a: T, b: T) -> T;
}

macro_rules! functions {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        struct $name;
        impl<T: ReduceElement> BinaryFunction<T> for $name {
            #[inline(always)]
            fn of($a: T, $b: T) -> T { $body }
        }
    )*};
}

functions! {
    Sum |a, b| a.add(b);
    Product |a, b| a.multiply(b);
    Largest |a, b| a.larger(b);
    Smallest |a, b| a.smaller(b);
    // Unreachable for floats.
    And |a, b| a.and(b).unwrap_or(a);
    Or |a, b| a.or(b).unwrap_or(a);
}

fn by_op<T: ReduceElement>(reduction: ReduceOp, element: ElementType) -> Option<ReduceLanes> {
    Some(match reduction {
        ReduceOp::Sum => by_isa::<T, Sum>(),
        ReduceOp::Product => by_isa::<T, Product>(),
        ReduceOp::Maximum => by_isa::<T, Largest>(),
        ReduceOp::Minimum => by_isa::<T, Smallest>(),
        ReduceOp::And | ReduceOp::Or if element.is_float() => return None,
        ReduceOp::And => by_isa::<T, And>(),
        ReduceOp::Or => by_isa::<T, Or>(),
    })
}

fn by_isa<T: ReduceElement, F: BinaryFunction<T>>() -> ReduceLanes {
    match Isa::best() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => x86::avx512::<T, F>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => x86::avx2::<T, F>,
        _ => portable::<T, F>,
    }
}

/// # Safety
///
/// As for [`ReduceLanes`].
#[inline(always)]
unsafe fn portable<T: ReduceElement, F: BinaryFunction<T>>(
    sources: &[*const u8],
    lanes: usize,
    target: *mut u8,
) {
    let Some((&first, rest)) = sources.split_first() else { return };
    // SAFETY: that many elements are at each address; reads do not ask for alignment.
    unsafe {
        let read = |source: *const u8, lane: usize| source.cast::<T>().add(lane).read_unaligned();
        if lanes == 1 {
            let value = rest.iter().fold(read(first, 0), |value, &source| F::of(value, read(source, 0)));
            return target.cast::<T>().write_unaligned(value);
        }
        let target = target.cast::<T>();
        let mut from = first;
        for &source in rest {
            for lane in 0..lanes {
                target.add(lane).write_unaligned(F::of(read(from, lane), read(source, lane)));
            }
            from = target.cast_const().cast();
        }
        if rest.is_empty() {
            std::ptr::copy(first, target.cast(), lanes * size_of::<T>());
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The loops compiled for wider registers, and for f32 with accumulators in registers.

    use std::arch::x86_64::*;

    use super::{BinaryFunction, ReduceElement, portable};

    /// # Safety
    ///
    /// As for [`super::ReduceLanes`]; the CPU has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c,fma")]
    pub(crate) unsafe fn avx512<T: ReduceElement, F: BinaryFunction<T>>(
        sources: &[*const u8],
        lanes: usize,
        target: *mut u8,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { portable::<T, F>(sources, lanes, target) }
    }

    /// # Safety
    ///
    /// As for [`super::ReduceLanes`]; the CPU has AVX2.
    #[target_feature(enable = "avx2,f16c,fma")]
    pub(crate) unsafe fn avx2<T: ReduceElement, F: BinaryFunction<T>>(
        sources: &[*const u8],
        lanes: usize,
        target: *mut u8,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { portable::<T, F>(sources, lanes, target) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(a, b)
    }

    // `vrangeps` orders zeros by sign and drops NaN; the masked addition restores it.

    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn larger(a: __m512, b: __m512) -> __m512 {
        let unordered = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        _mm512_mask_add_ps(_mm512_range_ps::<5>(a, b), unordered, a, b)
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn smaller(a: __m512, b: __m512) -> __m512 {
        let unordered = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        _mm512_mask_add_ps(_mm512_range_ps::<4>(a, b), unordered, a, b)
    }

    macro_rules! in_registers {
        ($($name:ident by $reduce:ident;)*) => {$(
            /// # Safety
            ///
            /// As for [`super::ReduceLanes`]; the CPU has AVX-512.
            #[target_feature(enable = "avx512f,avx512dq")]
            pub(crate) unsafe fn $name(sources: &[*const u8], lanes: usize, target: *mut u8) {
                let Some((&first, rest)) = sources.split_first() else { return };
                let mut lane = 0;
                while lane < lanes {
                    // SAFETY: masked lanes are not accessed.
                    unsafe {
                        let left = lanes - lane;
                        let to = target.cast::<f32>().add(lane);
                        let at = |source: *const u8| source.cast::<f32>().add(lane);
                        if left >= 64 {
                            let mut sums = [_mm512_setzero_ps(); 4];
                            for (part, sum) in sums.iter_mut().enumerate() {
                                *sum = _mm512_loadu_ps(at(first).add(16 * part));
                            }
                            for &source in rest {
                                for (part, sum) in sums.iter_mut().enumerate() {
                                    *sum = $reduce(*sum, _mm512_loadu_ps(at(source).add(16 * part)));
                                }
                            }
                            for (part, sum) in sums.into_iter().enumerate() {
                                _mm512_storeu_ps(to.add(16 * part), sum);
                            }
                            lane += 64;
                            continue;
                        }
                        let mask = if left >= 16 { 0xffff } else { (1u16 << left) - 1 };
                        let mut sum = _mm512_maskz_loadu_ps(mask, at(first));
                        for &source in rest {
                            sum = $reduce(sum, _mm512_maskz_loadu_ps(mask, at(source)));
                        }
                        _mm512_mask_storeu_ps(to, mask, sum);
                        lane += 16;
                    }
                }
            }
        )*};
    }

    /// Elements of bf16 as f32.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn load_bf16(mask: u16, from: *const u8) -> __m512 {
        // SAFETY: masked elements are not touched.
        let halves = unsafe { _mm256_maskz_loadu_epi16(mask, from.cast()) };
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
    }

    macro_rules! of_bf16 {
        ($($name:ident by $reduce:ident;)*) => {$(
            /// # Safety
            ///
            /// As for [`super::ReduceLanes`]; the CPU has AVX-512.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            pub(crate) unsafe fn $name(sources: &[*const u8], lanes: usize, target: *mut u8) {
                let Some((&first, rest)) = sources.split_first() else { return };
                for lane in (0..lanes).step_by(16) {
                    let left = lanes - lane;
                    let mask = if left >= 16 { 0xffff } else { (1u16 << left) - 1 };
                    // SAFETY: masked lanes are not accessed.
                    unsafe {
                        let mut found = load_bf16(mask, first.add(2 * lane));
                        for &source in rest {
                            found = $reduce(found, load_bf16(mask, source.add(2 * lane)));
                        }
                        // The result is one of the elements, so nothing is rounded.
                        let halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(_mm512_castps_si512(found)));
                        _mm256_mask_storeu_epi16(target.add(2 * lane).cast(), mask, halves);
                    }
                }
            }
        )*};
    }

    of_bf16! {
        largest_of_bf16 by larger;
        smallest_of_bf16 by smaller;
    }

    in_registers! {
        sums by add;
        largest by larger;
        smallest by smaller;
    }
}
