//! Sine, cosine and the arc tangent of [`Wide`].

use super::constants::TWO_OVER_PI;
use super::{BITS, LIMBS, Wide};

/// Halvings before the Taylor series, so that it converges in few terms.
const HALVINGS: u32 = 8;

impl Wide {
    /// Sine and cosine of a finite binary64, exact reduction included.
    pub(crate) fn sin_cos_of(value: f64) -> (Self, Self) {
        let (quadrant, rest) = reduced(value);
        in_quadrant(quadrant, rest)
    }

    /// Sine and cosine; the reduction loses as many bits as `self` has before the point.
    pub(crate) fn sin_cos(self) -> (Self, Self) {
        let half_pi = Self::PI.scaled(-1);
        // Beyond this no bit of the angle is left.
        if self.magnitude() > BITS - 80 {
            return (Self::ZERO, Self::ONE);
        }
        if self.magnitude() < 62 {
            let quotient = (self / half_pi).round_to_i64();
            return in_quadrant(quotient, self - Self::from(quotient) * half_pi);
        }
        // The quotient needs several words: peel it off from the top.
        let turn = Self::PI.scaled(1);
        let mut rest = self;
        while rest.magnitude() > 60 {
            let scale = rest.magnitude() - 60;
            let quotient = (rest.scaled(-scale) / turn).round_to_i64();
            rest = rest - (Self::from(quotient) * turn).scaled(scale);
        }
        rest.sin_cos()
    }

    /// The angle of the point (`x`, `self`) for `self >= 0`, between 0 and π; not both are zero.
    pub(crate) fn atan2(self, x: Self) -> Self {
        if self.is_zero() {
            return if x.negative { Self::PI } else { Self::ZERO };
        }
        // Turn the point back by a first guess; what is left is a tiny angle.
        let shift = -self.magnitude().max(x.magnitude());
        let guess = libm::atan2(self.scaled(shift).to_f64(), x.scaled(shift).to_f64());
        let start = Self::from(guess);
        let (sin, cos) = Self::sin_cos_of(guess);
        let tangent = (self * cos - x * sin) / (x * cos + self * sin);
        start + atan_series(tangent)
    }
}

/// `value = quadrant × π/2 + rest` with `|rest| <= π/4`.
fn reduced(value: f64) -> (i64, Wide) {
    let bits = value.abs().to_bits();
    let field = (bits >> 52) as i64;
    // Below 1/2 there is nothing to reduce, and subnormals have no implicit bit to think of.
    if field < 1022 {
        return (0, Wide::from(value));
    }
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let exponent = field - 1075;
    // value × 2/π = mantissa × (2/π × 2^exponent): of the product, multiples of 2^64 are whole turns.
    let skip = (exponent - 64).max(0);
    let (whole, part) = ((skip / 64) as usize, (skip % 64) as u32);
    const WINDOW: usize = LIMBS + 4;
    let window: [u64; WINDOW] = std::array::from_fn(|i| {
        let at = |index: usize| TWO_OVER_PI.get(index).copied().unwrap_or(0);
        let low = if part == 0 { 0 } else { at(whole + i + 1) >> (64 - part) };
        at(whole + i) << part | low
    });
    // `product` is a fixed-point number, most significant word first; `point` says how many bits are before the point.
    let mut product = [0u64; WINDOW + 1];
    let mut carry = 0u64;
    for i in (0..WINDOW).rev() {
        let sum = u128::from(window[i]) * u128::from(mantissa) + u128::from(carry);
        (product[i + 1], carry) = (sum as u64, (sum >> 64) as u64);
    }
    product[0] = carry;
    let point = 64 + exponent - skip;
    let mut turns = Wide::ZERO;
    for (i, &word) in product.iter().enumerate() {
        let mut limbs = [0; LIMBS];
        limbs[LIMBS - 1] = word;
        // Words that hold only multiples of four quadrants do not matter.
        let weight = point - 64 * i as i64;
        if weight - 64 < 2 {
            let kept = if weight > 2 { word & (u64::MAX >> (weight - 2)) } else { word };
            limbs[LIMBS - 1] = kept;
            turns = turns + Wide::normal(false, weight, limbs);
        }
    }
    let quadrant = turns.round_to_i64();
    let rest = (turns - Wide::from(quadrant)) * Wide::PI.scaled(-1);
    if value < 0.0 { (-quadrant, -rest) } else { (quadrant, rest) }
}

fn in_quadrant(quadrant: i64, rest: Wide) -> (Wide, Wide) {
    let (sin, cos) = taylor_sin_cos(rest);
    match quadrant & 3 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Sine and cosine of a small angle, both with full relative precision.
fn taylor_sin_cos(x: Wide) -> (Wide, Wide) {
    let angle = x.scaled(-i64::from(HALVINGS));
    let square = -angle.square();
    let mut term = angle;
    let mut sin = angle;
    let mut n = 2;
    while term.magnitude() > sin.magnitude() - BITS && !term.is_zero() {
        term = (term * square).over(n * (n + 1));
        sin = sin + term;
        n += 2;
    }
    let mut cos = (Wide::ONE - sin.square()).sqrt();
    for _ in 0..HALVINGS {
        (sin, cos) = ((sin * cos).scaled(1), Wide::ONE - sin.square().scaled(1));
    }
    (sin, cos)
}

/// The arc tangent of a number so small that a few terms are enough.
fn atan_series(t: Wide) -> Wide {
    let square = t.square();
    let mut power = t;
    let mut sum = t;
    for n in [3, 5, 7, 9] {
        power = -(power * square);
        sum = sum + power.over(n);
    }
    sum
}
