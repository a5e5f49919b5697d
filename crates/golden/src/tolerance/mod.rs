//! How far apart two runs may be, for each class and each tensor.

mod file;

use glob::Pattern;
use serde::{Deserialize, Serialize};
use warpforge_tensor::compare::{Criterion, NanPolicy, Tolerance};
use warpforge_tensor::{ElementType, FloatFormat};

use crate::folder::Key;
use crate::{Class, Error};

/// How many times as far from a reference run as the golden run a candidate may be.
const DEFAULT_FACTOR: f64 = 2.0;

/// How far apart two values may be: `atol + rtol · |golden| + scaled · scale`, or `ulp` representable values of their
/// type. The scale is the golden tensor's largest finite magnitude that is no outlier; that of an outlier is its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Fraction of the golden value.
    pub rtol: f64,
    /// Absolute part.
    pub atol: f64,
    /// Fraction of the golden tensor's scale.
    pub scaled: f64,
    /// Representable values that are near enough whatever the difference.
    pub ulp: u64,
}

impl Limits {
    /// The same value, nothing less.
    pub const EXACT: Self = Self { rtol: 0.0, atol: 0.0, scaled: 0.0, ulp: 0 };

    const fn close(rtol: f64, atol: f64) -> Self {
        Self { rtol, atol, ..Self::EXACT }
    }
}

/// What NaN is equal to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nan {
    /// NaN where the golden run has NaN, and nowhere else.
    Equal,
    /// Every NaN is a mismatch, where both runs have it too.
    Mismatch,
}

/// What a tensor that only one run has leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OneSided {
    /// It is a mismatch.
    Fail,
    /// It is reported, and no more.
    Report,
}

/// Whether the element types of two runs must be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Types {
    /// Another type is a mismatch.
    Same,
    /// Values are compared whatever they are stored as.
    Any,
}

/// How one tensor is judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// How far apart values may be.
    pub limits: Limits,
    /// What NaN is equal to.
    pub nan: Nan,
    /// What it means when the candidate lacks it.
    pub missing: OneSided,
    /// What it means when only the candidate has it.
    pub extra: OneSided,
    /// Whether the element types must be the same.
    pub types: Types,
    /// How many times as far from a reference run as the golden tensor the candidate's may be, for narrow types.
    pub factor: f64,
    /// Whether it is left out.
    pub ignore: bool,
    /// Where the rule comes from.
    pub origin: String,
}

impl Rule {
    /// The rule as a comparison of tensors takes it.
    #[must_use]
    pub fn criterion(&self) -> Criterion {
        let Limits { rtol, atol, scaled, ulp } = self.limits;
        let nan = match self.nan {
            Nan::Equal => NanPolicy::MatchesNan,
            Nan::Mismatch => NanPolicy::MatchesNothing,
        };
        Criterion { tolerance: Tolerance::Within { rtol, atol, scaled, ulp }, nan }
    }
}

/// The limits of a class as the project sets them.
#[must_use]
pub fn class_limits(class: Class) -> Limits {
    match class {
        Class::Inputs => Limits::EXACT,
        Class::Weights | Class::Losses => Limits::close(1e-4, 1e-6),
        Class::Activations | Class::Gradients => Limits::close(1e-3, 1e-5),
        Class::Metrics => Limits::close(5e-3, 0.0),
        Class::Outputs => Limits { scaled: 1e-5, ..Limits::EXACT },
    }
}

/// The limits of a class for tensors of an element type.
///
/// What is no float must be the same. A float type whose own steps are larger than the class allows gets two steps of
/// the value and one of the largest value: a difference that small is rounding.
#[must_use]
pub fn default_limits(class: Class, element: ElementType) -> Limits {
    let Some(float) = element.float_part() else { return Limits::EXACT };
    let limits = class_limits(class);
    let format = float.format();
    if class == Class::Inputs || format.mantissa_bits >= FloatFormat::F32.mantissa_bits {
        return limits;
    }
    let step = format.epsilon();
    Limits { rtol: limits.rtol.max(2.0 * step), scaled: limits.scaled.max(step), ..limits }
}

/// How the tensors of two runs are judged: the project's limits, and what a file says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Tolerances {
    /// What the file says, the most general first.
    layers: Vec<Layer>,
}

/// One table of the file.
#[derive(Debug, Clone)]
struct Layer {
    origin: String,
    class: Option<Class>,
    name: Option<Pattern>,
    changes: file::Changes,
}

impl Layer {
    fn applies(&self, key: &Key) -> bool {
        self.class.is_none_or(|class| class == key.class)
            && self.name.as_ref().is_none_or(|pattern| pattern.matches(&key.name))
    }
}

impl Tolerances {
    /// Reads the text of a file of tolerances; `place` is what errors call it.
    ///
    /// # Errors
    ///
    /// When it is not TOML, has a key or class that is not known, or a number that is no tolerance.
    pub fn parse(text: &str, place: &str) -> Result<Self, Error> {
        file::parse(text, place)
    }

    /// How a tensor is judged. Tables that apply are taken in order, so a later one beats an earlier one, key by key.
    #[must_use]
    pub fn rule(&self, key: &Key, element: ElementType) -> Rule {
        let one_sided = match key.class {
            // Fused kernels leave few values behind, and a candidate need not repeat what it was given.
            Class::Activations | Class::Inputs => OneSided::Report,
            _ => OneSided::Fail,
        };
        let mut rule = Rule {
            limits: default_limits(key.class, element),
            nan: Nan::Equal,
            missing: one_sided,
            extra: OneSided::Report,
            types: Types::Same,
            factor: DEFAULT_FACTOR,
            ignore: false,
            origin: format!("default for {}", key.class),
        };
        let mut own_limits = false;
        for layer in self.layers.iter().filter(|layer| layer.applies(key)) {
            if layer.changes.sets_limits() && !own_limits {
                // Numbers that somebody wrote are taken as they are: nothing is added for the element type.
                rule.limits = class_limits(key.class);
                own_limits = true;
            }
            layer.changes.apply(&mut rule);
            rule.origin.clone_from(&layer.origin);
        }
        rule
    }
}

#[cfg(test)]
mod tests;
