//! Elements between memory and registers.

// Buffers are given as addresses.
#![allow(unsafe_code)]

use half::{bf16, f16};

use super::lane::{Narrow, for_width};

/// Where elements are: an address and the distance of neighbours, in elements.
#[derive(Clone, Copy)]
pub(super) struct Run<P> {
    pub(super) data: P,
    pub(super) stride: isize,
}

/// Copies elements of some width as they are.
///
/// # Safety
///
/// The source can be read and the target written, both are aligned to their elements, and they do not overlap.
pub(super) unsafe fn copy(width: usize, from: Run<*const u8>, to: Run<*mut u8>, count: usize) {
    for_width!(width, T => {
        // SAFETY: the caller's promise.
        unsafe { each(from, to, count, |x: T| x) }
    });
}

/// Copies narrow floats to binary32.
///
/// # Safety
///
/// As [`copy`].
pub(super) unsafe fn widen(narrow: Narrow, from: Run<*const u8>, to: Run<*mut u8>, count: usize) {
    match narrow {
        // SAFETY: the caller's promise.
        Narrow::F16 => unsafe { each(from, to, count, f16::to_f32) },
        // SAFETY: the caller's promise.
        Narrow::Bf16 => unsafe { each(from, to, count, bf16::to_f32) },
    }
}

/// Copies binary32 to narrow floats.
///
/// # Safety
///
/// As [`copy`].
pub(super) unsafe fn narrow(narrow: Narrow, from: Run<*const u8>, to: Run<*mut u8>, count: usize) {
    match narrow {
        // SAFETY: the caller's promise.
        Narrow::F16 => unsafe { each(from, to, count, f16::from_f32) },
        // SAFETY: the caller's promise.
        Narrow::Bf16 => unsafe { each(from, to, count, bf16::from_f32) },
    }
}

/// # Safety
///
/// As [`copy`].
#[inline(always)]
unsafe fn each<A: Copy, R: Copy>(from: Run<*const u8>, to: Run<*mut u8>, count: usize, f: impl Fn(A) -> R) {
    let (source, target) = (from.data.cast::<A>(), to.data.cast::<R>());
    match (from.stride, to.stride) {
        (1, 1) => {
            // SAFETY: the caller's promise.
            let (source, target) = unsafe {
                (std::slice::from_raw_parts(source, count), std::slice::from_raw_parts_mut(target, count))
            };
            target.iter_mut().zip(source).for_each(|(target, &source)| *target = f(source));
        }
        (0, 1) if count > 0 => {
            // SAFETY: the caller's promise.
            let (value, target) = unsafe { (f(*source), std::slice::from_raw_parts_mut(target, count)) };
            target.fill(value);
        }
        (by, to_by) => {
            for at in 0..count as isize {
                // SAFETY: the caller's promise.
                unsafe { target.offset(at * to_by).write(f(source.offset(at * by).read())) }
            }
        }
    }
}
