//! The Gaussian error linear unit, `x / 2 + |x| erf(|x| / √2) / 2`.
//!
//! Magnitudes are divided into sixteen segments of equal length. In each, `erf(z / √2) / 2` is a polynomial of degree
//! five of `d = z - c`, with the constants of a segment looked up. `c` is an f32 value near the middle at which the
//! function is close to an f32 value, the constant coefficient; the others are the minimax approximation of the
//! absolute error, rounded one after another, the lowest first, and the higher ones refitted each time.

use super::lanes::{Lanes, ROUNDING, Table, looked_up_polynomial};

/// From here on the error function is one.
const END: f32 = 5.562_5;

/// The segment of a magnitude `z` is the integer nearest to `SEGMENT_INDEX z`.
const SEGMENT_INDEX: f32 = 2.785;

/// For each segment `c` and the coefficients, highest power first.
#[rustfmt::skip]
const SEGMENTS: [[f32; 7]; 16] = [
    [0.0, 9.939_516e-3, -2.337_185_1e-5, -0.066_483_796, -5.135_021_3e-7, 0.398_942_3, 0.0],
    [0.358_979_58, 6.944_515e-3, 0.015_948_992, -0.054_306_597, -0.067_136_62, 0.374_047_8, 0.140_194_82],
    [0.718_149_66, 4.390_983_7e-4, 0.022_778_017, -0.024_879_09, -0.110_687_494, 0.308_261_13, 0.263_667_5],
    [1.077_356_5, -4.818_918e-3, 0.018_365_17, 5.979_47e-3, -0.120_280_385, 0.223_289_31, 0.359_339_48],
    [1.436_308_4, -6.038_279_7e-3, 7.991_283e-3, 0.025_194_684, -0.102_131, 0.142_212_99, 0.424_542_7],
    [1.795_620_9, -3.939_274e-3, -1.274_269_4e-3, 0.029_498_758, -0.071_443_126, 0.079_574_17, 0.463_722_6],
    [2.154_813_3, -1.092_577_8e-3, -5.722_976e-3, 0.023_767_702, -0.042_172_812, 0.039_142_41, 0.484_411_78],
    [2.512_848_9, 6.903_885_5e-4, -5.867_872e-3, 0.015_033_655, -0.021_325_262, 0.016_972_799, 0.494_011_97],
    [2.872_343_8, 1.150_978_8e-3, -4.051_716_5e-3, 7.790_808_6e-3, -9.259_203e-3, 6.447_144_3e-3, 0.497_962_8],
    [3.230_972_8, 8.853_730_4e-4, -2.169_808_1e-3, 3.395_152_3e-3, -3.486_282_4e-3, 2.158_091_2e-3, 0.499_383_15],
    [3.591_123, 4.861_042e-4, -9.428_852_4e-4, 1.252_518_7e-3, -1.134_267_1e-3, 6.317_475e-4, 0.499_835_37],
    [3.949_118, 2.097_337_4e-4, -3.436_825_6e-4, 3.985_02e-4, -3.234_429_5e-4, 1.638_262_5e-4, 0.499_960_78],
    [4.308_307, 7.400_15e-5, -1.056_178_95e-4, 1.088_143_25e-4, -8.007_749_4e-5, 3.718_175_5e-5, 0.499_991_77],
    [4.668_109_4, 2.179_702_6e-5, -2.761_793_8e-5, 2.562_149_2e-5, -1.725_713e-5, 7.396_105_5e-6, 0.499_998_48],
    [5.028_360_4, 1.732_850_4e-5, 6.140_055e-5, 5.024_83e-6, -5.430_437e-6, 1.289_646_3e-6, 0.499_999_76],
    [5.385_912, 9.927_331e-6, 4.764_495_7e-5, 7.952_743e-7, -2.095_351_4e-6, 2.003_976_4e-7, 0.499_999_97],
];

static CENTRE: Table = Table::column(&SEGMENTS, 0);
static COEFFICIENTS: [Table; 6] = Table::columns(&SEGMENTS, 1);

/// `x / 2 (1 + erf(x / √2))`: accurate to one unit in the last place above zero, and below it to `x` times half a unit
/// in the last place of one, which the sum with one loses in any case.
#[inline(always)]
pub(crate) fn gelu<V: Lanes>(x: V) -> V {
    let magnitude = x.abs();
    let z = V::splat(END).min(magnitude);
    let segment = z.mul_add(V::splat(SEGMENT_INDEX), V::splat(ROUNDING));
    let half_of_erf = looked_up_polynomial(segment, z.sub(segment.lookup(&CENTRE)), &COEFFICIENTS);
    // Zeros keep their sign, and so does what cancels.
    magnitude.mul_add(half_of_erf, x.mul(V::splat(0.5))).or(x.sign())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::scalar;

    #[test]
    fn every_segment_is_within_its_bound() {
        const STEPS: u32 = 200_000;
        let mut seen = [false; SEGMENTS.len()];
        for step in 1..=STEPS {
            let x = END * step as f32 / STEPS as f32;
            let exact = scalar::gelu(f64::from(x));
            let nearest = exact as f32;
            let unit = f64::from(f32::from_bits(nearest.to_bits() + 1)) - f64::from(nearest);
            let off = (f64::from(gelu(x)) - exact).abs() / unit;
            assert!(off <= 0.9, "gelu {x:?} is off by {off} units in the last place");
            let below = f64::from(gelu(-x)) - scalar::gelu(f64::from(-x));
            let off = below.abs() / f64::from(x) / 2f64.powi(-24);
            assert!(off <= 0.6, "gelu {:?} is off by {off} units of x", -x);
            seen[(SEGMENT_INDEX * x).round_ties_even() as usize] = true;
        }
        assert_eq!(seen, [true; SEGMENTS.len()]);
    }

    #[test]
    fn limits_zeros_and_nan() {
        for x in [END, 6.0, 1e30, f32::MAX, f32::INFINITY] {
            assert_eq!(gelu(x), x);
        }
        for x in [-END, -6.0, -1e30, -f32::MAX, -0.0] {
            assert_eq!(gelu(x).to_bits(), (-0.0f32).to_bits());
        }
        assert_eq!(gelu(0.0f32).to_bits(), 0);
        // As infinity times zero.
        assert!(gelu(f32::NEG_INFINITY).is_nan());
        assert!(gelu(f32::NAN).is_nan());
    }
}
