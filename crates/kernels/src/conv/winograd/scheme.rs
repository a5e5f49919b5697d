//! The two schemes: which values a tile of an input and of a window is turned into, so that the products of these values
//! are turned back into a tile of the output.
//!
//! A scheme computes `OUT` outputs along each dimension from `SIDE = OUT + 2` inputs with `SIDE` products: it evaluates
//! input and window, taken as polynomials, at `SIDE` points (the last is infinity) and interpolates.

use super::lanes::Lanes;

/// A scheme along one dimension.
pub(super) trait Scheme<const SIDE: usize, const OUT: usize> {
    /// The finite points.
    const POINTS: &'static [f64];
    /// Transforms inputs.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`].
    unsafe fn input<L: Lanes>(from: [L; SIDE]) -> [L; SIDE];
    /// Turns products into outputs.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`].
    unsafe fn output<L: Lanes>(from: [L; SIDE]) -> [L; OUT];
}

/// Two outputs at a time, 2.25 times fewer products than there are taps: nearly as exact as the sums of a window.
pub(super) struct Two;

impl Scheme<4, 2> for Two {
    const POINTS: &'static [f64] = &[0.0, 1.0, -1.0];

    #[inline(always)]
    unsafe fn input<L: Lanes>([d0, d1, d2, d3]: [L; 4]) -> [L; 4] {
        // SAFETY: as the caller promises.
        unsafe { [d2.sub(d0), d2.add(d1), d2.sub(d1), d3.sub(d1)] }
    }

    #[inline(always)]
    unsafe fn output<L: Lanes>([m0, m1, m2, m3]: [L; 4]) -> [L; 2] {
        // SAFETY: as the caller promises.
        unsafe { [m0.add(m1).add(m2), m1.sub(m2).add(m3)] }
    }
}

/// Four outputs at a time, four times fewer products than there are taps. The points are, of those whose powers are exact,
/// the ones that lose the least: a few times what the sums of a window lose.
pub(super) struct Four;

const A: f32 = 0.6875;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;

impl Scheme<6, 4> for Four {
    const POINTS: &'static [f64] = &[0.0, A as f64, -A as f64, B as f64, -B as f64];

    #[inline(always)]
    unsafe fn input<L: Lanes>([d0, d1, d2, d3, d4, d5]: [L; 6]) -> [L; 6] {
        // SAFETY: as the caller promises.
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
    unsafe fn output<L: Lanes>([m0, m1, m2, m3, m4, m5]: [L; 6]) -> [L; 4] {
        // SAFETY: as the caller promises.
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

    /// Whole numbers through a scheme and through the sums that it stands for.
    fn check<S: Scheme<SIDE, OUT>, const SIDE: usize, const OUT: usize>() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..100 {
            let input: [f32; SIDE] = std::array::from_fn(|_| random.i32(-8..=8) as f32);
            let taps: [f64; 3] = std::array::from_fn(|_| f64::from(random.i32(-8..=8)));
            // SAFETY: such vectors need no instructions.
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
    fn schemes_are_the_sums_of_windows() {
        check::<Two, 4, 2>();
        check::<Four, 6, 4>();
    }
}
