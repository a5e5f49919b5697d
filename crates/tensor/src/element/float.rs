//! Floating-point formats: one description per format, one encoder and one decoder for all of them.

/// What the codes at the edge of a format mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Specials {
    /// IEEE 754: the all-ones exponent holds infinities and NaNs.
    Ieee,
    /// No infinity; the code with all exponent and mantissa bits set is NaN.
    NanAllOnes,
    /// No infinity and no negative zero; the code of negative zero is the only NaN.
    NanNegativeZero,
    /// Finite values only: overflow saturates, and NaN becomes negative zero.
    None,
}

/// The layout of a floating-point format of at most 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatFormat {
    /// Whether there is a sign bit.
    pub signed: bool,
    /// Width of the exponent field.
    pub exponent_bits: u32,
    /// Width of the mantissa field, without the implicit bit.
    pub mantissa_bits: u32,
    /// Exponent bias.
    pub bias: i32,
    /// Meaning of the edge codes.
    pub specials: Specials,
    /// Whether exponent field 0 holds zero and subnormals; without it, it is an ordinary exponent.
    pub has_zero: bool,
}

impl FloatFormat {
    /// Binary64.
    pub const F64: Self = Self::ieee(11, 52);
    /// Binary32.
    pub const F32: Self = Self::ieee(8, 23);
    /// Binary16.
    pub const F16: Self = Self::ieee(5, 10);
    /// The upper half of binary32.
    pub const BF16: Self = Self::ieee(8, 7);
    /// The 19-bit format that tensor cores round binary32 operands to.
    pub const TF32: Self = Self::ieee(8, 10);

    /// An IEEE 754 format with these field widths.
    #[must_use]
    pub const fn ieee(exponent_bits: u32, mantissa_bits: u32) -> Self {
        Self {
            signed: true,
            exponent_bits,
            mantissa_bits,
            bias: (1 << (exponent_bits - 1)) - 1,
            specials: Specials::Ieee,
            has_zero: true,
        }
    }

    const fn with(self, specials: Specials, bias: i32) -> Self {
        Self { specials, bias, ..self }
    }

    /// Bits of one code.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.signed as u32 + self.exponent_bits + self.mantissa_bits
    }

    const fn sign_mask(&self) -> u64 {
        if self.signed { 1 << (self.bits() - 1) } else { 0 }
    }

    const fn magnitude_mask(&self) -> u64 {
        (1 << (self.exponent_bits + self.mantissa_bits)) - 1
    }

    const fn mantissa_mask(&self) -> u64 {
        (1 << self.mantissa_bits) - 1
    }

    /// The code of the largest finite magnitude.
    const fn max_finite_code(&self) -> u64 {
        match self.specials {
            Specials::Ieee => (self.magnitude_mask() & !self.mantissa_mask()) - 1,
            Specials::NanAllOnes => self.magnitude_mask() - 1,
            Specials::NanNegativeZero | Specials::None => self.magnitude_mask(),
        }
    }

    /// The largest finite value.
    #[must_use]
    pub fn max_finite(&self) -> f64 {
        self.decode(self.max_finite_code())
    }

    /// The smallest positive normal value.
    #[must_use]
    pub fn min_normal(&self) -> f64 {
        pow2(1 - self.bias - i32::from(!self.has_zero))
    }

    /// The smallest positive value, subnormal where the format has subnormals.
    #[must_use]
    pub fn min_positive(&self) -> f64 {
        self.decode(u64::from(self.has_zero))
    }

    /// The distance from one to the next larger value.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        pow2(-(self.mantissa_bits as i32))
    }

    /// Whether the format has infinities.
    #[must_use]
    pub const fn has_infinity(&self) -> bool {
        matches!(self.specials, Specials::Ieee)
    }

    /// Whether the format has a NaN.
    #[must_use]
    pub const fn has_nan(&self) -> bool {
        !matches!(self.specials, Specials::None)
    }

    /// The code of the canonical NaN, or of what stands in for it.
    const fn nan_code(&self) -> u64 {
        match self.specials {
            Specials::Ieee => {
                let exponent = self.magnitude_mask() & !self.mantissa_mask();
                exponent | (1 << self.mantissa_bits >> 1)
            }
            Specials::NanAllOnes => self.magnitude_mask(),
            Specials::NanNegativeZero | Specials::None => self.sign_mask(),
        }
    }

    /// The code nearest to `value`, ties to even. Overflow gives infinity, else NaN, else the largest magnitude.
    #[must_use]
    pub fn encode(&self, value: f64) -> u64 {
        let bits = value.to_bits();
        if self.mantissa_bits == 52 && self.exponent_bits == 11 {
            return bits;
        }
        let negative = bits >> 63 == 1;
        let sign = if negative { self.sign_mask() } else { 0 };
        if value.is_nan() {
            return self.encode_nan(bits, sign);
        }
        if negative && !self.signed || value == 0.0 && !self.has_zero {
            return self.nan_code();
        }
        if value.is_infinite() {
            return self.overflow(sign);
        }
        if value == 0.0 {
            return self.zero(sign);
        }
        let (significand, exponent) = decompose(value);
        // The exponent of the result's last place: fixed by the value, or by the subnormal range.
        let smallest = 1 - self.bias - i32::from(!self.has_zero) - self.mantissa_bits as i32;
        let quantum = (exponent - self.mantissa_bits as i32).max(smallest);
        let rounded = round_shift(significand, quantum - (exponent - 52));
        // Adding the rounded significand to the exponent field carries a rounding overflow into the exponent.
        let field = (quantum - smallest) as u64;
        let code = if self.has_zero {
            (field << self.mantissa_bits) + rounded
        } else if rounded == 0 {
            0
        } else {
            (field << self.mantissa_bits) + rounded - (1 << self.mantissa_bits)
        };
        if code > self.max_finite_code() {
            self.overflow(sign)
        } else if code == 0 {
            self.zero(sign)
        } else {
            sign | code
        }
    }

    fn encode_nan(&self, bits: u64, sign: u64) -> u64 {
        match self.specials {
            // Keep the upper payload bits, as hardware does.
            Specials::Ieee => {
                let payload = (bits >> (52 - self.mantissa_bits)) & self.mantissa_mask();
                sign | self.nan_code() | payload
            }
            Specials::NanAllOnes => sign | self.nan_code(),
            Specials::NanNegativeZero | Specials::None => self.nan_code(),
        }
    }

    fn zero(&self, sign: u64) -> u64 {
        if self.specials == Specials::NanNegativeZero { 0 } else { sign }
    }

    fn overflow(&self, sign: u64) -> u64 {
        match self.specials {
            Specials::Ieee => sign | (self.magnitude_mask() & !self.mantissa_mask()),
            Specials::NanAllOnes => sign | self.nan_code(),
            Specials::NanNegativeZero => self.nan_code(),
            Specials::None => sign | self.max_finite_code(),
        }
    }

    /// The value of a code; exact, since every format is a subset of binary64.
    #[must_use]
    pub fn decode(&self, code: u64) -> f64 {
        if self.mantissa_bits == 52 && self.exponent_bits == 11 {
            return f64::from_bits(code);
        }
        let negative = code & self.sign_mask() != 0;
        let magnitude = code & self.magnitude_mask();
        let mantissa = magnitude & self.mantissa_mask();
        let field = magnitude >> self.mantissa_bits;
        match self.specials {
            Specials::Ieee if field == (1 << self.exponent_bits) - 1 => {
                let top = if negative { 1 << 63 } else { 0 };
                return f64::from_bits(top | 0x7ff << 52 | mantissa << (52 - self.mantissa_bits));
            }
            Specials::NanAllOnes if magnitude == self.magnitude_mask() => {
                return if negative { -f64::NAN } else { f64::NAN };
            }
            Specials::NanNegativeZero if negative && magnitude == 0 => return f64::NAN,
            _ => {}
        }
        let (significand, exponent) = if field == 0 && self.has_zero {
            (mantissa, 1 - self.bias)
        } else {
            (mantissa | 1 << self.mantissa_bits, field as i32 - self.bias)
        };
        let value = significand as f64 * pow2(exponent - self.mantissa_bits as i32);
        if negative { -value } else { value }
    }

    /// `value` rounded to this format.
    #[must_use]
    pub fn round(&self, value: f64) -> f64 {
        // The two formats the hardware rounds to itself.
        if *self == Self::F64 {
            value
        } else if *self == Self::F32 {
            f64::from(value as f32)
        } else {
            self.decode(self.encode(value))
        }
    }

    /// The position of `value` among all values of the format in order, so that differences count steps.
    ///
    /// Both zeros are at position 0. NaN has no position.
    #[must_use]
    pub fn ordinal(&self, value: f64) -> Option<i64> {
        if value.is_nan() {
            return None;
        }
        let code = if *self == Self::F32 { u64::from((value as f32).to_bits()) } else { self.encode(value) };
        let magnitude = (code & self.magnitude_mask()) as i64;
        Some(if code & self.sign_mask() != 0 { -magnitude } else { magnitude })
    }
}

/// `2^exponent`, exact for every exponent a binary64 can have, subnormals among them.
fn pow2(exponent: i32) -> f64 {
    if exponent >= -1022 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (exponent + 1074))
    }
}

/// The 53-bit significand and unbiased exponent of a finite, non-zero value.
fn decompose(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    if field == 0 {
        let shift = mantissa.leading_zeros() as i32 - 11;
        (mantissa << shift, -1022 - shift)
    } else {
        (mantissa | 1 << 52, field - 1023)
    }
}

/// `value / 2^shift` rounded to nearest, ties to even.
fn round_shift(value: u64, shift: i32) -> u64 {
    if shift <= 0 {
        return value << -shift;
    }
    if shift > 63 {
        return 0;
    }
    let half = 1u64 << (shift - 1);
    let quotient = value >> shift;
    let rest = value & ((1u64 << shift) - 1);
    quotient + u64::from(rest > half || rest == half && quotient & 1 == 1)
}

macro_rules! float_types {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $format:expr;)*) => {
        /// A floating-point element type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FloatType {
            $($(#[$doc])* $name,)*
        }

        impl FloatType {
            /// Every floating-point type, widest first.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name MLIR gives the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The layout of the type's codes.
            #[must_use]
            pub const fn format(self) -> FloatFormat {
                match self { $(Self::$name => const { $format }),* }
            }
        }
    };
}

float_types! {
    /// Binary64.
    F64, "f64", FloatFormat::F64;
    /// Binary32.
    F32, "f32", FloatFormat::F32;
    /// Binary16.
    F16, "f16", FloatFormat::F16;
    /// The upper half of binary32.
    Bf16, "bf16", FloatFormat::BF16;
    /// 8 bits, 3 of exponent, IEEE.
    F8E3M4, "f8E3M4", FloatFormat::ieee(3, 4);
    /// 8 bits, 4 of exponent, IEEE.
    F8E4M3, "f8E4M3", FloatFormat::ieee(4, 3);
    /// 8 bits, 4 of exponent, no infinity.
    F8E4M3Fn, "f8E4M3FN", FloatFormat::ieee(4, 3).with(Specials::NanAllOnes, 7);
    /// 8 bits, 4 of exponent, bias 8, no infinity, no negative zero.
    F8E4M3Fnuz, "f8E4M3FNUZ", FloatFormat::ieee(4, 3).with(Specials::NanNegativeZero, 8);
    /// 8 bits, 4 of exponent, bias 11, no infinity, no negative zero.
    F8E4M3B11Fnuz, "f8E4M3B11FNUZ", FloatFormat::ieee(4, 3).with(Specials::NanNegativeZero, 11);
    /// 8 bits, 5 of exponent, IEEE.
    F8E5M2, "f8E5M2", FloatFormat::ieee(5, 2);
    /// 8 bits, 5 of exponent, bias 16, no infinity, no negative zero.
    F8E5M2Fnuz, "f8E5M2FNUZ", FloatFormat::ieee(5, 2).with(Specials::NanNegativeZero, 16);
    /// 8 bits of exponent only: the powers of two that scale block formats.
    F8E8M0Fnu, "f8E8M0FNU", FloatFormat {
        signed: false, exponent_bits: 8, mantissa_bits: 0, bias: 127, specials: Specials::NanAllOnes, has_zero: false,
    };
    /// 6 bits, 2 of exponent, finite only.
    F6E2M3Fn, "f6E2M3FN", FloatFormat::ieee(2, 3).with(Specials::None, 1);
    /// 6 bits, 3 of exponent, finite only.
    F6E3M2Fn, "f6E3M2FN", FloatFormat::ieee(3, 2).with(Specials::None, 3);
    /// 4 bits, 2 of exponent, finite only.
    F4E2M1Fn, "f4E2M1FN", FloatFormat::ieee(2, 1).with(Specials::None, 1);
}
