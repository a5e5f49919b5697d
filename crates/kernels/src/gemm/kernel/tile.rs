//! The one body of all vector kernels: sums of a few rows by a few vectors that stay in registers.

use std::array;

use super::Call;
use super::vector::Vector;

/// Computes a tile of `MR` rows and `NV` vectors. Each element of the result is one chain of additions in the order of
/// the runs, so its value does not depend on which tile it falls into.
///
/// # Safety
///
/// As for [`Kernel`](super::Kernel); inlined into a function that enables the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const MR: usize, const NV: usize>(call: &Call) {
    let out = call.out.cast::<V::Element>();
    let last = call.columns - (NV - 1) * V::LANES;
    let whole = last == V::LANES;
    // SAFETY: the caller promises that the addresses are good for so many rows, columns and elements, and that the
    // instructions exist.
    unsafe {
        let mut sums = [[V::zero(); NV]; MR];
        if call.accumulate {
            for (row, sums) in sums.iter_mut().enumerate() {
                let out = out.add(row * call.out_stride);
                for (at, sum) in sums.iter_mut().enumerate() {
                    let from = out.add(at * V::LANES);
                    *sum = if whole || at + 1 < NV { V::load(from) } else { V::load_part(from, last) };
                }
            }
        }
        let mut rhs = call.rhs.cast::<V::Element>();
        for tap in 0..call.taps {
            let table = call.rows.add(tap * call.pitch);
            let rows: [*const V::Element; MR] =
                array::from_fn(|row| (*table.add(row)).cast::<V::Element>().add(call.skip));
            let ahead = call.ahead.wrapping_add(tap * call.run * AHEAD);
            sums = run(sums, &rows, rhs, call.run, ahead);
            rhs = rhs.add(call.run * NV * V::LANES);
        }
        for (row, sums) in sums.iter().enumerate() {
            let out = out.add(row * call.out_stride);
            for (at, sum) in sums.iter().enumerate() {
                let to = out.add(at * V::LANES);
                if whole || at + 1 < NV { sum.store(to) } else { sum.store_part(to, last) }
            }
        }
    }
}

/// Steps of the inner loop that are written out, so that its counting costs nothing.
const UNROLLED: usize = 4;

/// Bytes brought nearer for each element of a row: a line of cache for each turn of the inner loop.
pub(crate) const AHEAD: usize = 64 / UNROLLED;

/// Asks for a line of the second-level cache; any address will do.
#[inline(always)]
pub(crate) fn fetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this architecture have the instruction, and it ignores addresses that are not good.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Adds the products of one run.
#[inline(always)]
unsafe fn run<V: Vector, const MR: usize, const NV: usize>(
    mut sums: [[V; NV]; MR],
    rows: &[*const V::Element; MR],
    mut rhs: *const V::Element,
    run: usize,
    ahead: *const u8,
) -> [[V; NV]; MR] {
    let mut at = 0;
    // SAFETY: the rows have `run` elements each and the panel has as many rows, as the caller promises.
    unsafe {
        while at + UNROLLED <= run {
            fetch(ahead.wrapping_add(at * AHEAD));
            for step in 0..UNROLLED {
                sums = step_of(sums, rows, at + step, rhs.add(step * NV * V::LANES));
            }
            rhs = rhs.add(UNROLLED * NV * V::LANES);
            at += UNROLLED;
        }
        while at < run {
            sums = step_of(sums, rows, at, rhs);
            rhs = rhs.add(NV * V::LANES);
            at += 1;
        }
    }
    sums
}

/// Adds the products of one element of each row.
#[inline(always)]
unsafe fn step_of<V: Vector, const MR: usize, const NV: usize>(
    mut sums: [[V; NV]; MR],
    rows: &[*const V::Element; MR],
    at: usize,
    rhs: *const V::Element,
) -> [[V; NV]; MR] {
    // SAFETY: as the caller promises.
    unsafe {
        let rhs: [V; NV] = array::from_fn(|vector| V::load(rhs.add(vector * V::LANES)));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let lhs = V::splat(row.add(at));
            for (sum, rhs) in sums.iter_mut().zip(rhs) {
                *sum = lhs.multiply_add(rhs, *sum);
            }
        }
    }
    sums
}
