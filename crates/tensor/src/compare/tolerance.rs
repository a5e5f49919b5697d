//! How far apart two values may be.

use serde::Serialize;

use crate::{ElementType, FloatFormat, Scalar};

/// How far an actual value may be from the expected one. Infinities must be equal under every tolerance; integers and
/// truth values are judged like floats, except that [`Tolerance::Ulp`] counts whole steps of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Tolerance {
    /// The same value; the two zeros are the same.
    Exact,
    /// The same bits.
    Bitwise,
    /// A number of representable values apart within these bounds.
    Ulp {
        /// Least distance; not zero only where a test wants to know that two things differ.
        min: u64,
        /// Largest distance.
        max: u64,
    },
    /// At most this far apart.
    Absolute {
        /// Largest difference.
        atol: f64,
    },
    /// At most this fraction of the expected magnitude apart.
    Relative {
        /// Largest difference divided by the expected magnitude.
        rtol: f64,
    },
    /// At most `atol + rtol * |expected|` apart.
    Close {
        /// Relative part.
        rtol: f64,
        /// Absolute part.
        atol: f64,
    },
    /// At most this fraction of the expected tensor's scale apart, or of the expected value where that is an outlier.
    Scaled {
        /// Largest difference divided by the scale.
        rtol: f64,
    },
    /// At most `atol + rtol * |expected| + scaled * scale` apart, or a number of representable values. The scale of an
    /// outlier is its own magnitude.
    Within {
        /// Relative part.
        rtol: f64,
        /// Absolute part.
        atol: f64,
        /// Part of the expected tensor's scale: its largest finite magnitude that is no outlier.
        scaled: f64,
        /// Representable values that are near enough whatever the difference.
        ulp: u64,
    },
}

/// What NaN is equal to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NanPolicy {
    /// NaN matches NaN, whatever its sign and payload.
    MatchesNan,
    /// NaN matches nothing.
    MatchesNothing,
}

/// A tolerance and a NaN policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Criterion {
    /// How far apart values may be.
    pub tolerance: Tolerance,
    /// What NaN is equal to.
    pub nan: NanPolicy,
}

impl Criterion {
    /// Judges by `tolerance`; NaN matches NaN.
    #[must_use]
    pub const fn new(tolerance: Tolerance) -> Self {
        Self { tolerance, nan: NanPolicy::MatchesNan }
    }

    /// Whether one part of an element is acceptable. `scale` is that of [`Tolerance::Scaled`].
    pub(super) fn accepts(&self, actual: f64, expected: f64, ulps: Option<u64>, scale: f64) -> bool {
        if actual.is_nan() || expected.is_nan() {
            let both = actual.is_nan() && expected.is_nan();
            return both && self.nan == NanPolicy::MatchesNan;
        }
        if actual.is_infinite() || expected.is_infinite() {
            return actual == expected;
        }
        let difference = (actual - expected).abs();
        let scale = scale.max(expected.abs());
        match self.tolerance {
            Tolerance::Exact => actual == expected && ulps == Some(0),
            Tolerance::Bitwise => actual.to_bits() == expected.to_bits() && ulps == Some(0),
            Tolerance::Ulp { min, max } => ulps.is_some_and(|ulps| (min..=max).contains(&ulps)),
            Tolerance::Absolute { atol } => difference <= atol,
            Tolerance::Relative { rtol } => difference <= rtol * expected.abs(),
            Tolerance::Close { rtol, atol } => difference <= atol + rtol * expected.abs(),
            Tolerance::Scaled { rtol } => difference <= rtol * scale,
            // Wide integers that differ may be equal as floats: their distance tells.
            Tolerance::Within { rtol, atol, scaled, ulp } => {
                let allowed = atol + rtol * expected.abs() + scaled * scale;
                ulps.is_some_and(|ulps| ulps <= ulp)
                    || difference <= allowed && (allowed > 0.0 || ulps.is_none_or(|ulps| ulps == 0))
            }
        }
    }
}

/// The number of representable steps between two floats of one format; `None` with a NaN.
#[must_use]
pub fn ulp_distance(format: &FloatFormat, a: f64, b: f64) -> Option<u64> {
    Some(format.ordinal(a)?.abs_diff(format.ordinal(b)?))
}

/// The parts of an element as floats with their distances: one part, or two for complex numbers.
pub(super) fn parts(
    element: ElementType,
    actual: Scalar,
    expected: Scalar,
) -> [Option<(f64, f64, Option<u64>)>; 2] {
    let float = |a: f64, b: f64, format: FloatFormat| Some((a, b, ulp_distance(&format, a, b)));
    match (element, actual, expected) {
        (ElementType::Complex(part), Scalar::Complex(ar, ai), Scalar::Complex(br, bi)) => {
            [float(ar, br, part.format()), float(ai, bi, part.format())]
        }
        (ElementType::Float(format), a, b) => [float(a.to_f64(), b.to_f64(), format.format()), None],
        // Wide integers lose bits as floats; their distance does not.
        (_, a, b) => {
            let steps = u64::try_from(a.to_i128().abs_diff(b.to_i128())).unwrap_or(u64::MAX);
            [Some((a.to_f64(), b.to_f64(), Some(steps))), None]
        }
    }
}
