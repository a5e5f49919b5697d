//! Compute precision: the element type that contractions multiply in, decided on the graph before clustering.
//!
//! The pass makes every rounding an operation of the graph. After it, a contraction multiplies exactly the element types
//! that its operands have, on every device: nothing is rounded behind the graph's back. What a device may still choose is where
//! a conversion runs: in the kernel that produces the operand, in a kernel of its own, or while the contraction reads it.

mod narrow;
mod rewrite;
mod widened;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use warpforge_tensor::ElementType;

pub(crate) use narrow::narrow_contractions;
pub(crate) use widened::read_before_widening;

/// The element type that contractions of f32 operands multiply in. They accumulate in f32 and give f32 in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// As the model says.
    #[default]
    Model,
    /// Operands rounded to tf32, by tensor cores that have it; they stay f32 in memory.
    Tf32,
    /// Operands rounded to bf16.
    Bf16,
    /// Operands rounded to f16.
    F16,
}

impl Precision {
    /// Every precision.
    pub const ALL: [Self; 4] = [Self::Model, Self::Tf32, Self::Bf16, Self::F16];

    /// Its name on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Precision::Model => "model",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
            Precision::F16 => "f16",
        }
    }

    /// The element type that f32 operands are converted to; none where they stay as they are in memory.
    #[must_use]
    pub fn operand_element(self) -> Option<ElementType> {
        match self {
            Precision::Model | Precision::Tf32 => None,
            Precision::Bf16 => Some(ElementType::BF16),
            Precision::F16 => Some(ElementType::F16),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no precision.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a precision; there are {known}", known = Precision::ALL.map(Precision::name).join(", "))]
pub struct UnknownPrecision(String);

impl FromStr for Precision {
    type Err = UnknownPrecision;

    fn from_str(text: &str) -> Result<Self, UnknownPrecision> {
        let found = Self::ALL.into_iter().find(|precision| precision.name() == text);
        found.ok_or_else(|| UnknownPrecision(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused_with_the_list() {
        for precision in Precision::ALL {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        let error = "fp16".parse::<Precision>().unwrap_err().to_string();
        assert_eq!(error, "`fp16` is not a precision; there are model, tf32, bf16, f16");
    }
}
