//! Products of matrices, block by block.
//!
//! Both operands are copied block by block into panels that the innermost loop reads from end to end; what an operand is
//! and where its elements lie is up to [`Lanes`]. Each element of the result is one sum over the depth in order, in runs
//! of [`RUN`] products.

use std::ops::Range;

use warpforge_tensor::Scalar;

use super::Threads;

/// Rows and columns of the result that a thread computes at a time.
const BLOCK: usize = 256;

/// Products that are summed in the elements' own precision before they are added to the wider total.
pub(crate) const RUN: usize = 128;

/// What products are summed in.
pub(crate) trait Multiply: Copy + Send + Sync {
    /// The sum of nothing.
    const ZERO: Self;

    /// What sums of runs are summed in.
    type Total: Copy + Send + Sync + Default;

    /// The sum with one more product.
    fn add_product(self, a: Self, b: Self) -> Self;

    /// The total with one more run.
    fn add_run(total: Self::Total, run: Self) -> Self::Total;

    /// The total as an element, to be rounded or wrapped to its type.
    fn scalar(total: Self::Total) -> Scalar;

    /// Computes a block of the result, by tiles of a size whose sums fit the registers of any 64-bit processor.
    fn block(part: &Part, lhs: &impl Lanes<Self>, rhs: &impl Lanes<Self>) -> Vec<Self::Total>;
}

macro_rules! multiply {
    ($($element:ty, $total:ty, tile $rows:literal x $columns:literal, $product:expr, $sum:expr, $scalar:expr;)*) => {
        $(impl Multiply for $element {
            const ZERO: Self = 0 as $element;
            type Total = $total;

            #[inline(always)]
            fn add_product(self, a: Self, b: Self) -> Self {
                let add_product: fn(Self, Self, Self) -> Self = $product;
                add_product(self, a, b)
            }

            #[inline(always)]
            fn add_run(total: $total, run: Self) -> $total {
                let add_run: fn($total, Self) -> $total = $sum;
                add_run(total, run)
            }

            #[inline(always)]
            fn scalar(total: $total) -> Scalar {
                let scalar: fn($total) -> Scalar = $scalar;
                scalar(total)
            }

            fn block(part: &Part, lhs: &impl Lanes<Self>, rhs: &impl Lanes<Self>) -> Vec<$total> {
                block::<Self, $rows, $columns>(part, lhs, rhs)
            }
        })*
    };
}

multiply! {
    f32, f64, tile 4 x 8, |sum, a, b| sum + a * b, |total, run| total + f64::from(run), Scalar::Float;
    f64, f64, tile 2 x 8, |sum, a, b| sum + a * b, |total, run| total + run, Scalar::Float;
    i64, i64, tile 2 x 8, |sum, a, b| sum.wrapping_add(a.wrapping_mul(b)), i64::wrapping_add,
        |total| Scalar::Int(i128::from(total));
}

/// One operand: the rows of the left, the columns of the right.
pub(crate) trait Lanes<A>: Sync {
    /// Writes elements `depth` of lanes `lanes` of a batch: all lanes of the first depth, then of the next. `panel` has
    /// `WIDTH` places for each depth; those beyond the lanes are left as they are.
    fn pack<const WIDTH: usize>(
        &self,
        batch: usize,
        lanes: Range<usize>,
        depth: Range<usize>,
        panel: &mut [[A; WIDTH]],
    );
}

/// The sizes of a product.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batches: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) depth: usize,
}

/// A part of the result.
pub(crate) struct Part {
    pub(crate) batch: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
    depth: usize,
}

/// Multiplies and hands every part of the result to `store`, its rows one after the other, from several threads.
pub(crate) fn multiply<A: Multiply>(
    threads: Threads,
    sizes: Sizes,
    lhs: &impl Lanes<A>,
    rhs: &impl Lanes<A>,
    store: impl Fn(&Part, &[A::Total]) + Sync,
) {
    let Sizes { batches, rows, columns, depth } = sizes;
    let blocks =
        |size: usize| (0..size.div_ceil(BLOCK)).map(move |at| at * BLOCK..size.min((at + 1) * BLOCK));
    let parts = (0..batches).flat_map(|batch| {
        blocks(columns).flat_map(move |columns| {
            blocks(rows).map(move |rows| Part { batch, rows, columns: columns.clone(), depth })
        })
    });
    let cost = [rows, columns, depth.max(1)].iter().fold(batches, |cost, &size| cost.saturating_mul(size));
    threads.each(cost, parts, &|part| store(&part, &A::block(&part, lhs, rhs)));
}

fn block<A: Multiply, const ROWS: usize, const COLUMNS: usize>(
    part: &Part,
    lhs: &impl Lanes<A>,
    rhs: &impl Lanes<A>,
) -> Vec<A::Total> {
    let Part { batch, rows, columns, depth } = part;
    let (row_tiles, column_tiles) = (rows.len().div_ceil(ROWS), columns.len().div_ceil(COLUMNS));
    let width = column_tiles * COLUMNS;
    let mut totals = vec![A::Total::default(); row_tiles * ROWS * width];
    let longest = RUN.min(*depth);
    let mut left = vec![[A::ZERO; ROWS]; row_tiles * longest];
    let mut right = vec![[A::ZERO; COLUMNS]; column_tiles * longest];
    for start in (0..*depth).step_by(RUN) {
        let run = start..(start + RUN).min(*depth);
        let length = run.len();
        pack(lhs, *batch, rows.clone(), run.clone(), &mut left[..row_tiles * length]);
        pack(rhs, *batch, columns.clone(), run, &mut right[..column_tiles * length]);
        for (column, right) in right.chunks_exact(length).take(column_tiles).enumerate() {
            for (row, left) in left.chunks_exact(length).take(row_tiles).enumerate() {
                let sums = tile(left, right);
                for (at, sums) in sums.iter().enumerate() {
                    let first = (row * ROWS + at) * width + column * COLUMNS;
                    for (total, &sum) in totals[first..first + COLUMNS].iter_mut().zip(sums) {
                        *total = A::add_run(*total, sum);
                    }
                }
            }
        }
    }
    totals
        .chunks_exact(width.max(1))
        .take(rows.len())
        .flat_map(|row| &row[..columns.len()])
        .copied()
        .collect()
}

/// Packs lanes panel by panel.
fn pack<A, const WIDTH: usize>(
    source: &impl Lanes<A>,
    batch: usize,
    lanes: Range<usize>,
    depth: Range<usize>,
    panels: &mut [[A; WIDTH]],
) {
    for (first, panel) in lanes.clone().step_by(WIDTH).zip(panels.chunks_exact_mut(depth.len())) {
        source.pack(batch, first..lanes.end.min(first + WIDTH), depth.clone(), panel);
    }
}

/// The sums of the products of two panels. This loop is where the time goes: it must stay free of checks, so that the
/// compiler keeps the sums in vector registers.
#[inline(never)]
fn tile<A: Multiply, const ROWS: usize, const COLUMNS: usize>(
    left: &[[A; ROWS]],
    right: &[[A; COLUMNS]],
) -> [[A; COLUMNS]; ROWS] {
    let mut sums = [[A::ZERO; COLUMNS]; ROWS];
    for (a, b) in left.iter().zip(right) {
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                sums[row][column] = sums[row][column].add_product(a[row], b[column]);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// An element is its place in base 1000.
    struct Places;

    impl Lanes<i64> for Places {
        fn pack<const WIDTH: usize>(
            &self,
            batch: usize,
            lanes: Range<usize>,
            depth: Range<usize>,
            panel: &mut [[i64; WIDTH]],
        ) {
            for (places, depth) in panel.iter_mut().zip(depth) {
                for (place, lane) in places.iter_mut().zip(lanes.clone()) {
                    *place = (batch * 1_000_000 + lane * 1000 + depth) as i64;
                }
            }
        }
    }

    #[test]
    fn blocks_and_tiles_cover_every_size() {
        for (batches, rows, columns, depth) in
            [(1, 1, 1, 1), (2, 3, 9, 5), (1, 259, 10, 300), (1, 2, 513, 1), (3, 4, 4, 0)]
        {
            let sizes = Sizes { batches, rows, columns, depth };
            let found = Mutex::new(vec![None; batches * rows * columns]);
            multiply(Threads::new(Some(2)), sizes, &Places, &Places, |part: &Part, values: &[i64]| {
                let mut found = found.lock().expect("not poisoned");
                for (at, row) in part.rows.clone().enumerate() {
                    for (next, column) in part.columns.clone().enumerate() {
                        let value = values[at * part.columns.len() + next];
                        let place = (part.batch * rows + row) * columns + column;
                        assert_eq!(found[place].replace(value), None);
                    }
                }
            });
            let element =
                |batch: usize, lane: usize, at: usize| (batch * 1_000_000 + lane * 1000 + at) as i64;
            for (place, value) in found.into_inner().expect("not poisoned").into_iter().enumerate() {
                let (batch, row, column) = (place / columns / rows, place / columns % rows, place % columns);
                let expected: i64 =
                    (0..depth).map(|at| element(batch, row, at) * element(batch, column, at)).sum();
                assert_eq!(value, Some(expected));
            }
        }
    }
}
