//! The Winograd schemes F(2x2, 3x3) and F(4x4, 3x3).
//!
//! A scheme computes `OUT` outputs along each dimension from `SIDE = OUT + 2` inputs with `SIDE` multiplications: it
//! evaluates input and window, as polynomials, at `SIDE` points (the last is infinity) and interpolates.

use super::channel_vector::ChannelVector;

/// A scheme along one dimension.
pub(super) trait Scheme<const SIDE: usize, const OUT: usize> {
    /// The finite points.
    const POINTS: &'static [f64];
    /// Transforms inputs.
    ///
    /// # Safety
    ///
    /// As for [`ChannelVector`].
    unsafe fn input<L: ChannelVector>(from: [L; SIDE]) -> [L; SIDE];
    /// Transforms products into outputs.
    ///
    /// # Safety
    ///
    /// As for [`ChannelVector`].
    unsafe fn output<L: ChannelVector>(from: [L; SIDE]) -> [L; OUT];
}

/// F(2x2, 3x3): 2.25 times fewer multiplications than taps, nearly as accurate as direct sums.
pub(super) struct F2x2;

impl Scheme<4, 2> for F2x2 {
    const POINTS: &'static [f64] = &[0.0, 1.0, -1.0];

    #[inline(always)]
    unsafe fn input<L: ChannelVector>([d0, d1, d2, d3]: [L; 4]) -> [L; 4] {
        // SAFETY: guaranteed by the caller.
        unsafe { [d2.sub(d0), d2.add(d1), d2.sub(d1), d3.sub(d1)] }
    }

    #[inline(always)]
    unsafe fn output<L: ChannelVector>([m0, m1, m2, m3]: [L; 4]) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { [m0.add(m1).add(m2), m1.sub(m2).add(m3)] }
    }
}

/// F(4x4, 3x3): four times fewer multiplications than taps. Of the points with exact powers, these have the smallest
/// rounding error: a few times that of direct sums.
pub(super) struct F4x4;

const A: f32 = 0.6875;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;

impl Scheme<6, 4> for F4x4 {
    const POINTS: &'static [f64] = &[0.0, A as f64, -A as f64, B as f64, -B as f64];

    #[inline(always)]
    unsafe fn input<L: ChannelVector>([d0, d1, d2, d3, d4, d5]: [L; 6]) -> [L; 6] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let ends =
                |first: L, middle: L, last: L| first.times(A2 * B2).sub(middle.times(A2 + B2)).add(last);
            let (even_a, odd_a) = (d4.sub(d2.times(B2)), d3.sub(d1.times(B2)).times(A));
            let (even_b, odd_b) = (d4.sub(d2.times(A2)), d3.sub(d1.times(A2)).times(B));
            [
                ends(d0, d2, d4),
                even_a.add(odd_a),
                even_a.sub(odd_a),
                even_b.add(odd_b),
                even_b.sub(odd_b),
                ends(d1, d3, d5),
            ]
        }
    }

    #[inline(always)]
    unsafe fn output<L: ChannelVector>([m0, m1, m2, m3, m4, m5]: [L; 6]) -> [L; 4] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (sum_a, difference_a) = (m1.add(m2), m1.sub(m2).times(A));
            let (sum_b, difference_b) = (m3.add(m4), m3.sub(m4).times(B));
            [
                m0.add(sum_a).add(sum_b),
                difference_a.add(difference_b),
                sum_a.times(A2).add(sum_b.times(B2)),
                difference_a.times(A2).add(difference_b.times(B2)).add(m5),
            ]
        }
    }
}

/// The matrix that transforms the three elements of a window along one dimension, a row for each point.
pub(super) fn window(points: &[f64]) -> Vec<[f64; 3]> {
    let row = |(at, point): (usize, &f64)| {
        let others = points.iter().enumerate().filter(|(other, _)| *other != at);
        let scale: f64 = others.map(|(_, other)| point - other).product();
        [1.0 / scale, point / scale, point * point / scale]
    };
    points.iter().enumerate().map(row).chain([[0.0, 0.0, 1.0]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integers through a scheme against direct sums.
    fn check<S: Scheme<SIDE, OUT>, const SIDE: usize, const OUT: usize>() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..100 {
            let input: [f32; SIDE] = std::array::from_fn(|_| random.i32(-8..=8) as f32);
            let taps: [f64; 3] = std::array::from_fn(|_| f64::from(random.i32(-8..=8)));
            // SAFETY: these vectors need no instruction set extension.
            let transformed = unsafe { S::input(input.map(|value| [value; 4])) };
            let mut products = [[0.0; 4]; SIDE];
            for (at, row) in window(S::POINTS).iter().enumerate() {
                let weight: f64 = row.iter().zip(taps).map(|(row, tap)| row * tap).sum();
                products[at] = transformed[at].map(|value| value * weight as f32);
            }
            // SAFETY: as above.
            let output = unsafe { S::output(products) };
            for (at, output) in output.iter().enumerate() {
                let want: f64 = (0..3).map(|tap| f64::from(input[at + tap]) * taps[tap]).sum();
                assert!(output.iter().all(|value| (f64::from(*value) - want).abs() < 2e-4), "{at}: {want}");
            }
        }
    }

    #[test]
    fn schemes_match_direct_sums() {
        check::<F2x2, 4, 2>();
        check::<F4x4, 6, 4>();
    }
}
