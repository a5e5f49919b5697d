//! Exponential, logarithm and the hyperbolic functions of [`Wide`].

use super::{BITS, Wide, constants};

/// Arguments beyond this give results no binary64 can hold, whichever way the result is used.
const EXP_LIMIT: i64 = 1 << 20;

/// Halvings before a Taylor series, so that it converges in few terms.
const HALVINGS: u32 = 12;

impl Wide {
    /// `e^self`; the exponent saturates far outside the range of binary64.
    pub(crate) fn exp(self) -> Self {
        self.exp_m1_of_clamped().1
    }

    /// `e^self - 1` with full relative precision near zero.
    pub(crate) fn exp_m1(self) -> Self {
        self.exp_m1_of_clamped().0
    }

    /// `e^self - 1` and `e^self`.
    fn exp_m1_of_clamped(self) -> (Self, Self) {
        let limit = Self::from(EXP_LIMIT);
        let x = if self.magnitude() > limit.magnitude() {
            Self { negative: self.negative, ..limit }
        } else {
            self
        };
        let power = (x.to_f64() * std::f64::consts::LOG2_E).round_ties_even();
        let rest = x - Self::from(power) * constants::LN_2;
        // (1 + a)^2 - 1 = a (2 + a) undoes one halving without losing the small part.
        let mut small = taylor_exp_m1(rest.scaled(-i64::from(HALVINGS)));
        for _ in 0..HALVINGS {
            small = small * (small + Self::from(2i64));
        }
        if power == 0.0 {
            return (small, small + Self::ONE);
        }
        let exp = (small + Self::ONE).scaled(power as i64);
        (exp - Self::ONE, exp)
    }

    /// The natural logarithm of a positive number.
    pub(crate) fn ln(self) -> Self {
        // Halve or not so that the mantissa lies around one, where no bits cancel against the exponent's part.
        let mantissa = Self { exponent: 0, ..self };
        let low = mantissa.to_f64() < std::f64::consts::FRAC_1_SQRT_2;
        let (mantissa, power) =
            if low { (mantissa.scaled(1), self.exponent - 1) } else { (mantissa, self.exponent) };
        (mantissa - Self::ONE).ln_1p_near_zero() + Self::from(power) * constants::LN_2
    }

    /// `ln(1 + self)` with full relative precision near zero; `self > -1`.
    pub(crate) fn ln_1p(self) -> Self {
        if self.magnitude() < -1 { self.ln_1p_near_zero() } else { (self + Self::ONE).ln() }
    }

    fn ln_1p_near_zero(self) -> Self {
        if self.magnitude() < -BITS {
            return self;
        }
        // Halley's iteration on e^y = 1 + x triples the correct bits: 50, 150, 450.
        let mut y = if self.magnitude() < -60 { self } else { Self::from(libm::log1p(self.to_f64())) };
        for _ in 0..2 {
            let reached = y.exp_m1();
            let sum = reached + self + Self::from(2i64);
            y = y + ((self - reached) / sum).scaled(1);
        }
        y
    }

    /// Hyperbolic sine and cosine.
    pub(crate) fn sinh_cosh(self) -> (Self, Self) {
        let (less_one, exp) = self.exp_m1_of_clamped();
        let inverse = exp.reciprocal();
        // sinh x = (m + m / e^x) / 2 with m = e^x - 1: both terms have the same sign.
        let sinh = (less_one + less_one * inverse).scaled(-1);
        (sinh, (exp + inverse).scaled(-1))
    }

    /// Inverse hyperbolic sine.
    pub(crate) fn asinh(self) -> Self {
        let x = self.abs();
        // ln(x + sqrt(x² + 1)) = ln1p(x + x² / (1 + sqrt(x² + 1)))
        let square = x.square();
        let root = (square + Self::ONE).sqrt();
        let result = (x + square / (root + Self::ONE)).ln_1p();
        if self.negative { -result } else { result }
    }
}

fn taylor_exp_m1(x: Wide) -> Wide {
    let mut term = x;
    let mut sum = x;
    let mut n = 2;
    while term.magnitude() > sum.magnitude() - BITS && !term.is_zero() {
        term = (term * x).over(n);
        sum = sum + term;
        n += 1;
    }
    sum
}
