//! The names of quantization recipes.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How the weights of matrix products, and what they are multiplied by, are quantized. Names are torchao's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// Weights of 8 bits with a scale for each output; activations as they are.
    Int8WeightOnly,
    /// Weights of 8 bits with a scale for each output; activations of 8 bits with a scale for each row, found while running.
    Int8Dynamic,
    /// Weights of 4 bits with a scale and an offset for each group of inputs; activations as they are.
    Int4WeightOnly {
        /// Weights of an output that share a scale.
        group: u32,
        /// Whether offsets are fitted by half-quadratic optimization.
        hqq: bool,
    },
    /// Weights of f8E4M3FN with a scale for each output; activations as they are.
    Float8WeightOnly,
    /// Weights and activations of f8E4M3FN with one scale each.
    Float8DynamicTensor,
    /// Weights and activations of f8E4M3FN with a scale for each row.
    Float8DynamicRow,
}

impl Recipe {
    /// One recipe of each kind, with the usual group size.
    pub const ALL: [Self; 7] = [
        Self::Int8WeightOnly,
        Self::Int8Dynamic,
        Self::Int4WeightOnly { group: 128, hqq: false },
        Self::Int4WeightOnly { group: 128, hqq: true },
        Self::Float8WeightOnly,
        Self::Float8DynamicTensor,
        Self::Float8DynamicRow,
    ];

    /// The smallest and the largest group of weights that share a scale; groups are multiples of the smallest.
    pub const GROUPS: (u32, u32) = (8, 4096);

    /// Whether activations are float8, which CPUs have no instructions for: they compute with rounded f32.
    #[must_use]
    pub fn is_float8_dynamic(self) -> bool {
        matches!(self, Self::Float8DynamicTensor | Self::Float8DynamicRow)
    }

    /// Whether activations are rounded too.
    #[must_use]
    pub fn quantizes_activations(self) -> bool {
        self == Self::Int8Dynamic || self.is_float8_dynamic()
    }

    /// Weights that share a scale, where a group is smaller than all weights of an output.
    #[must_use]
    pub fn group(self) -> Option<usize> {
        match self {
            Self::Int4WeightOnly { group, .. } => Some(group as usize),
            _ => None,
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int8WeightOnly => f.write_str("int8wo"),
            Self::Int8Dynamic => f.write_str("int8dq"),
            Self::Int4WeightOnly { group, hqq: false } => write!(f, "int4wo-{group}"),
            Self::Int4WeightOnly { group, hqq: true } => write!(f, "int4wo-{group}-hqq"),
            Self::Float8WeightOnly => f.write_str("float8wo"),
            Self::Float8DynamicTensor => f.write_str("float8dq-tensor"),
            Self::Float8DynamicRow => f.write_str("float8dq-row"),
        }
    }
}

/// A name that is no recipe.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownRecipe {
    /// No such name.
    #[error("`{0}` is not a quantization recipe; there are {known}", known = Recipe::ALL.map(|recipe| recipe.to_string()).join(", "))]
    Name(String),
    /// A group size that no kernel has.
    #[error(
        "`{0}`: a group size is a multiple of {least} up to {most}",
        least = Recipe::GROUPS.0,
        most = Recipe::GROUPS.1
    )]
    Group(String),
}

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    fn from_str(text: &str) -> Result<Self, UnknownRecipe> {
        if let Some(rest) = text.strip_prefix("int4wo-") {
            let (size, hqq) = match rest.strip_suffix("-hqq") {
                Some(size) => (size, true),
                None => (rest, false),
            };
            let (least, most) = Self::GROUPS;
            let valid = |group: &u32| (least..=most).contains(group) && group.is_multiple_of(least);
            let plain = size.bytes().all(|byte| byte.is_ascii_digit());
            let group = size.parse().ok().filter(valid).filter(|_| plain);
            let group = group.ok_or_else(|| UnknownRecipe::Group(text.to_owned()))?;
            return Ok(Self::Int4WeightOnly { group, hqq });
        }
        let found = Self::ALL.into_iter().find(|recipe| recipe.to_string() == text);
        found.ok_or_else(|| UnknownRecipe::Name(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        let others = [
            Recipe::Int4WeightOnly { group: 32, hqq: true },
            Recipe::Int4WeightOnly { group: 8, hqq: false },
        ];
        for recipe in Recipe::ALL.into_iter().chain(others) {
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
        for text in [
            "int4wo-",
            "int4wo-0",
            "int4wo-+8",
            "int4wo-12",
            "int4wo-8192",
            "int4wo-99999999999",
            "int4wo-32-hqq-hqq",
        ] {
            assert_eq!(text.parse::<Recipe>(), Err(UnknownRecipe::Group(text.to_owned())), "{text}");
        }
        for text in ["", "int8", "INT8WO", "int4wo", "baseline"] {
            assert_eq!(text.parse::<Recipe>(), Err(UnknownRecipe::Name(text.to_owned())), "{text}");
        }
    }
}
