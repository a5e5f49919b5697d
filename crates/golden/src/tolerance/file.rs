//! The TOML file that overrides tolerances.

use std::collections::BTreeMap;

use glob::Pattern;
use serde::Deserialize;

use super::{Layer, Limits, Nan, OneSided, Rule, Tolerances, Types};
use crate::{Class, Error};

/// The file: keys for everything, a table for a class, a list of tables for names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    nan: Option<Nan>,
    #[serde(default)]
    class: BTreeMap<Class, Changes>,
    #[serde(default)]
    tensor: Vec<Changes>,
}

/// What a table changes, and for the tables of names what it applies to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes {
    name: Option<String>,
    class: Option<Class>,
    rtol: Option<f64>,
    atol: Option<f64>,
    scaled: Option<f64>,
    ulp: Option<u64>,
    exact: Option<bool>,
    nan: Option<Nan>,
    missing: Option<OneSided>,
    extra: Option<OneSided>,
    types: Option<Types>,
    factor: Option<f64>,
    ignore: Option<bool>,
}

impl Changes {
    /// Whether the table has numbers of its own.
    pub(super) fn sets_limits(&self) -> bool {
        self.rtol.is_some()
            || self.atol.is_some()
            || self.scaled.is_some()
            || self.ulp.is_some()
            || self.exact == Some(true)
    }

    pub(super) fn apply(&self, rule: &mut Rule) {
        if self.exact == Some(true) {
            rule.limits = Limits::EXACT;
        }
        let limits = &mut rule.limits;
        limits.rtol = self.rtol.unwrap_or(limits.rtol);
        limits.atol = self.atol.unwrap_or(limits.atol);
        limits.scaled = self.scaled.unwrap_or(limits.scaled);
        limits.ulp = self.ulp.unwrap_or(limits.ulp);
        rule.nan = self.nan.unwrap_or(rule.nan);
        rule.missing = self.missing.unwrap_or(rule.missing);
        rule.extra = self.extra.unwrap_or(rule.extra);
        rule.types = self.types.unwrap_or(rule.types);
        rule.factor = self.factor.unwrap_or(rule.factor);
        rule.ignore = self.ignore.unwrap_or(rule.ignore);
    }

    fn check(&self) -> Result<(), String> {
        let numbers =
            [("rtol", self.rtol), ("atol", self.atol), ("scaled", self.scaled), ("factor", self.factor)];
        for (name, value) in numbers {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err(format!("{name} = {value} is no tolerance: it must be 0 or more"));
            }
        }
        let numbers =
            self.rtol.is_some() || self.atol.is_some() || self.scaled.is_some() || self.ulp.is_some();
        if self.exact == Some(true) && numbers {
            return Err("`exact` stands alone: it allows no rtol, atol, scaled or ulp beside it".to_owned());
        }
        Ok(())
    }
}

pub(super) fn parse(text: &str, place: &str) -> Result<Tolerances, Error> {
    let wrong = |place: String, reason: String| Error::Tolerances { place, reason };
    let file: File = toml::from_str(text)
        .map_err(|error| wrong(place.to_owned(), error.to_string().trim_end().to_owned()))?;
    let mut layers = Vec::new();
    if file.nan.is_some() {
        let changes = Changes { nan: file.nan, ..Changes::default() };
        layers.push(Layer { origin: place.to_owned(), class: None, name: None, changes });
    }
    for (class, changes) in file.class {
        let origin = format!("{place}: [class.{class}]");
        changes.check().map_err(|reason| wrong(origin.clone(), reason))?;
        if changes.name.is_some() || changes.class.is_some() {
            return Err(wrong(
                origin,
                "a class has no `name` or `class`; names belong in [[tensor]]".to_owned(),
            ));
        }
        layers.push(Layer { origin, class: Some(class), name: None, changes });
    }
    for (index, changes) in file.tensor.into_iter().enumerate() {
        let origin = format!("{place}: [[tensor]] {}", index + 1);
        let name = changes.name.as_deref();
        let name = name.ok_or_else(|| wrong(origin.clone(), "it has no `name`".to_owned()))?;
        let origin = format!("{origin}, `{name}`");
        changes.check().map_err(|reason| wrong(origin.clone(), reason))?;
        let pattern =
            Pattern::new(name).map_err(|error| wrong(origin.clone(), format!("not a pattern: {error}")))?;
        layers.push(Layer { origin, class: changes.class, name: Some(pattern), changes });
    }
    Ok(Tolerances { layers })
}
