//! Elementwise loops over the rows of tiles, compiled for each instruction set.

// Tiles are in memory that the evaluator lays out; loops access them by pointers.
#![allow(unsafe_code)]

use crate::isa::Isa;

/// An operand of a loop. Rows are `row_stride` bytes apart; columns are contiguous, or one element is broadcast.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopOperand {
    pub(super) data: *const u8,
    pub(super) row_stride: isize,
    pub(super) one_column: bool,
}

/// The arguments of a loop: rows and columns of each operand, and the result with rows `out_stride` bytes apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopCall {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) out: *mut u8,
    pub(super) out_stride: isize,
    pub(super) operands: [LoopOperand; 3],
}

impl LoopCall {
    /// The address of an operand's row.
    #[inline(always)]
    pub(super) fn row(&self, operand: usize, row: usize) -> *const u8 {
        let LoopOperand { data, row_stride, .. } = self.operands[operand];
        data.wrapping_offset(row_stride * row as isize)
    }

    /// The address of a row of the result.
    #[inline(always)]
    pub(super) fn out_row(&self, row: usize) -> *mut u8 {
        self.out.wrapping_offset(self.out_stride * row as isize)
    }
}

/// The loop of an instruction.
///
/// The caller guarantees that all rows can be read and written, are aligned to the types of the loop, and that the
/// result overlaps no operand. Unless `takes_one_column`, every operand has all columns.
pub(super) struct LoopKernel {
    pub(super) run: Box<dyn Fn(&LoopCall) + Send + Sync>,
    pub(super) takes_one_column: bool,
}

impl LoopKernel {
    fn new(run: impl Fn(&LoopCall) + Send + Sync + 'static) -> Self {
        Self { run: Box::new(run), takes_one_column: false }
    }
}

impl std::fmt::Debug for LoopKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopKernel").field("takes_one_column", &self.takes_one_column).finish_non_exhaustive()
    }
}

/// Makes the kernel of a loop over rows: the function compiled for AVX-512 and for what every processor has.
macro_rules! isa_kernel {
    ($body:ident, $isa:expr, $f:expr, <$($T:ident),*>) => {{
        /// # Safety
        ///
        /// The CPU has AVX-512; the rest as the loop itself.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        unsafe fn avx512<$($T: Copy),*, F: Fn($($T),*) -> R, R: Copy>(call: &LoopCall, f: &F) {
            // SAFETY: guaranteed by the caller.
            unsafe { $body(call, f) }
        }
        let f = $f;
        match $isa {
            // SAFETY: the instruction set is one that this CPU has, the rest is guaranteed by the callers of kernels.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => LoopKernel::new(move |call| unsafe { avx512(call, &f) }),
            // SAFETY: guaranteed by the callers of kernels.
            _ => LoopKernel::new(move |call| unsafe { $body(call, &f) }),
        }
    }};
}

/// A kernel that applies a function of one element.
pub(super) fn map1<A, R, F>(isa: Isa, f: F) -> LoopKernel
where
    A: Copy + 'static,
    R: Copy + 'static,
    F: Fn(A) -> R + Copy + Send + Sync + 'static,
{
    isa_kernel!(rows1, isa, f, <A>)
}

/// A kernel that applies a function of two elements.
pub(super) fn map2<A, B, R, F>(isa: Isa, f: F) -> LoopKernel
where
    A: Copy + 'static,
    B: Copy + 'static,
    R: Copy + 'static,
    F: Fn(A, B) -> R + Copy + Send + Sync + 'static,
{
    isa_kernel!(rows2, isa, f, <A, B>)
}

/// A kernel that applies a function of three elements.
pub(super) fn map3<A, B, C, R, F>(isa: Isa, f: F) -> LoopKernel
where
    A: Copy + 'static,
    B: Copy + 'static,
    C: Copy + 'static,
    R: Copy + 'static,
    F: Fn(A, B, C) -> R + Copy + Send + Sync + 'static,
{
    isa_kernel!(rows3, isa, f, <A, B, C>)
}

/// # Safety
///
/// Guaranteed by the callers of kernels.
#[inline(always)]
unsafe fn rows1<A: Copy, R: Copy, F: Fn(A) -> R>(call: &LoopCall, f: &F) {
    for row in 0..call.rows {
        // SAFETY: guaranteed by the caller.
        unsafe { each1(result(call, row), operand(call, 0, row), f) }
    }
}

/// # Safety
///
/// Guaranteed by the callers of kernels.
#[inline(always)]
unsafe fn rows2<A: Copy, B: Copy, R: Copy, F: Fn(A, B) -> R>(call: &LoopCall, f: &F) {
    for row in 0..call.rows {
        // SAFETY: guaranteed by the caller.
        unsafe { each2(result(call, row), operand(call, 0, row), operand(call, 1, row), f) }
    }
}

/// # Safety
///
/// Guaranteed by the callers of kernels.
#[inline(always)]
unsafe fn rows3<A: Copy, B: Copy, C: Copy, R: Copy, F: Fn(A, B, C) -> R>(call: &LoopCall, f: &F) {
    for row in 0..call.rows {
        // SAFETY: guaranteed by the caller.
        let (a, b, c) = unsafe { (operand(call, 0, row), operand(call, 1, row), operand(call, 2, row)) };
        // SAFETY: guaranteed by the caller.
        unsafe { each3(result(call, row), a, b, c, f) }
    }
}

/// # Safety
///
/// The operand's row can be read as elements of this type.
#[inline(always)]
unsafe fn operand<T>(call: &LoopCall, operand: usize, row: usize) -> &[T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(call.row(operand, row).cast(), call.columns) }
}

/// # Safety
///
/// The result's row can be written as elements of this type and nothing else refers to it.
#[inline(always)]
#[allow(clippy::mut_from_ref)] // The call only names the memory; it does not hold it.
unsafe fn result<T>(call: &LoopCall, row: usize) -> &mut [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(call.out_row(row).cast(), call.columns) }
}

// Slice parameters tell the compiler that the rows do not alias.
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
