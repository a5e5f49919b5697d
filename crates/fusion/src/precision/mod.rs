//! Compute precision: the element type that contractions multiply in, decided on the graph before clustering.
//!
//! The pass makes every rounding an operation of the graph. After it, a contraction multiplies exactly the element types
//! that its operands have, on every device: nothing is rounded behind the graph's back. What a device may still choose is where
//! a conversion runs: in the kernel that produces the operand, in a kernel of its own, or while the contraction reads it.

mod kept;
mod narrow;
pub mod quantize;
mod widened;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use warpforge_tensor::ElementType;

pub(crate) use narrow::narrow_contractions;
pub use quantize::{QuantizeError, Recipe};
pub(crate) use quantize::{WeightNames, quantize, read_stored_weights, round_in_f32};
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
    /// Weights, and with some recipes activations, in few bits; see [`Recipe`].
    Quantized(Recipe),
}

impl Precision {
    /// Every precision that is an element type.
    pub const ALL: [Self; 4] = [Self::Model, Self::Tf32, Self::Bf16, Self::F16];

    /// The recipe, where weights are quantized.
    #[must_use]
    pub fn recipe(self) -> Option<Recipe> {
        match self {
            Precision::Quantized(recipe) => Some(recipe),
            _ => None,
        }
    }

    /// Whether a device that declares this precision has the other one too: groups of 4 bits may have any size.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        let kind = |precision: Self| match precision {
            Self::Quantized(Recipe::Int4WeightOnly { hqq, .. }) => {
                Self::Quantized(Recipe::Int4WeightOnly { group: 0, hqq })
            }
            precision => precision,
        };
        kind(self) == kind(other)
    }

    /// The element type that f32 operands are converted to; none where they stay as they are in memory.
    #[must_use]
    pub fn operand_element(self) -> Option<ElementType> {
        match self {
            Precision::Model | Precision::Tf32 | Precision::Quantized(_) => None,
            Precision::Bf16 => Some(ElementType::BF16),
            Precision::F16 => Some(ElementType::F16),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precision::Model => f.write_str("model"),
            Precision::Tf32 => f.write_str("tf32"),
            Precision::Bf16 => f.write_str("bf16"),
            Precision::F16 => f.write_str("f16"),
            Precision::Quantized(recipe) => recipe.fmt(f),
        }
    }
}

/// A name that is no precision.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownPrecision {
    /// No such name.
    #[error("`{0}` is not a precision; there are {known}", known = known())]
    Name(String),
    /// A recipe that cannot be.
    #[error(transparent)]
    Recipe(quantize::UnknownRecipe),
}

fn known() -> String {
    let plain = Precision::ALL.into_iter().chain(Recipe::ALL.map(Precision::Quantized));
    plain.map(|precision| precision.to_string()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Precision {
    type Err = UnknownPrecision;

    fn from_str(text: &str) -> Result<Self, UnknownPrecision> {
        if let Some(found) = Self::ALL.into_iter().find(|precision| precision.to_string() == text) {
            return Ok(found);
        }
        match text.parse() {
            Ok(recipe) => Ok(Self::Quantized(recipe)),
            Err(quantize::UnknownRecipe::Name(name)) => Err(UnknownPrecision::Name(name)),
            Err(error) => Err(UnknownPrecision::Recipe(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused_with_the_list() {
        for precision in Precision::ALL.into_iter().chain(Recipe::ALL.map(Precision::Quantized)) {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        let error = "fp16".parse::<Precision>().unwrap_err().to_string();
        let known = "model, tf32, bf16, f16, int8wo, int8dq, int4wo-128, int4wo-128-hqq, float8wo, float8dq-tensor, float8dq-row";
        assert_eq!(error, format!("`fp16` is not a precision; there are {known}"));
        assert!("int4wo-12".parse::<Precision>().unwrap_err().to_string().contains("multiple of 8"));
    }
}
