//! The recipes of a file, by torchao's names.

use warpforge::QuantizationRecipe;

use super::config::unknown;
use super::format::Format;
use super::yaml::YamlError;

/// A recipe of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Without quantization.
    Baseline,
    /// A recipe of this engine.
    Recipe(QuantizationRecipe),
    /// A format that this engine has no kernels for, whose accuracy is found by emulation.
    Emulated(Format),
    /// A recipe of the original that this engine has not.
    Missing(String),
}

/// Recipes of the original that this engine has not: the name, and what stands behind it.
const MISSING: [(&str, &[Part]); 7] = [
    ("int8adq-int4w-symm", &[]),
    ("gemlitewo", &[Part::Number, Part::Number]),
    ("marlin", &[]),
    ("fp6", &[]),
    ("uintx", &[Part::Number, Part::Number, Part::Word("hqq")]),
    ("int8_dynamic_activation_intx_weight", &[Part::Number, Part::Number]),
    ("int8_dynamic_activation_intx_weight", &[Part::Number, Part::Number, Part::Flag]),
];

/// A part of a name, behind a hyphen.
#[derive(Debug, Clone, Copy)]
enum Part {
    Number,
    Flag,
    Word(&'static str),
}

impl Part {
    fn fits(self, text: &str) -> bool {
        match self {
            Self::Number => {
                !text.is_empty() && text.len() < 6 && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            Self::Flag => ["true", "false", "True", "False"].contains(&text),
            Self::Word(word) => text == word,
        }
    }
}

impl Entry {
    /// The name in the file.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Baseline => "baseline".to_owned(),
            Self::Recipe(recipe) => recipe.to_string(),
            Self::Emulated(format) => format.to_string(),
            Self::Missing(name) => name.clone(),
        }
    }

    /// The recipe of a name on a line.
    pub(super) fn read(line: usize, name: &str) -> Result<Self, YamlError> {
        if name == "baseline" {
            return Ok(Self::Baseline);
        }
        if let Ok(recipe) = name.parse() {
            return Ok(Self::Recipe(recipe));
        }
        if let Ok(format) = name.parse() {
            return Ok(Self::Emulated(format));
        }
        if MISSING.iter().any(|(known, parts)| is_missing(name, known, parts)) {
            return Ok(Self::Missing(name.to_owned()));
        }
        let wrong = if name.starts_with("int4wo-") {
            name.parse::<QuantizationRecipe>().err().map(|error| error.to_string())
        } else if name.starts_with("uintx-") {
            name.parse::<Format>().err().map(|error| error.to_string())
        } else {
            None
        };
        match wrong {
            Some(wrong) => Err(YamlError::new(line, wrong)),
            None => {
                Err(unknown(line, "recipe", name, &known().iter().map(String::as_str).collect::<Vec<_>>()))
            }
        }
    }
}

/// Whether a name is one of the original, with all of its parts.
fn is_missing(name: &str, known: &str, parts: &[Part]) -> bool {
    let Some(rest) = name.strip_prefix(known) else { return false };
    let given: Vec<&str> = rest.split('-').collect();
    given[0].is_empty()
        && given.len() == parts.len() + 1
        && given[1..].iter().zip(parts).all(|(text, part)| part.fits(text))
}

/// A name of each kind.
fn known() -> Vec<String> {
    let recipes = QuantizationRecipe::ALL.map(|recipe| recipe.to_string());
    let formats = [Format::Mxfp8, Format::Nvfp4, Format::Uintx { bits: 4, group: 64 }];
    ["baseline".to_owned()]
        .into_iter()
        .chain(recipes)
        .chain(formats.map(|format| format.to_string()))
        .chain(MISSING.map(|(name, parts)| {
            let part = |part: &Part| match part {
                Part::Number => "-4",
                Part::Flag => "-true",
                Part::Word(_) => "-hqq",
            };
            parts.iter().fold(name.to_owned(), |name, at| name + part(at))
        }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_original_are_known_and_what_looks_like_them_is_not() {
        for name in known() {
            assert_eq!(Entry::read(1, &name).unwrap().name(), name);
        }
        for (name, part) in [
            ("marlinade", "did you mean `marlin`"),
            ("uintx-banana", "1 to 8 bits"),
            ("uintx-4-48", "groups of 32"),
            ("mxfp9", "did you mean `mxfp8`"),
            ("fp66", "did you mean `fp6`"),
            ("gemlitewo-", "unknown recipe"),
            ("gemlitewo-4-4-4", "unknown recipe"),
            ("int8_dynamic_activation_intx_weight-", "unknown recipe"),
        ] {
            let error = Entry::read(7, name).unwrap_err();
            assert!(error.line == 7 && error.reason.contains(part), "{name}: {error}");
        }
    }
}
