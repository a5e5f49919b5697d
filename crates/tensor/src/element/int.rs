//! Integer element types: widths, ranges and wrap-around.

macro_rules! int_types {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $signed:literal, $bits:literal;)*) => {
        /// An integer element type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum IntType {
            $($(#[$doc])* $name,)*
        }

        impl IntType {
            /// Every integer type.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name MLIR gives the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Whether the type has negative values.
            #[must_use]
            pub const fn is_signed(self) -> bool {
                match self { $(Self::$name => $signed),* }
            }

            /// Width in bits.
            #[must_use]
            pub const fn bits(self) -> u32 {
                match self { $(Self::$name => $bits),* }
            }
        }
    };
}

int_types! {
    /// Signed, 2 bits.
    I2, "i2", true, 2;
    /// Signed, 4 bits.
    I4, "i4", true, 4;
    /// Signed, 8 bits.
    I8, "i8", true, 8;
    /// Signed, 16 bits.
    I16, "i16", true, 16;
    /// Signed, 32 bits.
    I32, "i32", true, 32;
    /// Signed, 64 bits.
    I64, "i64", true, 64;
    /// Unsigned, 2 bits.
    U2, "ui2", false, 2;
    /// Unsigned, 4 bits.
    U4, "ui4", false, 4;
    /// Unsigned, 8 bits.
    U8, "ui8", false, 8;
    /// Unsigned, 16 bits.
    U16, "ui16", false, 16;
    /// Unsigned, 32 bits.
    U32, "ui32", false, 32;
    /// Unsigned, 64 bits.
    U64, "ui64", false, 64;
}

impl IntType {
    /// The smallest value.
    #[must_use]
    pub const fn min(self) -> i128 {
        if self.is_signed() { -(1i128 << (self.bits() - 1)) } else { 0 }
    }

    /// The largest value.
    #[must_use]
    pub const fn max(self) -> i128 {
        (1i128 << (self.bits() - self.is_signed() as u32)) - 1
    }

    /// `value` modulo `2^bits`, as a value of the type.
    #[must_use]
    pub const fn wrap(self, value: i128) -> i128 {
        let unused = 128 - self.bits();
        if self.is_signed() {
            value << unused >> unused
        } else {
            ((value as u128) << unused >> unused) as i128
        }
    }

    /// `value` moved into the type's range.
    #[must_use]
    pub fn clamp(self, value: i128) -> i128 {
        value.clamp(self.min(), self.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_the_low_bits() {
        assert_eq!(IntType::I4.wrap(9), -7);
        assert_eq!(IntType::U4.wrap(-1), 15);
        assert_eq!(IntType::I2.wrap(2), -2);
        assert_eq!(IntType::U64.wrap(-1), i128::from(u64::MAX));
        assert_eq!(IntType::I64.wrap(1 << 63), i128::from(i64::MIN));
    }

    #[test]
    fn ranges_are_those_of_the_width() {
        assert_eq!((IntType::I8.min(), IntType::I8.max()), (-128, 127));
        assert_eq!((IntType::U2.min(), IntType::U2.max()), (0, 3));
        assert_eq!(IntType::U64.max(), i128::from(u64::MAX));
    }
}
