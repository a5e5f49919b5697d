//! Loops over contiguous elements, compiled for each instruction set and chosen at run time.

// Code for an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use warpforge_kernels::isa::Isa;

use crate::real::Real;

/// Columns of the smallest panel: two vectors of f64, one of f32.
pub(crate) const WIDTH: usize = 16;

/// Defines a function whose body is compiled for AVX-512, for AVX2 and for any processor.
macro_rules! vectorized {
    ($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        pub(crate) fn $name<T: Real>($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body<T: Real>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512<T: Real>($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2<T: Real>($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                match Isa::best() {
                    // SAFETY: the processor has these instructions.
                    Isa::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    Isa::Avx2 => return unsafe { avx2($($argument),*) },
                    Isa::Portable => {}
                }
            }
            body($($argument),*)
        }
    };
}

vectorized! {
    /// `to -= from`.
    fn subtract(to: &mut [T], from: &[T]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = *to - from;
        }
    }
}

vectorized! {
    /// `to -= factor * from`.
    fn subtract_scaled(to: &mut [T], factor: T, from: &[T]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = *to - factor * from;
        }
    }
}

vectorized! {
    /// The sum of products, in 32 chains of additions.
    fn dot(left: &[T], right: &[T]) -> T {
        const CHAINS: usize = 32;
        let mut sums = [T::ZERO; CHAINS];
        let (left_chunks, left_rest) = left.as_chunks::<CHAINS>();
        let (right_chunks, right_rest) = right.as_chunks::<CHAINS>();
        for (left, right) in left_chunks.iter().zip(right_chunks) {
            for ((sum, &left), &right) in sums.iter_mut().zip(left).zip(right) {
                *sum = *sum + left * right;
            }
        }
        for ((sum, &left), &right) in sums.iter_mut().zip(left_rest).zip(right_rest) {
            *sum = *sum + left * right;
        }
        let mut half = CHAINS / 2;
        while half > 0 {
            for at in 0..half {
                sums[at] = sums[at] + sums[at + half];
            }
            half /= 2;
        }
        sums[0]
    }
}

/// A candidate for a pivot: its magnitude and its row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pivot<T> {
    pub(crate) magnitude: T,
    pub(crate) row: usize,
}

vectorized! {
    /// One step of elimination on rows of a panel: `row[column] /= pivot`, the columns after it lose that multiple of
    /// `pivot_row`. Returns the largest element of the next column among these rows, the first of equals; the first row
    /// is number `first`.
    fn eliminate(
        rows: &mut [[T; WIDTH]],
        pivot_row: &[T; WIDTH],
        column: usize,
        first: usize,
    ) -> Pivot<T> {
        let pivot = pivot_row[column];
        let inverse = T::ONE / pivot;
        // The reciprocal of a subnormal pivot overflows.
        let by_inverse = inverse.is_finite();
        let mut after = *pivot_row;
        for element in &mut after[..=column] {
            *element = T::ZERO;
        }
        let next = (column + 1).min(WIDTH - 1);
        let mut best = Pivot { magnitude: T::ZERO, row: first };
        for (at, row) in rows.iter_mut().enumerate() {
            let factor = if by_inverse { row[column] * inverse } else { row[column] / pivot };
            for (element, &above) in row.iter_mut().zip(&after) {
                *element = *element - factor * above;
            }
            row[column] = factor;
            let magnitude = row[next].abs();
            if magnitude > best.magnitude {
                best = Pivot { magnitude, row: first + at };
            }
        }
        best
    }
}
