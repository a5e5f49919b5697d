//! Recipes: an optimizer with everything about its steps, as text.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::{Optimizer, RecipeError, Schedule, Shape};

/// How a step updates parameters.
///
/// As text, the name of the optimizer and its settings: `adamw,lr=3e-4,betas=0.9:0.999,weight-decay=0.01,clip=1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The largest learning rate.
    pub rate: f64,
    /// How it changes.
    pub schedule: Schedule,
    /// The largest norm of all gradients together; larger ones are scaled down.
    pub clip: Option<f64>,
    /// Gradients of so many runs are averaged for one update.
    pub accumulate: NonZeroU64,
    /// Parameters whose names contain one of these do not decay.
    pub no_decay: Vec<String>,
    /// Whether the step gives the gradients too.
    pub keep_gradients: bool,
}

/// Settings that every optimizer has.
const COMMON: [&str; 12] = [
    "lr",
    "weight-decay",
    "no-decay",
    "clip",
    "accumulate",
    "schedule",
    "warmup",
    "total",
    "every",
    "gamma",
    "milestones",
    "keep-gradients",
];

/// Settings that only some have.
const OF_SGD: [&str; 3] = ["momentum", "dampening", "nesterov"];
const OF_ADAM: [&str; 2] = ["betas", "eps"];

/// The settings of a recipe, taken out one after the other.
struct Settings<'t> {
    given: BTreeMap<&'t str, &'t str>,
}

impl<'t> Settings<'t> {
    fn read<T: FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, RecipeError> {
        let Some(&value) = self.given.get(name) else { return Ok(None) };
        let parsed = value.parse().ok().filter(fits);
        let wrong = || RecipeError::Value { name, value: value.to_owned(), expected };
        parsed.map(Some).ok_or_else(wrong)
    }

    fn number(&self, name: &'static str, default: f64) -> Result<f64, RecipeError> {
        let fits = |value: &f64| value.is_finite() && *value >= 0.0;
        Ok(self.read(name, "a number from 0 on", fits)?.unwrap_or(default))
    }

    fn flag(&self, name: &'static str) -> Result<bool, RecipeError> {
        Ok(self.read(name, "true or false", |_| true)?.unwrap_or(false))
    }

    fn count(&self, name: &'static str) -> Result<Option<u64>, RecipeError> {
        // Beyond, a count is no longer exact in f64.
        self.read(name, "a whole number below 2^53", |value: &u64| *value < 1 << 53)
    }

    fn needed(&self, name: &'static str) -> Result<u64, RecipeError> {
        self.count(name)?.ok_or(RecipeError::Missing(name))
    }

    fn betas(&self) -> Result<[f64; 2], RecipeError> {
        let Some(&value) = self.given.get("betas") else { return Ok([0.9, 0.999]) };
        let parts: Vec<Option<f64>> = value.split(':').map(|part| part.parse().ok()).collect();
        match parts.as_slice() {
            &[Some(one), Some(two)] if (0.0..1.0).contains(&one) && (0.0..1.0).contains(&two) => {
                Ok([one, two])
            }
            _ => Err(RecipeError::Value {
                name: "betas",
                value: value.to_owned(),
                expected: "two numbers from 0 to 1, such as 0.9:0.999",
            }),
        }
    }

    fn milestones(&self) -> Result<Vec<u64>, RecipeError> {
        let &value = self.given.get("milestones").ok_or(RecipeError::Missing("milestones"))?;
        let parts: Option<Vec<u64>> = value.split(':').map(|part| part.parse().ok()).collect();
        parts.ok_or_else(|| RecipeError::Value {
            name: "milestones",
            value: value.to_owned(),
            expected: "whole numbers of updates, such as 8000:11000",
        })
    }

    fn schedule(&self) -> Result<Schedule, RecipeError> {
        let name = self.given.get("schedule").copied().unwrap_or("constant");
        let shape = match name {
            "constant" => Shape::Constant,
            "step" => Shape::Step { every: self.needed("every")?.max(1), gamma: self.number("gamma", 0.1)? },
            "milestones" => Shape::Milestones { at: self.milestones()?, gamma: self.number("gamma", 0.1)? },
            "linear" => Shape::Linear { total: self.needed("total")? },
            "cosine" => Shape::Cosine { total: self.needed("total")? },
            other => {
                return Err(RecipeError::Value {
                    name: "schedule",
                    value: other.to_owned(),
                    expected: "constant, step, milestones, linear or cosine",
                });
            }
        };
        Ok(Schedule { warmup: self.count("warmup")?.unwrap_or(0), shape })
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (optimizer, own): (&'static str, &[&str]) = match name {
            "sgd" => ("sgd", &OF_SGD),
            "adam" => ("adam", &OF_ADAM),
            "adamw" => ("adamw", &OF_ADAM),
            "adamw-8bit" => ("adamw-8bit", &OF_ADAM),
            other => return Err(RecipeError::Optimizer(other.to_owned())),
        };
        let mut settings = Settings { given: BTreeMap::new() };
        for part in parts {
            let (setting, value) = part.split_once('=').unwrap_or((part, "true"));
            if !COMMON.iter().chain(own).any(|known| *known == setting) {
                let known = COMMON.iter().chain(own).copied().collect::<Vec<_>>().join(", ");
                return Err(RecipeError::Setting { optimizer, name: setting.to_owned(), known });
            }
            if settings.given.insert(setting, value).is_some() {
                return Err(RecipeError::Twice(setting.to_owned()));
            }
        }
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        let rate = settings.read("lr", "a number above 0", positive)?.ok_or(RecipeError::Missing("lr"))?;
        let weight_decay =
            settings.number("weight-decay", if optimizer.starts_with("adamw") { 0.01 } else { 0.0 })?;
        let optimizer = match optimizer {
            "sgd" => Optimizer::Sgd {
                momentum: settings.number("momentum", 0.0)?,
                dampening: settings.number("dampening", 0.0)?,
                nesterov: settings.flag("nesterov")?,
                weight_decay,
            },
            "adamw-8bit" => Optimizer::AdamW8bit {
                betas: settings.betas()?,
                eps: settings.number("eps", 1e-8)?,
                weight_decay,
            },
            _ => Optimizer::Adam {
                betas: settings.betas()?,
                eps: settings.number("eps", 1e-8)?,
                weight_decay,
                decoupled: optimizer == "adamw",
            },
        };
        let no_decay = settings.given.get("no-decay").copied().unwrap_or_default();
        Ok(Self {
            optimizer,
            rate,
            schedule: settings.schedule()?,
            clip: settings.read("clip", "a number above 0", positive)?,
            accumulate: settings
                .read("accumulate", "a whole number above 0", |_| true)?
                .unwrap_or(NonZeroU64::MIN),
            no_decay: no_decay.split(':').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            keep_gradients: settings.flag("keep-gradients")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let recipe: Recipe =
            "adamw,lr=3e-4,betas=0.8:0.95,no-decay=bias:norm,clip=1,accumulate=4,schedule=cosine,warmup=2,total=9"
                .parse()
                .unwrap();
        assert_eq!(recipe.schedule, Schedule { warmup: 2, shape: Shape::Cosine { total: 9 } });
        assert_eq!((recipe.clip, recipe.accumulate.get(), recipe.no_decay.len()), (Some(1.0), 4, 2));
        let Optimizer::Adam { betas, weight_decay, decoupled: true, .. } = recipe.optimizer else { panic!() };
        assert_eq!((betas, weight_decay), ([0.8, 0.95], 0.01));
        let steps: Recipe = "sgd,lr=1,schedule=milestones,milestones=8:11".parse().unwrap();
        assert_eq!(steps.schedule.shape, Shape::Milestones { at: vec![8, 11], gamma: 0.1 });
        let plain: Recipe = "sgd,lr=1,momentum=0.9,nesterov".parse().unwrap();
        assert!(matches!(plain.optimizer, Optimizer::Sgd { nesterov: true, .. }));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("lion,lr=1", "there is no optimizer `lion`"),
            ("adam", "`lr` is missing"),
            ("adam,lr=fast", "`lr=fast`: expected a number above 0"),
            ("adam,lr=1,lr=2", "`lr` is given twice"),
            ("sgd,lr=1,eps=1", "`sgd` has no setting `eps`"),
            ("adam,lr=1,betas=0.9", "two numbers"),
            ("adam,lr=1,schedule=linear", "`total` is missing"),
            ("adam,lr=1,schedule=up", "constant, step, milestones, linear or cosine"),
            ("sgd,lr=1,schedule=milestones", "`milestones` is missing"),
            ("sgd,lr=1,schedule=milestones,milestones=8:x", "`milestones=8:x`: expected"),
            ("adam,lr=1,accumulate=0", "a whole number above 0"),
            ("adam,lr=1,clip=-1", "a number above 0"),
        ] {
            let error = text.parse::<Recipe>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
