//! The error function, its complement and its inverse.
//!
//! Near zero `erf x = x p(x²)`; elsewhere `erfc z = e^(-z²) t q(t)` with `t = 1 / (1 + z/2)`. The coefficients are of
//! Chebyshev's interpolation, in a variable that runs from -1 to 1 where there are many.

use std::f64::consts::PI;

use super::cx::{Cx, Refusal};
use super::expr::Expr;
use crate::module::ValueId;
use crate::types::{ElementType, FloatType};

/// `erf x / x` in `2x² - 1`, for `x` up to one.
const CORE: [f64; 12] = [
    0.965_468_738_669_867_3,
    -0.140_536_089_022_717_1,
    0.019_852_496_688_984_218,
    -0.002_285_485_561_144_085_5,
    0.000_217_517_156_035_634_88,
    -1.753_716_944_128_02e-5,
    1.223_382_763_809_357_2e-6,
    -7.511_569_251_086_09e-8,
    4.115_751_500_265_885e-9,
    -2.035_231_956_483_527e-10,
    9.211_250_187_428_23e-12,
    -3.806_591_224_122_14e-13,
];

/// `e^(z²) erfc z / t` in `(2t - TAIL_FROM - TAIL_TO) / (TAIL_TO - TAIL_FROM)`.
const TAIL: [f64; 23] = [
    0.467_418_391_548_748_37,
    0.225_416_161_080_654_88,
    0.070_655_427_325_387_82,
    0.009_194_155_300_069_243,
    -0.002_378_828_587_391_251,
    -0.000_907_086_306_564_941_6,
    0.000_155_219_747_533_075_97,
    8.433_147_954_429_993e-5,
    -2.079_121_544_014_626_4e-5,
    -7.527_591_303_215_065e-6,
    3.561_523_845_489_601e-6,
    3.622_068_407_810_403_3e-7,
    -5.617_735_358_979_601e-7,
    8.012_344_241_345_915e-8,
    6.330_678_498_331_71e-8,
    -3.108_434_064_255_554_6e-8,
    -6.275_627_295_415_994e-10,
    5.734_422_845_281_324e-9,
    -1.793_042_018_860_307_4e-9,
    -5.706_969_011_385_932e-10,
    4.406_415_605_274_801e-10,
    1.690_282_867_126_438e-11,
    -4.378_351_238_158_151e-11,
];
/// `t` of the largest `z` whose complement is not zero, and a little beyond.
const TAIL_FROM: f64 = 1.0 / 15.0;
/// `t` of one half.
const TAIL_TO: f64 = 0.8;

/// `erf x` for `x` from -1 to 1.
fn core(x: &Expr) -> Expr {
    let x = x.min(1.0).max(-1.0);
    let square = x.clone() * x.clone();
    x * (2.0 * square - 1.0).polynomial(&CORE)
}

/// `erfc z` for `z` from one half on.
fn tail(z: &Expr) -> Expr {
    let z = z.min(28.0).max(0.5);
    let t = 1.0 / (0.5 * z.clone() + 1.0);
    let width = TAIL_TO - TAIL_FROM;
    let u = t.clone() * (2.0 / width) - (TAIL_FROM + TAIL_TO) / width;
    // The square is exact for the upper bits; what it misses is a factor.
    let upper = z.short();
    let missed = (upper.clone() - z.clone()) * (upper.clone() + z);
    (-(upper.clone() * upper)).exp() * missed.exp() * (t * u.polynomial(&TAIL))
}

fn erf_wide(x: &Expr) -> Expr {
    let a = x.abs();
    // What is no number fails the comparison, so the far branch has to carry it.
    let far = (1.0 - tail(&a)).with_sign(x);
    a.lt(1.0).choose(core(x), x.eq(x.clone()).choose(far, x.clone()))
}

/// The same with what 24 bits need.
fn erf_narrow(x: &Expr) -> Expr {
    let a = x.abs();
    let inner = x.min(1.0).max(-1.0);
    let square = inner.clone() * inner.clone();
    let near = square.polynomial(&[
        0.128_379_17,
        -0.376_126_26,
        0.112_835_94,
        -0.026_854_211,
        0.005_189_087_2,
        -0.000_801_686_43,
        7.875_875e-5,
    ]);
    // Beyond four the result is one.
    let z = a.min(4.0).max(1.0);
    let t = 1.0 / (0.5 * z.clone() + 1.0);
    let complement = (-(z.clone() * z)).exp()
        * t.polynomial(&[
            0.000_605_118_4,
            0.273_634_34,
            0.330_757_14,
            0.101_495_415,
            0.403_495_04,
            -0.057_065_2,
            -0.053_630_427,
        ]);
    let far = (1.0 - complement).with_sign(x);
    a.lt(1.0).choose(inner.clone() * near + inner, x.eq(x.clone()).choose(far, x.clone()))
}

pub(super) fn erf(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    match cx.element()? {
        ElementType::Float(FloatType::F64) => cx.formula(ElementType::F64, erf_wide),
        _ => cx.formula(ElementType::F32, erf_narrow),
    }
}

pub(super) fn erfc(x: &Expr) -> Expr {
    let a = x.abs();
    let beyond = tail(&a);
    let far = x.lt(0.0).choose(2.0 - beyond.clone(), beyond);
    a.lt(0.5).choose(1.0 - core(x), x.eq(x.clone()).choose(far, x.clone()))
}

/// `erf_inv x / x` in `(2w - 5) / 5` with `w = -ln(1 - x²)` up to five, to seven digits.
const INVERSE_CORE: [f64; 9] = [
    1.501_409_351_110_792,
    0.616_601_915_668_124_7,
    -0.026_108_415_733_044_1,
    -0.019_589_982_575_551_845,
    0.008_527_850_775_039_463,
    -0.000_427_768_233_801_147_47,
    -0.000_843_452_029_851_021_6,
    0.000_208_877_385_860_264_2,
    3.449_398_459_040_981e-5,
];

/// The same in the square root of `w`, from there to where `x` is next to one, to six digits.
const INVERSE_TAIL: [f64; 11] = [
    4.059_939_195_084_175_4,
    2.001_658_205_838_597,
    0.003_022_838_432_495_345,
    -0.005_133_981_373_632_858,
    0.003_657_948_113_698_439_4,
    -0.001_190_815_260_708_549_8,
    0.000_306_939_025_838_309_84,
    -0.002_962_447_938_456_847,
    0.004_022_075_289_128_927,
    -0.001_371_315_246_260_105_5,
    -0.000_134_036_204_278_365_98,
];
const INVERSE_TAIL_TO: f64 = 6.2;

pub(super) fn erf_inv(x: &Expr) -> Expr {
    let a = x.abs();
    let w = -((1.0 - a.clone()) * (1.0 + a.clone())).ln();
    let near = (w.min(5.0) * 0.4 - 1.0).polynomial(&INVERSE_CORE);
    let from = 5f64.sqrt();
    let width = INVERSE_TAIL_TO - from;
    let root = w.max(5.0).min(INVERSE_TAIL_TO * INVERSE_TAIL_TO).sqrt();
    let far = (root * (2.0 / width) - (from + INVERSE_TAIL_TO) / width).polynomial(&INVERSE_TAIL);
    let guess = a.clone() * w.lt(5.0).choose(near, far);
    // One step of Halley's iteration trebles the digits. Near one the complement has those that the function has lost.
    let error = a.lt(0.5).choose(core(&guess) - a.clone(), (1.0 - a.clone()) - far_complement(&guess));
    let step = error * (PI.sqrt() / 2.0) * (guess.clone() * guess.clone()).exp();
    let better = guess.clone() - step.clone() / (1.0 + guess * step);
    let inside = x.eq(0.0).choose(x.clone(), better.with_sign(x));
    let edge = a.eq(1.0).choose(Expr::number(f64::INFINITY).with_sign(x), f64::NAN);
    a.lt(1.0).choose(inside, edge)
}

/// `erfc` of a guess, which may be below one half where its number is just above it.
fn far_complement(guess: &Expr) -> Expr {
    guess.lt(0.5).choose(1.0 - core(guess), tail(guess))
}
