//! The enumerations that StableHLO's attributes draw from.

use std::fmt;

macro_rules! attribute_enums {
    ($($(#[$doc:meta])* $name:ident as $mnemonic:literal {
        $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name { $($(#[$variant_doc])* #[doc = concat!("`", $text, "`.")] $variant,)* }

            impl $name {
                /// The name of the enumeration in attributes: `#stablehlo<name VALUE>`.
                pub const MNEMONIC: &'static str = $mnemonic;
                /// Every value, in the order of the specification.
                pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

                /// The value as it is written.
                pub fn name(self) -> &'static str {
                    match self { $(Self::$variant => $text,)* }
                }

                /// The value with this spelling.
                pub fn from_name(name: &str) -> Option<Self> {
                    match name { $($text => Some(Self::$variant),)* _ => None }
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
            }

            impl From<$name> for EnumValue {
                fn from(value: $name) -> Self {
                    EnumValue::$name(value)
                }
            }

            impl TryFrom<EnumValue> for $name {
                type Error = ();
                fn try_from(value: EnumValue) -> Result<Self, ()> {
                    match value { EnumValue::$name(value) => Ok(value), _ => Err(()) }
                }
            }
        )*

        /// A value of one of the enumerations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EnumValue {
            $(#[doc = concat!("A [`", stringify!($name), "`].")] $name($name),)*
        }

        impl EnumValue {
            /// The name of the enumeration.
            pub fn mnemonic(self) -> &'static str {
                match self { $(Self::$name(_) => $name::MNEMONIC,)* }
            }

            /// The value as it is written.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name(value) => value.name(),)* }
            }

            /// The value `name` of the enumeration `mnemonic`.
            pub fn parse(mnemonic: &str, name: &str) -> Option<Self> {
                match mnemonic { $($mnemonic => $name::from_name(name).map(Self::$name),)* _ => None }
            }

            /// The value at a position of the enumeration `mnemonic`, in the order of the specification.
            pub fn nth(mnemonic: &str, index: usize) -> Option<Self> {
                match mnemonic {
                    $($mnemonic => $name::ALL.get(index).copied().map(Self::$name),)*
                    _ => None,
                }
            }

            /// The position of the value in its enumeration, in the order of the specification.
            pub fn index(self) -> usize {
                match self { $(Self::$name(value) => value as usize,)* }
            }

            /// Whether there is an enumeration of this name.
            pub fn is_mnemonic(mnemonic: &str) -> bool {
                matches!(mnemonic, $($mnemonic)|*)
            }
        }
    };
}

attribute_enums! {
    /// How `compare` compares.
    ComparisonDirection as "comparison_direction" {
        Eq = "EQ", Ne = "NE", Ge = "GE", Gt = "GT", Le = "LE", Lt = "LT",
    }
    /// By which order `compare` compares.
    ComparisonType as "comparison_type" {
        NoType = "NOTYPE", Float = "FLOAT", TotalOrder = "TOTALORDER", Signed = "SIGNED", Unsigned = "UNSIGNED",
    }
    /// The accuracy that a dot or convolution asks for.
    Precision as "precision" {
        Default = "DEFAULT", High = "HIGH", Highest = "HIGHEST",
    }
    /// The kind of a Fourier transform.
    FftType as "fft_type" {
        Fft = "FFT", Ifft = "IFFT", Rfft = "RFFT", Irfft = "IRFFT",
    }
    /// The distribution of `rng`.
    RngDistribution as "rng_distribution" {
        Uniform = "UNIFORM", Normal = "NORMAL",
    }
    /// The algorithm of `rng_bit_generator`.
    RngAlgorithm as "rng_algorithm" {
        Default = "DEFAULT", ThreeFry = "THREE_FRY", Philox = "PHILOX",
    }
    /// What `triangular_solve` does to its matrix first.
    Transpose as "transpose" {
        Invalid = "TRANSPOSE_INVALID", No = "NO_TRANSPOSE", Yes = "TRANSPOSE", Adjoint = "ADJOINT",
    }
    /// The calling convention of a custom call; in files a number.
    CustomCallApiVersion as "custom_call_api_version" {
        Unspecified = "API_VERSION_UNSPECIFIED", Original = "API_VERSION_ORIGINAL",
        StatusReturning = "API_VERSION_STATUS_RETURNING",
        StatusReturningUnified = "API_VERSION_STATUS_RETURNING_UNIFIED", TypedFfi = "API_VERSION_TYPED_FFI",
    }
    /// How an elementary function's accuracy is given.
    ResultAccuracyMode as "result_accuracy_mode" {
        Default = "DEFAULT", Highest = "HIGHEST", Tolerance = "TOLERANCE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_as_written() {
        for value in ComparisonType::ALL {
            assert_eq!(ComparisonType::from_name(value.name()), Some(*value));
            let any = EnumValue::from(*value);
            assert_eq!(EnumValue::parse(any.mnemonic(), any.name()), Some(any));
            assert_eq!(EnumValue::nth(any.mnemonic(), any.index()), Some(any));
        }
        assert_eq!(EnumValue::parse("precision", "LOW"), None);
    }
}
