//! A software float wide enough that nothing cancels, overflows or underflows.
//!
//! 384 bits of mantissa and an exponent without a practical limit. Formulas can be written as in a textbook: the result
//! is right to the last place of a binary64 as long as fewer than some 300 bits cancel. Results are truncated, not
//! rounded; only the conversion back to binary64 rounds.

mod constants;
mod elementary;
mod trigonometric;

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};

const LIMBS: usize = 6;
const BITS: i64 = 64 * LIMBS as i64;

/// `±0.limbs × 2^exponent`, the top bit of the most significant limb (the last) set, or all limbs zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide {
    negative: bool,
    exponent: i64,
    limbs: [u64; LIMBS],
}

impl Wide {
    pub(crate) const ZERO: Self = Self { negative: false, exponent: 0, limbs: [0; LIMBS] };
    pub(crate) const ONE: Self = {
        let mut limbs = [0; LIMBS];
        limbs[LIMBS - 1] = 1 << 63;
        Self { negative: false, exponent: 1, limbs }
    };
    pub(crate) const PI: Self = constants::PI;

    /// Normalises `0.limbs × 2^exponent`.
    fn normal(negative: bool, exponent: i64, limbs: [u64; LIMBS]) -> Self {
        let Some(top) = limbs.iter().rposition(|&limb| limb != 0) else { return Self::ZERO };
        let shift = 64 * (LIMBS - 1 - top) as u32 + limbs[top].leading_zeros();
        Self { negative, exponent: exponent - i64::from(shift), limbs: shifted_left(limbs, shift) }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.limbs[LIMBS - 1] == 0
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(crate) fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    pub(crate) fn square(self) -> Self {
        self * self
    }

    /// `self × 2^power`.
    pub(crate) fn scaled(self, power: i64) -> Self {
        if self.is_zero() { self } else { Self { exponent: self.exponent + power, ..self } }
    }

    /// The exponent `e` with `2^(e-1) <= |self| < 2^e`; far below everything for zero.
    pub(crate) fn magnitude(&self) -> i64 {
        if self.is_zero() { i64::MIN / 4 } else { self.exponent }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        self.magnitude()
            .cmp(&other.magnitude())
            .then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }

    /// `self / divisor` for a small divisor that is not zero.
    pub(crate) fn over(self, divisor: u64) -> Self {
        let mut rest = 0u128;
        let mut limbs = self.limbs;
        for limb in limbs.iter_mut().rev() {
            let part = rest << 64 | u128::from(*limb);
            *limb = (part / u128::from(divisor)) as u64;
            rest = part % u128::from(divisor);
        }
        Self::normal(self.negative, self.exponent, limbs)
    }

    /// `1 / self`; `self` is not zero.
    pub(crate) fn reciprocal(self) -> Self {
        // Newton's iteration doubles the correct bits: 52, 104, 208, 416.
        let mantissa = Self { negative: false, exponent: 0, limbs: self.limbs };
        let mut guess = Self::from(1.0 / mantissa.to_f64());
        for _ in 0..3 {
            guess = guess + guess * (Self::ONE - mantissa * guess);
        }
        Self { negative: self.negative, exponent: guess.exponent - self.exponent, ..guess }
    }

    /// The square root of a number that is not negative.
    pub(crate) fn sqrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let odd = self.exponent & 1;
        let mantissa = Self { negative: false, exponent: odd, limbs: self.limbs };
        // Newton's iteration for the reciprocal root needs no division.
        let mut guess = Self::from(1.0 / mantissa.to_f64().sqrt());
        for _ in 0..3 {
            guess = guess + (guess * (Self::ONE - mantissa * guess.square())).scaled(-1);
        }
        (mantissa * guess).scaled((self.exponent - odd) / 2)
    }

    /// The nearest binary64, ties to even.
    pub(crate) fn to_f64(self) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let sticky = u64::from(self.limbs[..LIMBS - 1].iter().any(|&limb| limb != 0));
        let top = self.limbs[LIMBS - 1] | sticky;
        let kept = (self.exponent + 1074).min(53);
        let magnitude = if self.exponent > 1024 {
            f64::INFINITY
        } else if kept < 0 {
            0.0
        } else {
            let shift = 64 - kept as u32;
            let rest = u128::from(top) << 64 >> shift;
            let (mantissa, fraction) = ((rest >> 64) as u64, rest as u64);
            let up = fraction > 1 << 63 || fraction == 1 << 63 && mantissa & 1 == 1;
            assemble(mantissa + u64::from(up), self.exponent - kept)
        };
        if self.negative { -magnitude } else { magnitude }
    }

    /// The nearest integer; `self` is small enough for it.
    fn round_to_i64(self) -> i64 {
        self.to_f64().round_ties_even() as i64
    }
}

/// `mantissa × 2^exponent` for a mantissa of at most 53 bits, exact where the result is not below the subnormals.
fn assemble(mantissa: u64, exponent: i64) -> f64 {
    if exponent <= -1074 {
        return f64::from_bits(mantissa);
    }
    // In two steps, as 2^1023 is the largest power of two there is.
    let half = exponent / 2;
    let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
    mantissa as f64 * power(half) * power(exponent - half)
}

fn shifted_left(limbs: [u64; LIMBS], shift: u32) -> [u64; LIMBS] {
    let (whole, part) = ((shift / 64) as usize, shift % 64);
    std::array::from_fn(|i| {
        let from = |back: usize| i.checked_sub(back).map_or(0, |index| limbs[index]);
        let low = if part == 0 { 0 } else { from(whole + 1) >> (64 - part) };
        from(whole) << part | low
    })
}

fn shifted_right(limbs: [u64; LIMBS], shift: i64) -> [u64; LIMBS] {
    if shift >= BITS {
        return [0; LIMBS];
    }
    let (whole, part) = ((shift / 64) as usize, (shift % 64) as u32);
    std::array::from_fn(|i| {
        let from = |ahead: usize| limbs.get(i + ahead).copied().unwrap_or(0);
        let high = if part == 0 { 0 } else { from(whole + 1) << (64 - part) };
        from(whole) >> part | high
    })
}

impl From<f64> for Wide {
    /// Exact for finite values; infinities and NaN have no place here and become zero.
    fn from(value: f64) -> Self {
        let bits = value.abs().to_bits();
        let field = (bits >> 52) as i64;
        let mantissa = bits & ((1 << 52) - 1);
        if field == 0x7ff {
            return Self::ZERO;
        }
        let mut limbs = [0; LIMBS];
        limbs[LIMBS - 1] = if field == 0 { mantissa } else { mantissa | 1 << 52 };
        Self::normal(value.is_sign_negative(), field.max(1) - 1075 + 64, limbs)
    }
}

impl From<i64> for Wide {
    fn from(value: i64) -> Self {
        let mut limbs = [0; LIMBS];
        limbs[LIMBS - 1] = value.unsigned_abs();
        Self::normal(value < 0, 64, limbs)
    }
}

impl Neg for Wide {
    type Output = Self;

    fn neg(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

impl Add for Wide {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (large, small) = match self.compare_magnitude(&other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        if small.is_zero() {
            return large;
        }
        let aligned = shifted_right(small.limbs, large.exponent - small.exponent);
        let mut limbs = large.limbs;
        let mut carry = 0u64;
        if large.negative == small.negative {
            for (limb, &addend) in limbs.iter_mut().zip(&aligned) {
                let sum = u128::from(*limb) + u128::from(addend) + u128::from(carry);
                (*limb, carry) = (sum as u64, (sum >> 64) as u64);
            }
            if carry == 1 {
                limbs = shifted_right(limbs, 1);
                limbs[LIMBS - 1] |= 1 << 63;
                return Self { negative: large.negative, exponent: large.exponent + 1, limbs };
            }
        } else {
            for (limb, &subtrahend) in limbs.iter_mut().zip(&aligned) {
                let (difference, first) = limb.overflowing_sub(subtrahend);
                let (difference, second) = difference.overflowing_sub(carry);
                (*limb, carry) = (difference, u64::from(first || second));
            }
        }
        Self::normal(large.negative, large.exponent, limbs)
    }
}

impl Sub for Wide {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Wide {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let mut product = [0u64; 2 * LIMBS];
        for (i, &a) in self.limbs.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &b) in other.limbs.iter().enumerate() {
                let sum = u128::from(a) * u128::from(b) + u128::from(product[i + j]) + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + LIMBS] = carry as u64;
        }
        let negative = self.negative != other.negative;
        let exponent = self.exponent + other.exponent;
        let limbs = std::array::from_fn(|i| product[LIMBS + i]);
        if limbs[LIMBS - 1] >> 63 == 1 || self.is_zero() || other.is_zero() {
            return Self::normal(negative, exponent, limbs);
        }
        let limbs = std::array::from_fn(|i| product[LIMBS + i] << 1 | product[LIMBS + i - 1] >> 63);
        Self { negative, exponent: exponent - 1, limbs }
    }
}

impl Div for Wide {
    type Output = Self;

    /// The divisor is not zero.
    #[allow(clippy::suspicious_arithmetic_impl)] // A quotient is a product with the reciprocal.
    fn div(self, other: Self) -> Self {
        self * other.reciprocal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binary64_reads_back() {
        let mut random = fastrand::Rng::with_seed(1);
        for value in [0.0, 1.0, -1.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, -2.5e-310] {
            assert_eq!(Wide::from(value).to_f64(), value);
        }
        for _ in 0..10_000 {
            let value = f64::from_bits(random.u64(..));
            if value.is_finite() {
                assert_eq!(Wide::from(value).to_f64(), value, "{value:e}");
            }
        }
    }

    #[test]
    fn basic_operations_round_as_the_hardware_does() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..10_000 {
            let mut draw = || (random.f64() - 0.5) * f64::from(random.i32(-600..600)).exp2();
            let (a, b) = (draw(), draw());
            let (x, y) = (Wide::from(a), Wide::from(b));
            assert_eq!((x + y).to_f64(), a + b, "{a:e} + {b:e}");
            assert_eq!((x - y).to_f64(), a - b, "{a:e} - {b:e}");
            assert_eq!((x * y).to_f64(), a * b, "{a:e} * {b:e}");
            assert_eq!((x / y).to_f64(), a / b, "{a:e} / {b:e}");
            assert_eq!(x.abs().sqrt().to_f64(), a.abs().sqrt(), "sqrt {a:e}");
        }
    }

    #[test]
    fn integers_are_exact() {
        assert_eq!(Wide::from(-7i64).to_f64(), -7.0);
        assert_eq!(Wide::from(i64::MIN).to_f64(), i64::MIN as f64);
        assert_eq!(Wide::from(1i64).over(3).to_f64(), 1.0 / 3.0);
        assert_eq!((Wide::from(2.5) + Wide::from(-2.5)).to_f64(), 0.0);
    }
}
