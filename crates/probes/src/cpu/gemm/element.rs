//! The types of number in the matrices, and their random values.

use std::ops::AddAssign;

use crate::cpu::bf16::Bf16;
use crate::cpu::register::Plain;

/// A number in an input.
pub(super) trait Element: Plain + Default + Send + Sync {
    /// The type in which products are summed.
    type Sum: Plain + Default + Send + Sync + AddAssign;

    /// A random number of ordinary size.
    fn random(random: &mut fastrand::Rng) -> Self;

    /// The exact value.
    #[cfg(test)]
    fn value(self) -> f64;
}

macro_rules! element {
    ($type:ty, sums $sum:ty, |$random:ident| $make:expr, |$value:ident| $to_f64:expr) => {
        impl Element for $type {
            type Sum = $sum;

            fn random($random: &mut fastrand::Rng) -> Self {
                $make
            }

            #[cfg(test)]
            fn value(self) -> f64 {
                let $value = self;
                $to_f64
            }
        }
    };
}

element!(f64, sums f64, |random| 2.0 * random.f64() - 1.0, |value| value);
element!(f32, sums f32, |random| 2.0 * random.f32() - 1.0, |value| value.into());
element!(Bf16, sums f32, |random| Bf16::from_f32(2.0 * random.f32() - 1.0), |value| value.to_f32().into());
element!(i8, sums i32, |random| random.i8(..), |value| value.into());
