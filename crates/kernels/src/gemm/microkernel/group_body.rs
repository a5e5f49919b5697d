//! The body of micro-kernels on weights of 4 bits in groups: `code · scale + offset`.
//!
//! A group of a panel is the scales of its columns in bf16, their offsets, then the codes: eight rows of a column in a word. The codes
//! are multiplied and summed as they are; scale and offset follow once for each group.

use std::array;

use half::bf16;

use super::body::prefetch_far_ahead;
use super::family::KernelArgs;
use super::few_rows::sum_of_lanes;
use super::vector::{PanelElement, Vector};

/// Rows whose codes are in a word.
pub(crate) const ROWS_OF_WORD: usize = 8;

/// Words of codes, one for each column of a vector.
///
/// # Safety
///
/// As for [`Vector`].
pub(super) unsafe trait GroupCodes<V: Vector>: Copy {
    /// As many words as there are lanes.
    unsafe fn load(from: *const u8) -> Self;
    /// The codes of the next row, and the words without them.
    unsafe fn next(self) -> (V, Self);
}

/// Computes a tile of `MR` rows and `NV` vectors, group by group.
///
/// # Safety
///
/// As for [`MicroKernel`](super::family::MicroKernel); inlined into a function that enables the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn group_tile<V, W, const MR: usize, const NV: usize>(args: &KernelArgs)
where
    V: Vector<Element = f32>,
    W: GroupCodes<V>,
    bf16: PanelElement<V>,
{
    let out = args.out.cast::<f32>();
    let last = args.columns - (NV - 1) * V::LANES;
    let (group, width) = (args.unit, NV * V::LANES);
    // SAFETY: the caller guarantees that the pointers are valid for that many rows, columns and groups, and that the instruction set
    // is available.
    unsafe {
        if args.run == 0 && !args.accumulate {
            for row in 0..MR {
                (0..args.columns).for_each(|at| *out.add(row * args.out_stride + at) = 0.0);
            }
        }
        for step in 0..args.run {
            let panel = args.rhs.add(step * width * (group / 2 + 4));
            let rows: [*const f32; MR] =
                array::from_fn(|row| (*args.rows.add(row)).cast::<f32>().add((args.skip + step) * group));
            prefetch_far_ahead(panel, 4 * width);
            let sums = codes::<V, W, MR, NV>(&rows, panel.add(4 * width), group);
            let (scales, offsets) = (panel.cast::<bf16>(), panel.cast::<bf16>().add(width));
            for (row, sums) in sums.iter().enumerate() {
                let total = total::<V>(rows[row], group);
                let total = V::splat(&raw const total);
                for (at, sum) in sums.iter().enumerate() {
                    let to = out.add(row * args.out_stride + at * V::LANES);
                    let whole = at + 1 < NV || last == V::LANES;
                    let before = match (step > 0 || args.accumulate, whole) {
                        (false, _) => V::zero(),
                        (true, true) => V::load(to),
                        (true, false) => V::load_part(to, last),
                    };
                    let scale = <bf16 as PanelElement<V>>::load(scales.add(at * V::LANES));
                    let offset = <bf16 as PanelElement<V>>::load(offsets.add(at * V::LANES));
                    let result = total.multiply_add(offset, sum.multiply_add(scale, before));
                    if whole { result.store(to) } else { result.store_part(to, last) }
                }
            }
        }
    }
}

/// The rows of a group times its codes.
#[inline(always)]
unsafe fn codes<V: Vector<Element = f32>, W: GroupCodes<V>, const MR: usize, const NV: usize>(
    rows: &[*const f32; MR],
    mut codes: *const u8,
    group: usize,
) -> [[V; NV]; MR] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = [[V::zero(); NV]; MR];
        for first in (0..group).step_by(ROWS_OF_WORD) {
            prefetch_far_ahead(codes, NV * V::LANES * 4);
            let mut words: [W; NV] = array::from_fn(|at| W::load(codes.add(at * V::LANES * 4)));
            codes = codes.add(NV * V::LANES * 4);
            for at in first..first + ROWS_OF_WORD {
                let values: [V; NV] = array::from_fn(|vector| {
                    let (value, rest) = words[vector].next();
                    words[vector] = rest;
                    value
                });
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let row = V::splat(row.add(at));
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum = row.multiply_add(value, *sum);
                    }
                }
            }
        }
        sums
    }
}

/// The sum of the elements of a row in a group.
#[inline(always)]
unsafe fn total<V: Vector<Element = f32>>(row: *const f32, group: usize) -> f32 {
    // SAFETY: guaranteed by the caller; no vector has more than 16 lanes.
    unsafe {
        let one = V::splat(&1.0);
        let mut sums = V::zero();
        for at in (0..group).step_by(V::LANES) {
            let part = group - at;
            let values =
                if part >= V::LANES { V::load(row.add(at)) } else { V::load_part(row.add(at), part) };
            sums = values.multiply_add(one, sums);
        }
        let mut lanes = [0.0f32; 16];
        sums.store(lanes.as_mut_ptr());
        sum_of_lanes(lanes)
    }
}

/// Widens rows of a panel whose elements are weights.
///
/// # Safety
///
/// As for [`WidenFn`](super::family::WidenFn); inlined into a function that enables the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn widen_rows<V: Vector<Element = f32>, P: PanelElement<V>>(
    from: *const u8,
    rows: usize,
    width: usize,
    to: *mut f32,
) {
    for at in (0..rows * width).step_by(V::LANES) {
        // SAFETY: guaranteed by the caller.
        unsafe { P::load(from.cast::<P>().add(at)).store(to.add(at)) };
    }
}

/// Widens groups of a panel of 4 bits.
///
/// # Safety
///
/// As for [`widen_rows`].
#[inline(always)]
pub(super) unsafe fn widen_groups<V, W>(
    from: *const u8,
    steps: usize,
    group: usize,
    width: usize,
    to: *mut f32,
) where
    V: Vector<Element = f32>,
    W: GroupCodes<V>,
    bf16: PanelElement<V>,
{
    for step in 0..steps {
        for column in (0..width).step_by(V::LANES) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let panel = from.add(step * width * (group / 2 + 4));
                let scale = <bf16 as PanelElement<V>>::load(panel.cast::<bf16>().add(column));
                let offset = <bf16 as PanelElement<V>>::load(panel.cast::<bf16>().add(width + column));
                let to = to.add(step * group * width + column);
                for first in (0..group).step_by(ROWS_OF_WORD) {
                    let word = first / ROWS_OF_WORD;
                    let mut words = W::load(panel.add(4 * width + 4 * (word * width + column)));
                    for row in first..first + ROWS_OF_WORD {
                        let (value, rest) = words.next();
                        words = rest;
                        value.multiply_add(scale, offset).store(to.add(row * width));
                    }
                }
            }
        }
    }
}
