//! The error function.
//!
//! Magnitudes are divided into sixteen segments, short where the function bends and long where it is nearly one. In
//! each, `erf z = z + b + d p(d)` with `d = z - c` and a polynomial `p` of degree four; the constants of a segment are
//! looked up. The first segments have `c = b = 0`, so that small values keep full relative accuracy. Elsewhere `c` is
//! an f32 value at which `erf c - c` is close to a multiple `b` of 2^-22 (2^-20 below two), so that `b`, `z + b` and
//! `d` are nearly exact. `p` is then the minimax approximation of the relative error, with coefficients rounded one
//! after another, the lowest first, and the others refitted each time.

use super::lanes::{Lanes, ROUNDING, Table, looked_up_polynomial};

/// From here on the function is one.
const END: f32 = 3.937_5;

/// The segment of a magnitude `z` is the integer nearest to `z (SEGMENT_INDEX.0 + SEGMENT_INDEX.1 z)`.
const SEGMENT_INDEX: (f32, f32) = (6.0, -0.524_706_5);

/// For each segment `c`, `b` and the coefficients of `p`, highest power first.
#[rustfmt::skip]
const SEGMENTS: [[f32; 7]; 16] = [
    [0.0, 0.0, 0.109_604_39, 4.859_375e-4, -0.376_150_28, 3.826_899_6e-7, 0.128_379_17],
    [0.0, 0.0, 0.101_210_46, 5.067_800_6e-3, -0.377_026_9, 7.302_024e-5, 0.128_376_95],
    [0.344_421_45, 0.029_380_798, 0.054_984_435, 0.158_400_39, -0.254_802_82, -0.345_163_55, 2.158_44e-3],
    [0.617_446_9, 0.0, 7.859_587e-3, 0.186_505_88, -0.059_912_46, -0.475_804_2, -0.229_300_56],
    [0.711_800_9, -0.025_909_424, -0.046_230_5, 0.159_852_79, 3.018_256_5e-3, -0.483_919_23, -0.320_146_7],
    [0.905_977_37, -0.106_084_82, -0.068_081_58, 0.101_801_574, 0.106_192_87, -0.449_889_36, -0.503_421],
    [1.108_203, -0.225_262_64, -0.063_001_834, 0.033_364_63, 0.160_403_86, -0.366_194_37, -0.669_560_55],
    [1.320_209_5, -0.382_102_97, -0.038_116_425, -0.020_764_457, 0.163_633_66, -0.260_702_3, -0.802_530_47],
    [1.542_681_5, -0.571_814_54, -0.010_393_494, -0.046_944_663, 0.130_900_59, -0.161_128_28, -0.895_553_9],
    [1.777_447_8, -0.789_395_33, 7.853_677_5e-3, -0.046_935_618, 0.084_930_67, -0.085_149_11, -0.952_095_15],
    [2.027_693_7, -1.031_829_8, 0.013_038_968, -0.032_637_76, 0.044_508_22, -0.037_483_17, -0.981_514_33],
    [2.296_171_2, -1.297_336_3, 9.730_673e-3, -0.016_791_573, 0.018_424_483, -0.013_294_528, -0.994_21],
    [2.587_817, -1.588_069_4, 4.731_221e-3, -6.320_405_8e-3, 5.757_535e-3, -3.605_364_4e-3, -0.998_606_6],
    [2.909_137_7, -1.909_176_6, 1.542_356_1e-3, -1.646_609_3e-3, 1.263_062_1e-3, -6.927_348_4e-4, -0.999_761_76],
    [3.277_157_3, -2.277_161, 2.770_280_7e-4, -2.578_423_3e-4, 1.672_786e-4, -8.001_827e-5, -0.999_975_56],
    [3.653_322_5, -2.653_322_7, 1.976_352_2e-5, -2.750_581_6e-5, 1.647_191_9e-5, -6.580_161_4e-6, -0.999_998_2],
];

static CENTRE: Table = Table::column(&SEGMENTS, 0);
static OFFSET: Table = Table::column(&SEGMENTS, 1);
static COEFFICIENTS: [Table; 5] = Table::columns(&SEGMENTS, 2);

/// The error function.
#[inline(always)]
pub(crate) fn erf<V: Lanes>(x: V) -> V {
    let z = V::splat(END).min(x.abs());
    let segment =
        z.mul_add(V::splat(SEGMENT_INDEX.1), V::splat(SEGMENT_INDEX.0)).mul_add(z, V::splat(ROUNDING));
    let d = z.sub(segment.lookup(&CENTRE));
    let nearly = z.add(segment.lookup(&OFFSET));
    let rest = looked_up_polynomial(segment, d, &COEFFICIENTS);
    rest.mul_add(d, nearly).or(x.sign())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The task that a magnitude is in, as the function finds it.
    fn segment(z: f32) -> usize {
        (z * (SEGMENT_INDEX.0 + SEGMENT_INDEX.1 * z)).round_ties_even() as usize
    }

    #[test]
    fn every_segment_is_within_its_bound() {
        const STEPS: u32 = 200_000;
        let mut seen = [false; SEGMENTS.len()];
        for step in 0..=STEPS {
            let x = END * step as f32 / STEPS as f32;
            let (found, exact) = (erf(x), libm::erf(f64::from(x)));
            let nearest = exact as f32;
            let unit = f64::from(f32::from_bits(nearest.to_bits() + 1)) - f64::from(nearest);
            let off = (f64::from(found) - exact).abs() / unit;
            assert!(off <= 0.7, "erf {x:?} is {found:?}, off by {off}");
            assert_eq!(erf(-x).to_bits(), (-found).to_bits());
            seen[segment(x)] = true;
        }
        assert_eq!(seen, [true; SEGMENTS.len()]);
    }

    #[test]
    fn segment_centres_are_nearly_exact() {
        for [c, b, ..] in SEGMENTS {
            let off = libm::erf(f64::from(c)) - f64::from(c) - f64::from(b);
            assert!(off.abs() < 2f64.powi(-27), "at {c:?}: off by {off:e}");
            assert_eq!((b * (1 << 22) as f32).fract(), 0.0);
        }
    }

    #[test]
    fn limits_zeros_and_nan() {
        for x in [END, 5.0, 1e30, f32::INFINITY] {
            assert_eq!((erf(x), erf(-x)), (1.0, -1.0));
        }
        assert_eq!(erf(0.0f32).to_bits(), 0.0f32.to_bits());
        assert_eq!(erf(-0.0f32).to_bits(), (-0.0f32).to_bits());
        assert!(erf(f32::NAN).is_nan());
    }
}
