//! Strided loads and stores with conversions.

// Buffers are passed as pointers.
#![allow(unsafe_code)]

use half::{bf16, f16};

use super::lane_type::{NarrowFloat, for_width};

/// A run of elements: a pointer and a stride in elements.
#[derive(Clone, Copy)]
pub(super) struct StridedRun<P> {
    pub(super) data: P,
    pub(super) stride: isize,
}

/// Copies elements of `width` bytes.
///
/// # Safety
///
/// The source can be read and the target written, both are aligned to their elements, and they do not overlap.
pub(super) unsafe fn copy(width: usize, from: StridedRun<*const u8>, to: StridedRun<*mut u8>, count: usize) {
    for_width!(width, T => {
        // SAFETY: guaranteed by the caller.
        unsafe { each(from, to, count, |x: T| x) }
    });
}

/// Copies narrow floats to f32.
///
/// # Safety
///
/// As [`copy`].
pub(super) unsafe fn widen(
    narrow: NarrowFloat,
    from: StridedRun<*const u8>,
    to: StridedRun<*mut u8>,
    count: usize,
) {
    match narrow {
        // SAFETY: guaranteed by the caller.
        NarrowFloat::F16 => unsafe { each(from, to, count, f16::to_f32) },
        // SAFETY: guaranteed by the caller.
        NarrowFloat::Bf16 => unsafe { each(from, to, count, bf16::to_f32) },
    }
}

/// Copies f32 to narrow floats.
///
/// # Safety
///
/// As [`copy`].
pub(super) unsafe fn narrow(
    narrow: NarrowFloat,
    from: StridedRun<*const u8>,
    to: StridedRun<*mut u8>,
    count: usize,
) {
    match narrow {
        // SAFETY: guaranteed by the caller.
        NarrowFloat::F16 => unsafe { each(from, to, count, f16::from_f32) },
        // SAFETY: guaranteed by the caller.
        NarrowFloat::Bf16 => unsafe { each(from, to, count, bf16::from_f32) },
    }
}

/// # Safety
///
/// As [`copy`].
#[inline(always)]
unsafe fn each<A: Copy, R: Copy>(
    from: StridedRun<*const u8>,
    to: StridedRun<*mut u8>,
    count: usize,
    f: impl Fn(A) -> R,
) {
    let (source, target) = (from.data.cast::<A>(), to.data.cast::<R>());
    match (from.stride, to.stride) {
        (1, 1) => {
            // SAFETY: guaranteed by the caller.
            let (source, target) = unsafe {
                (std::slice::from_raw_parts(source, count), std::slice::from_raw_parts_mut(target, count))
            };
            target.iter_mut().zip(source).for_each(|(target, &source)| *target = f(source));
        }
        (0, 1) if count > 0 => {
            // SAFETY: guaranteed by the caller.
            let (value, target) = unsafe { (f(*source), std::slice::from_raw_parts_mut(target, count)) };
            target.fill(value);
        }
        (by, to_by) => {
            for at in 0..count as isize {
                // SAFETY: guaranteed by the caller.
                unsafe { target.offset(at * to_by).write(f(source.offset(at * by).read())) }
            }
        }
    }
}
