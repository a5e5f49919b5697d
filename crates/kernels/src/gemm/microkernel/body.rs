//! The body of all vector micro-kernels: accumulators of a few rows by a few vectors stay in registers.

use std::{array, ptr};

use super::family::KernelArgs;
use super::vector::{PanelElement, Vector};
use crate::prefetch::{prefetch_l1, prefetch_l2};

/// Computes a tile of `MR` rows and `NV` vectors. Each output element is one chain of additions in the order of the
/// runs, so its value does not depend on the tile that it falls into.
///
/// # Safety
///
/// As for [`MicroKernel`](super::family::MicroKernel); inlined into a function that enables the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, P: PanelElement<V>, const MR: usize, const NV: usize>(
    args: &KernelArgs,
) {
    let out = args.out.cast::<V::Element>();
    let last = args.columns - (NV - 1) * V::LANES;
    let whole = last == V::LANES;
    // SAFETY: the caller guarantees that the pointers are valid for that many rows, columns and elements, and that the
    // instruction set is available.
    unsafe {
        let mut sums = [[V::zero(); NV]; MR];
        if args.accumulate {
            for (row, sums) in sums.iter_mut().enumerate() {
                let out = out.add(row * args.out_stride);
                for (at, sum) in sums.iter_mut().enumerate() {
                    let from = out.add(at * V::LANES);
                    *sum = if whole || at + 1 < NV { V::load(from) } else { V::load_part(from, last) };
                }
            }
        }
        let mut rhs = args.rhs.cast::<P>();
        let (mut skip, mut steps) = (args.skip, args.run);
        if P::LEAD && skip == 0 && steps > 0 {
            for sums in &mut sums {
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum = P::begin(*sum, P::load(rhs.add(at * V::LANES)));
                }
            }
            rhs = rhs.add(NV * V::LANES);
            (skip, steps) = (1, steps - 1);
        }
        let mut next_out =
            OutputLines { first: args.next_out, stride: args.out_stride * size_of::<V::Element>() };
        for tap in 0..args.taps {
            let table = args.rows.add(tap * args.pitch);
            let rows: [*const V::Element; MR] =
                array::from_fn(|row| (*table.add(row)).cast::<V::Element>().add(skip));
            let prefetch = args.prefetch.wrapping_add(tap * steps * PREFETCH_BYTES);
            sums = run(sums, &rows, rhs, steps, prefetch, next_out);
            next_out.first = ptr::null();
            rhs = rhs.add(steps * NV * V::LANES);
        }
        for (row, sums) in sums.iter().enumerate() {
            let out = out.add(row * args.out_stride);
            for (at, sum) in sums.iter().enumerate() {
                let to = out.add(at * V::LANES);
                if whole || at + 1 < NV { sum.store(to) } else { sum.store_part(to, last) }
            }
        }
    }
}

/// Unroll factor of the inner loop.
const UNROLL: usize = 4;

/// Bytes prefetched for each element of a row: a cache line per iteration of the inner loop.
pub(crate) const PREFETCH_BYTES: usize = 64 / UNROLL;

/// The most rows of kernels that wait for their panel: they prefetch all of it, and not a part of the next one.
pub(crate) const WAITING_ROWS: usize = 2;

/// How far ahead they do, in bytes.
const AHEAD: usize = 2048;

/// How far ahead kernels do that take many instructions for a byte: what they wait for fits into the L2 cache only.
const FAR_AHEAD: usize = 4096;

/// Prefetches so many bytes that follow [`FAR_AHEAD`] of an address.
#[inline(always)]
pub(super) fn prefetch_far_ahead(of: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(64) {
        prefetch_l2(of.wrapping_add(FAR_AHEAD + at));
    }
}

/// Prefetches so many bytes that follow [`AHEAD`] of an address.
#[inline(always)]
fn prefetch_ahead(of: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(64) {
        prefetch_l1(of.wrapping_add(AHEAD + at));
    }
}

/// The cache lines of an output tile.
#[derive(Clone, Copy)]
struct OutputLines {
    /// Null for no tile.
    first: *const u8,
    /// From one row to the next, in bytes.
    stride: usize,
}

impl OutputLines {
    /// Prefetches the `at`-th line of a tile of so many rows of so many bytes, which may begin within a line.
    #[inline(always)]
    fn prefetch(self, at: usize, rows: usize, bytes: usize) {
        let lines = bytes.div_ceil(64) + 1;
        if at < rows * lines && !self.first.is_null() {
            prefetch_l1(self.first.wrapping_add(at / lines * self.stride + at % lines * 64));
        }
    }
}

/// Accumulates one run.
#[inline(always)]
unsafe fn run<V: Vector, P: PanelElement<V>, const MR: usize, const NV: usize>(
    mut sums: [[V; NV]; MR],
    rows: &[*const V::Element; MR],
    mut rhs: *const P,
    run: usize,
    prefetch: *const u8,
    next_out: OutputLines,
) -> [[V; NV]; MR] {
    let mut at = 0;
    // SAFETY: the rows have `run` elements each and the panel has as many rows, guaranteed by the caller.
    unsafe {
        while at + UNROLL <= run {
            if MR <= WAITING_ROWS {
                prefetch_ahead(rhs.cast(), UNROLL * NV * V::LANES * size_of::<P>());
            } else {
                prefetch_l2(prefetch.wrapping_add(at * PREFETCH_BYTES));
            }
            next_out.prefetch(at / UNROLL, MR, NV * V::LANES * size_of::<V::Element>());
            for step in 0..UNROLL {
                sums = accumulate_element(sums, rows, at + step, rhs.add(step * NV * V::LANES));
            }
            rhs = rhs.add(UNROLL * NV * V::LANES);
            at += UNROLL;
        }
        while at < run {
            sums = accumulate_element(sums, rows, at, rhs);
            rhs = rhs.add(NV * V::LANES);
            at += 1;
        }
    }
    sums
}

/// Accumulates one element of each row.
#[inline(always)]
unsafe fn accumulate_element<V: Vector, P: PanelElement<V>, const MR: usize, const NV: usize>(
    mut sums: [[V; NV]; MR],
    rows: &[*const V::Element; MR],
    at: usize,
    rhs: *const P,
) -> [[V; NV]; MR] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let rhs: [V; NV] = array::from_fn(|vector| P::load(rhs.add(vector * V::LANES)));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let lhs = V::splat(row.add(at));
            for (sum, rhs) in sums.iter_mut().zip(rhs) {
                *sum = P::multiply_add(lhs, rhs, *sum);
            }
        }
    }
    sums
}
