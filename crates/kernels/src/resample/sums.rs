//! Weighted sums of rows.

use std::ops::{Add, Mul};

use super::taps::Taps;
use crate::isa::Isa;

/// A type whose elements are summed.
pub(super) trait ElementSums: Copy + Add<Output = Self> + Mul<Output = Self> + Sync + Send {}

impl ElementSums for f32 {}
impl ElementSums for f64 {}

type Sums<T> = unsafe fn(&Taps<T>, usize, usize, *const T, &mut [T]);

/// The loop for an instruction set.
#[derive(Clone, Copy)]
pub(super) struct RowSums<T>(Sums<T>);

impl<T: ElementSums> RowSums<T> {
    pub(super) fn portable() -> Self {
        Self(rows::<T>)
    }

    /// Sums the rows of all taps of an element: those of the source are `inner` elements apart.
    ///
    /// # Safety
    ///
    /// The rows may be read as far as the result is long.
    #[inline(always)]
    pub(super) unsafe fn run(
        self,
        taps: &Taps<T>,
        column: usize,
        inner: usize,
        source: *const T,
        result: &mut [T],
    ) {
        // SAFETY: guaranteed by the caller; the loop was chosen for this CPU.
        unsafe { (self.0)(taps, column, inner, source, result) }
    }
}

impl RowSums<f32> {
    pub(super) fn best(isa: Isa) -> Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Self(avx512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Self(avx2),
            _ => Self::portable(),
        }
    }
}

/// # Safety
///
/// As for [`RowSums::run`].
#[inline(always)]
unsafe fn rows<T: ElementSums>(
    taps: &Taps<T>,
    column: usize,
    inner: usize,
    source: *const T,
    result: &mut [T],
) {
    let length = result.len();
    let tap = |at: usize| {
        let at = at * taps.count + column;
        // SAFETY: guaranteed by the caller.
        let row = unsafe { std::slice::from_raw_parts(source.add(taps.places[at] * inner), length) };
        (row, taps.weights[at])
    };
    let ((one, by_one), (other, by_other)) = (tap(0), tap(1));
    for ((to, &one), &other) in result.iter_mut().zip(one).zip(other) {
        *to = one * by_one + other * by_other;
    }
    for (row, weight) in (2..taps.places.len() / taps.count).map(tap) {
        for (to, &from) in result.iter_mut().zip(row) {
            *to = *to + from * weight;
        }
    }
}

/// # Safety
///
/// The CPU has AVX-512; the rest as for [`RowSums::run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512(taps: &Taps<f32>, column: usize, inner: usize, source: *const f32, result: &mut [f32]) {
    // SAFETY: guaranteed by the caller.
    unsafe { rows(taps, column, inner, source, result) }
}

/// # Safety
///
/// The CPU has AVX2; the rest as for [`RowSums::run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(taps: &Taps<f32>, column: usize, inner: usize, source: *const f32, result: &mut [f32]) {
    // SAFETY: guaranteed by the caller.
    unsafe { rows(taps, column, inner, source, result) }
}
