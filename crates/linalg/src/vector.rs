//! Loops over contiguous elements, compiled for each instruction set and chosen at run time.

// Code for an instruction set may be called only where the processor has it.
#![allow(unsafe_code)]

use warpforge_kernels::isa::Isa;

use crate::real::Real;

/// Columns of the smallest panel: two vectors of f64, one of f32.
pub(crate) const WIDTH: usize = 16;
/// Rows of a block of such a panel: it fits the L1 cache.
pub(crate) const ROWS: usize = 64;

/// Rows of a panel, column by column.
pub(crate) type Block<T> = [[T; ROWS]; WIDTH];

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

impl<T: Real> Pivot<T> {
    /// Smaller than any other.
    pub(crate) fn none() -> Self {
        Self { magnitude: T::ZERO, row: usize::MAX }
    }

    /// The larger one, or the first of equals.
    #[inline]
    pub(crate) fn larger(self, other: Self) -> Self {
        let equal = other.magnitude == self.magnitude && other.row < self.row;
        if other.magnitude > self.magnitude || equal { other } else { self }
    }
}

vectorized! {
    /// The largest of the elements of some rows, the first of equals; the first row is number `first`. NaN is smaller than any other.
    fn largest(elements: &[T], first: usize) -> Pivot<T> {
        const LANES: usize = 16;
        let mut lanes = [T::ZERO; LANES];
        let (whole, rest) = elements.as_chunks::<LANES>();
        for chunk in whole {
            for (lane, element) in lanes.iter_mut().zip(chunk) {
                let magnitude = element.abs();
                *lane = if magnitude > *lane { magnitude } else { *lane };
            }
        }
        let all = lanes.into_iter().chain(rest.iter().map(|element| element.abs()));
        let magnitude = all.fold(T::ZERO, |largest, other| if other > largest { other } else { largest });
        let place = elements.iter().position(|element| element.abs() == magnitude);
        Pivot { magnitude, row: place.map_or(usize::MAX, |place| first + place) }
    }
}

vectorized! {
    /// Divides elements by a pivot.
    fn divide(elements: &mut [T], pivot: T) {
        let inverse = T::ONE / pivot;
        // The reciprocal of a subnormal pivot overflows.
        match inverse.is_finite() {
            true => elements.iter_mut().for_each(|element| *element = *element * inverse),
            false => elements.iter_mut().for_each(|element| *element = *element / pivot),
        }
    }
}

vectorized! {
    /// Subtracts from the rows of a column from `start` on the columns before it, each times the element of `above` that has its place.
    fn subtract_columns(block: &mut Block<T>, column: usize, start: usize, above: &[T; WIDTH]) {
        let (before, rest) = block.split_at_mut(column);
        let mut sums = rest[0];
        for (factors, &above) in before.iter().zip(above) {
            for (sum, &factor) in sums.iter_mut().zip(factors) {
                *sum = *sum - factor * above;
            }
        }
        rest[0][start..].copy_from_slice(&sums[start..]);
    }
}
