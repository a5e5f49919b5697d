//! Loops over the rows of tiles, compiled for each instruction set.

// Tiles are memory that the executor lays out; loops get at it by address.
#![allow(unsafe_code)]

use crate::isa::Isa;

/// An operand of a step. Rows lie `row_stride` bytes apart; columns are neighbours, or all are the row's one element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) data: *const u8,
    pub(super) row_stride: isize,
    pub(super) one_column: bool,
}

/// What a step computes on: as many rows and columns of each operand, written to rows `out_stride` bytes apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) out: *mut u8,
    pub(super) out_stride: isize,
    pub(super) operands: [Operand; 3],
}

impl Call {
    /// The address of an operand's row.
    #[inline(always)]
    pub(super) fn row(&self, operand: usize, row: usize) -> *const u8 {
        let Operand { data, row_stride, .. } = self.operands[operand];
        data.wrapping_offset(row_stride * row as isize)
    }

    /// The address of a row of the result.
    #[inline(always)]
    pub(super) fn out_row(&self, row: usize) -> *mut u8 {
        self.out.wrapping_offset(self.out_stride * row as isize)
    }
}

/// The loop of a step.
///
/// Its caller sees to it that all that the call names can be read and written, is aligned to the types that the loop was
/// made for, and that the result overlaps no operand. Unless `takes_one_column`, every operand has all columns.
pub(super) struct Kernel {
    pub(super) run: Box<dyn Fn(&Call) + Send + Sync>,
    pub(super) takes_one_column: bool,
}

impl Kernel {
    fn new(run: impl Fn(&Call) + Send + Sync + 'static) -> Self {
        Self { run: Box::new(run), takes_one_column: false }
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("takes_one_column", &self.takes_one_column).finish_non_exhaustive()
    }
}

/// Makes the kernel of a loop over rows: the function compiled for AVX-512 and for what every processor has.
macro_rules! kernel_of {
    ($body:ident, $isa:expr, $f:expr, <$($T:ident),*>) => {{
        /// # Safety
        ///
        /// The processor has AVX-512; the rest as the loop itself.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        unsafe fn avx512<$($T: Copy),*, F: Fn($($T),*) -> R, R: Copy>(call: &Call, f: &F) {
            // SAFETY: the caller's promise.
            unsafe { $body(call, f) }
        }
        let f = $f;
        match $isa {
            // SAFETY: the instruction set is one that this processor has, the rest is what callers of kernels promise.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Kernel::new(move |call| unsafe { avx512(call, &f) }),
            // SAFETY: what callers of kernels promise.
            _ => Kernel::new(move |call| unsafe { $body(call, &f) }),
        }
    }};
}

/// A kernel that applies a function of one element.
pub(super) fn map1<A, R, F>(isa: Isa, f: F) -> Kernel
where
    A: Copy + 'static,
    R: Copy + 'static,
    F: Fn(A) -> R + Copy + Send + Sync + 'static,
{
    kernel_of!(rows1, isa, f, <A>)
}

/// A kernel that applies a function of two elements.
pub(super) fn map2<A, B, R, F>(isa: Isa, f: F) -> Kernel
where
    A: Copy + 'static,
    B: Copy + 'static,
    R: Copy + 'static,
    F: Fn(A, B) -> R + Copy + Send + Sync + 'static,
{
    kernel_of!(rows2, isa, f, <A, B>)
}

/// A kernel that applies a function of three elements.
pub(super) fn map3<A, B, C, R, F>(isa: Isa, f: F) -> Kernel
where
    A: Copy + 'static,
    B: Copy + 'static,
    C: Copy + 'static,
    R: Copy + 'static,
    F: Fn(A, B, C) -> R + Copy + Send + Sync + 'static,
{
    kernel_of!(rows3, isa, f, <A, B, C>)
}

/// # Safety
///
/// What callers of kernels promise.
#[inline(always)]
unsafe fn rows1<A: Copy, R: Copy, F: Fn(A) -> R>(call: &Call, f: &F) {
    for row in 0..call.rows {
        // SAFETY: the caller's promise.
        unsafe { each1(result(call, row), operand(call, 0, row), f) }
    }
}

/// # Safety
///
/// What callers of kernels promise.
#[inline(always)]
unsafe fn rows2<A: Copy, B: Copy, R: Copy, F: Fn(A, B) -> R>(call: &Call, f: &F) {
    for row in 0..call.rows {
        // SAFETY: the caller's promise.
        unsafe { each2(result(call, row), operand(call, 0, row), operand(call, 1, row), f) }
    }
}

/// # Safety
///
/// What callers of kernels promise.
#[inline(always)]
unsafe fn rows3<A: Copy, B: Copy, C: Copy, R: Copy, F: Fn(A, B, C) -> R>(call: &Call, f: &F) {
    for row in 0..call.rows {
        // SAFETY: the caller's promise.
        let (a, b, c) = unsafe { (operand(call, 0, row), operand(call, 1, row), operand(call, 2, row)) };
        // SAFETY: the caller's promise.
        unsafe { each3(result(call, row), a, b, c, f) }
    }
}

/// # Safety
///
/// The operand's row can be read as elements of this type.
#[inline(always)]
unsafe fn operand<T>(call: &Call, operand: usize, row: usize) -> &[T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(call.row(operand, row).cast(), call.columns) }
}

/// # Safety
///
/// The result's row can be written as elements of this type and nothing else refers to it.
#[inline(always)]
#[allow(clippy::mut_from_ref)] // The call only names the memory; it does not hold it.
unsafe fn result<T>(call: &Call, row: usize) -> &mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(call.out_row(row).cast(), call.columns) }
}

// The parameters tell the compiler that the slices do not overlap, without which it would test for that in each row.
#[inline(always)]
fn each1<A: Copy, R>(out: &mut [R], a: &[A], f: &impl Fn(A) -> R) {
    out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a));
}

#[inline(always)]
fn each2<A: Copy, B: Copy, R>(out: &mut [R], a: &[A], b: &[B], f: &impl Fn(A, B) -> R) {
    out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = f(a, b));
}

#[inline(always)]
fn each3<A: Copy, B: Copy, C: Copy, R>(out: &mut [R], a: &[A], b: &[B], c: &[C], f: &impl Fn(A, B, C) -> R) {
    out.iter_mut().zip(a).zip(b).zip(c).for_each(|(((out, &a), &b), &c)| *out = f(a, b, c));
}
