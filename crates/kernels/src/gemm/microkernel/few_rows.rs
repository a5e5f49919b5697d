//! A few rows times an operand that is read once, as it lies in memory: packing it would take longer than the product.

use std::array;

use super::vector::{PanelElement, Vector};

/// The arguments of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FewRowsArgs {
    /// The first of the rows, whose elements are one after the other.
    pub(crate) rows: *const f32,
    /// From one row to the next, in elements.
    pub(crate) row_stride: usize,
    /// How many rows there are.
    pub(crate) m: usize,
    /// The right-hand operand.
    pub(crate) rhs: *const u8,
    /// From one of its rows or columns to the next, in elements: the other way its elements are one after the other.
    pub(crate) rhs_stride: usize,
    /// The depth.
    pub(crate) k: usize,
    /// Columns of the result.
    pub(crate) n: usize,
    /// The first element of the result.
    pub(crate) out: *mut f32,
    /// The row stride of the result, in elements.
    pub(crate) out_stride: usize,
}

/// A kernel.
///
/// # Safety
///
/// The CPU has its instructions; all pointers of the arguments are valid.
pub(crate) type FewRowsFn = unsafe fn(&FewRowsArgs);

/// Rows that a kernel takes together.
const ROWS: usize = 4;
/// Columns of dot products, or vectors of a row of the operand, that it takes together.
const TOGETHER: usize = 4;

/// Calls `$body` with the number of rows, up to [`ROWS`] at a time, as a constant.
macro_rules! by_rows {
    ($args:expr, $body:ident :: <$V:ty, $P:ty>) => {
        for first in (0..$args.m).step_by(ROWS) {
            let part = FewRowsArgs {
                rows: $args.rows.add(first * $args.row_stride),
                out: $args.out.add(first * $args.out_stride),
                ..*$args
            };
            match $args.m - first {
                1 => $body::<$V, $P, 1>(&part),
                2 => $body::<$V, $P, 2>(&part),
                3 => $body::<$V, $P, 3>(&part),
                _ => $body::<$V, $P, ROWS>(&part),
            }
        }
    };
}

/// The product by an operand whose columns lie in one piece each.
///
/// # Safety
///
/// As for [`FewRowsFn`]; inlined into a function that enables the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn whole_columns<V: Vector<Element = f32>, P: PanelElement<V> + Into<f32>>(
    args: &FewRowsArgs,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { by_rows!(args, dots::<V, P>) }
}

/// The product by an operand whose rows lie in one piece each.
///
/// # Safety
///
/// As for [`whole_columns`].
#[inline(always)]
pub(super) unsafe fn whole_rows<V: Vector<Element = f32>, P: PanelElement<V> + Into<f32>>(
    args: &FewRowsArgs,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { by_rows!(args, sums_of_rows::<V, P>) }
}

#[inline(always)]
unsafe fn dots<V: Vector<Element = f32>, P: PanelElement<V> + Into<f32>, const MR: usize>(
    args: &FewRowsArgs,
) {
    let mut first = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while first + TOGETHER <= args.n {
            dots_of::<V, P, MR, TOGETHER>(args, first);
            first += TOGETHER;
        }
        while first < args.n {
            dots_of::<V, P, MR, 1>(args, first);
            first += 1;
        }
    }
}

#[inline(always)]
unsafe fn dots_of<
    V: Vector<Element = f32>,
    P: PanelElement<V> + Into<f32>,
    const MR: usize,
    const COLUMNS: usize,
>(
    args: &FewRowsArgs,
    first: usize,
) {
    let whole = args.k / V::LANES * V::LANES;
    // SAFETY: guaranteed by the caller: rows and columns have `k` elements.
    unsafe {
        let columns: [*const P; COLUMNS] =
            array::from_fn(|at| args.rhs.cast::<P>().add((first + at) * args.rhs_stride));
        let rows: [*const f32; MR] = array::from_fn(|row| args.rows.add(row * args.row_stride));
        let mut sums = [[V::zero(); COLUMNS]; MR];
        for at in (0..whole).step_by(V::LANES) {
            let elements = columns.map(|column| P::load(column.add(at)));
            for (sums, row) in sums.iter_mut().zip(rows) {
                let row = V::load(row.add(at));
                for (sum, elements) in sums.iter_mut().zip(elements) {
                    *sum = row.multiply_add(elements, *sum);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (column, sum) in sums.iter().enumerate() {
                let mut lanes = [0.0f32; 16];
                sum.store(lanes.as_mut_ptr());
                let mut total = sum_of_lanes(lanes);
                for at in whole..args.k {
                    let element: f32 = (*columns[column].add(at)).into();
                    total += *rows[row].add(at) * element;
                }
                *args.out.add(row * args.out_stride + first + column) = total;
            }
        }
    }
}

/// The sum of lanes, halves added to halves.
#[inline(always)]
pub(super) fn sum_of_lanes(lanes: [f32; 16]) -> f32 {
    let eight: [f32; 8] = array::from_fn(|at| lanes[at] + lanes[at + 8]);
    let four: [f32; 4] = array::from_fn(|at| eight[at] + eight[at + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[inline(always)]
unsafe fn sums_of_rows<V: Vector<Element = f32>, P: PanelElement<V> + Into<f32>, const MR: usize>(
    args: &FewRowsArgs,
) {
    let mut first = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while first + TOGETHER * V::LANES <= args.n {
            columns_of::<V, P, MR, TOGETHER>(args, first);
            first += TOGETHER * V::LANES;
        }
        while first + V::LANES <= args.n {
            columns_of::<V, P, MR, 1>(args, first);
            first += V::LANES;
        }
        for column in first..args.n {
            for row in 0..MR {
                let mut total = 0.0;
                for at in 0..args.k {
                    let element: f32 = (*args.rhs.cast::<P>().add(at * args.rhs_stride + column)).into();
                    total += *args.rows.add(row * args.row_stride + at) * element;
                }
                *args.out.add(row * args.out_stride + column) = total;
            }
        }
    }
}

#[inline(always)]
unsafe fn columns_of<
    V: Vector<Element = f32>,
    P: PanelElement<V> + Into<f32>,
    const MR: usize,
    const NV: usize,
>(
    args: &FewRowsArgs,
    first: usize,
) {
    // SAFETY: guaranteed by the caller: `NV` vectors of columns begin at the first.
    unsafe {
        let mut sums = [[V::zero(); NV]; MR];
        for at in 0..args.k {
            let row = args.rhs.cast::<P>().add(at * args.rhs_stride + first);
            let elements: [V; NV] = array::from_fn(|vector| P::load(row.add(vector * V::LANES)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let weight = V::splat(args.rows.add(row * args.row_stride + at));
                for (sum, elements) in sums.iter_mut().zip(elements) {
                    *sum = weight.multiply_add(elements, *sum);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (vector, sum) in sums.iter().enumerate() {
                sum.store(args.out.add(row * args.out_stride + first + vector * V::LANES));
            }
        }
    }
}
