//! Folding arrays element by element: the inner loop of windows, updates and running folds.

use warpforge_tensor::ElementType;

use super::element::{Element, for_element};
use crate::fold::Fold;
use crate::isa::Isa;

/// Folds so many neighbours at each of the addresses, in their order, into as many at the last argument. There is an
/// address at least; the target may be one of them.
///
/// # Safety
///
/// So many elements may be read at each address and written at the target.
pub(crate) type FoldLanes = unsafe fn(&[*const u8], usize, *mut u8);

/// The fold of a type, where there is one.
pub(crate) fn fold_lanes(fold: Fold, element: ElementType) -> Option<FoldLanes> {
    let fold = if element == ElementType::Bool { fold.of_truths() } else { fold };
    #[cfg(target_arch = "x86_64")]
    if Isa::best() == Isa::Avx512 {
        match (fold, element) {
            (Fold::Sum, ElementType::F32) => return Some(x86::sums),
            (Fold::Maximum, ElementType::F32) => return Some(x86::largest),
            (Fold::Minimum, ElementType::F32) => return Some(x86::smallest),
            (Fold::Maximum, ElementType::BF16) => return Some(x86::largest_of_bf16),
            (Fold::Minimum, ElementType::BF16) => return Some(x86::smallest_of_bf16),
            _ => {}
        }
    }
    for_element!(element, T => by_fold::<T>(fold, element), else None)
}

/// Most neighbours that [`Scan`] takes at once.
pub(super) const SCANNED: usize = 64;

/// Running folds of at most [`SCANNED`] neighbours: from the initial value over so many rows that are a number of
/// elements apart, upwards or downwards.
///
/// # Safety
///
/// The initial value may be read, and all rows may be read at the source and written at the target.
pub(super) type Scan = unsafe fn(*const u8, *mut u8, &Rows, *const u8);

/// What a running fold goes over.
pub(super) struct Rows {
    pub(super) count: usize,
    pub(super) step: isize,
    pub(super) lanes: usize,
}

/// The running fold of a type, where there is one. Sums of f32 are kept in f64, so that long ones do not drift.
pub(super) fn scan(fold: Fold, element: ElementType) -> Option<Scan> {
    let fold = if element == ElementType::Bool { fold.of_truths() } else { fold };
    if (fold, element) == (Fold::Sum, ElementType::F32) {
        return Some(scan_sums);
    }
    fn by_fold<T: Element>(fold: Fold, element: ElementType) -> Option<Scan> {
        Some(match fold {
            Fold::Sum => scan_by::<T, Sum>,
            Fold::Product => scan_by::<T, Product>,
            Fold::Maximum => scan_by::<T, Largest>,
            Fold::Minimum => scan_by::<T, Smallest>,
            Fold::And | Fold::Or if element.is_float() => return None,
            Fold::And => scan_by::<T, And>,
            Fold::Or => scan_by::<T, Or>,
        })
    }
    for_element!(element, T => by_fold::<T>(fold, element), else None)
}

/// # Safety
///
/// As for [`Scan`].
unsafe fn scan_sums(source: *const u8, target: *mut u8, rows: &Rows, init: *const u8) {
    // SAFETY: the caller's promise.
    unsafe { scan_with::<f32, f64>(source, target, rows, init, f64::from, |sum| sum as f32, |a, b| a + b) }
}

/// # Safety
///
/// As for [`Scan`].
unsafe fn scan_by<T: Element, F: Function<T>>(
    source: *const u8,
    target: *mut u8,
    rows: &Rows,
    init: *const u8,
) {
    // SAFETY: the caller's promise.
    unsafe { scan_with::<T, T>(source, target, rows, init, |x| x, |x| x, F::of) }
}

/// # Safety
///
/// As for [`Scan`].
#[inline(always)]
unsafe fn scan_with<T: Copy, A: Copy>(
    source: *const u8,
    target: *mut u8,
    rows: &Rows,
    init: *const u8,
    widen: impl Fn(T) -> A,
    narrow: impl Fn(A) -> T,
    fold: impl Fn(A, A) -> A,
) {
    let (source, target) = (source.cast::<T>(), target.cast::<T>());
    // SAFETY: the caller's promise.
    unsafe {
        let mut values = [widen(init.cast::<T>().read_unaligned()); SCANNED];
        for row in 0..rows.count as isize {
            let (from, to) = (source.offset(row * rows.step), target.offset(row * rows.step));
            for (lane, value) in values.iter_mut().enumerate().take(rows.lanes) {
                *value = fold(*value, widen(from.add(lane).read_unaligned()));
                to.add(lane).write_unaligned(narrow(*value));
            }
        }
    }
}

/// A function of two elements that is known when the loop is compiled.
trait Function<T> {
    fn of(a: T, b: T) -> T;
}

macro_rules! functions {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        struct $name;
        impl<T: Element> Function<T> for $name {
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
    // Not asked of floats.
    And |a, b| a.and(b).unwrap_or(a);
    Or |a, b| a.or(b).unwrap_or(a);
}

fn by_fold<T: Element>(fold: Fold, element: ElementType) -> Option<FoldLanes> {
    Some(match fold {
        Fold::Sum => by_isa::<T, Sum>(),
        Fold::Product => by_isa::<T, Product>(),
        Fold::Maximum => by_isa::<T, Largest>(),
        Fold::Minimum => by_isa::<T, Smallest>(),
        Fold::And | Fold::Or if element.is_float() => return None,
        Fold::And => by_isa::<T, And>(),
        Fold::Or => by_isa::<T, Or>(),
    })
}

fn by_isa<T: Element, F: Function<T>>() -> FoldLanes {
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
/// As for [`FoldLanes`].
#[inline(always)]
unsafe fn portable<T: Element, F: Function<T>>(sources: &[*const u8], lanes: usize, target: *mut u8) {
    let Some((&first, rest)) = sources.split_first() else { return };
    // SAFETY: so many elements are at each address; reads do not ask for alignment.
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
    //! The loops with wider registers, and for f32 with sums that stay in them.

    use std::arch::x86_64::*;

    use super::{Element, Function, portable};

    /// # Safety
    ///
    /// As for [`super::FoldLanes`]; the processor has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c,fma")]
    pub(super) unsafe fn avx512<T: Element, F: Function<T>>(
        sources: &[*const u8],
        lanes: usize,
        target: *mut u8,
    ) {
        // SAFETY: the caller's promise.
        unsafe { portable::<T, F>(sources, lanes, target) }
    }

    /// # Safety
    ///
    /// As for [`super::FoldLanes`]; the processor has AVX2.
    #[target_feature(enable = "avx2,f16c,fma")]
    pub(super) unsafe fn avx2<T: Element, F: Function<T>>(
        sources: &[*const u8],
        lanes: usize,
        target: *mut u8,
    ) {
        // SAFETY: the caller's promise.
        unsafe { portable::<T, F>(sources, lanes, target) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(a, b)
    }

    // `range` orders zeros by sign and leaves NaN out; adding the two brings it back.

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
        ($($name:ident by $fold:ident;)*) => {$(
            /// # Safety
            ///
            /// As for [`super::FoldLanes`]; the processor has AVX-512.
            #[target_feature(enable = "avx512f,avx512dq")]
            pub(super) unsafe fn $name(sources: &[*const u8], lanes: usize, target: *mut u8) {
                let Some((&first, rest)) = sources.split_first() else { return };
                let mut lane = 0;
                while lane < lanes {
                    // SAFETY: masks keep what is beyond the lanes from being touched.
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
                                    *sum = $fold(*sum, _mm512_loadu_ps(at(source).add(16 * part)));
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
                            sum = $fold(sum, _mm512_maskz_loadu_ps(mask, at(source)));
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
        ($($name:ident by $fold:ident;)*) => {$(
            /// # Safety
            ///
            /// As for [`super::FoldLanes`]; the processor has AVX-512.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            pub(super) unsafe fn $name(sources: &[*const u8], lanes: usize, target: *mut u8) {
                let Some((&first, rest)) = sources.split_first() else { return };
                for lane in (0..lanes).step_by(16) {
                    let left = lanes - lane;
                    let mask = if left >= 16 { 0xffff } else { (1u16 << left) - 1 };
                    // SAFETY: masks keep what is beyond the lanes from being touched.
                    unsafe {
                        let mut found = load_bf16(mask, first.add(2 * lane));
                        for &source in rest {
                            found = $fold(found, load_bf16(mask, source.add(2 * lane)));
                        }
                        // One of the elements, so nothing is rounded.
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
