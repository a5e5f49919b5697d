//! How the family files write entries.

use std::sync::OnceLock;

use super::signature;
use super::{Family, OpDef, OpKind, Trait};
use crate::verify::Rule;

/// An entry of the table as it is written.
pub(crate) struct Entry {
    pub(crate) kind: OpKind,
    operands: &'static str,
    results: &'static str,
    attrs: &'static str,
    regions: &'static str,
    format: &'static str,
    traits: &'static [Trait],
    doc: &'static str,
    rule: Option<Rule>,
}

/// Starts an entry.
pub(crate) const fn op(kind: OpKind) -> Entry {
    Entry {
        rule: None,
        kind,
        operands: "",
        results: "",
        attrs: "",
        regions: "",
        format: "",
        traits: &[],
        doc: "",
    }
}

impl Entry {
    /// Operands and results: `name: class`, `name*: class` for any number, `name?: class` for at most one.
    pub(crate) const fn values(mut self, operands: &'static str, results: &'static str) -> Self {
        self.operands = operands;
        self.results = results;
        self
    }

    /// Attributes: `name: kind`, `name?: kind` when optional, `name: kind = value` with a default.
    pub(crate) const fn attrs(mut self, attrs: &'static str) -> Self {
        self.attrs = attrs;
        self
    }

    /// Regions: `name`, `name+` for at least one, or `name*` for any number.
    pub(crate) const fn regions(mut self, regions: &'static str) -> Self {
        self.regions = regions;
        self
    }

    /// The text form.
    pub(crate) const fn text(mut self, format: &'static str) -> Self {
        self.format = format;
        self
    }

    /// Properties.
    pub(crate) const fn is(mut self, traits: &'static [Trait]) -> Self {
        self.traits = traits;
        self
    }

    /// What the operation does, in a sentence.
    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Constraints and inference.
    pub(crate) const fn rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    pub(super) fn define(&self, family: Family) -> OpDef {
        let fail = |what: &str, text: &str| -> ! { panic!("{}: bad {what} `{text}`", self.kind.name()) };
        let values = |text| signature::values(text).unwrap_or_else(|| fail("values", text));
        OpDef {
            kind: self.kind,
            family,
            operands: values(self.operands),
            results: values(self.results),
            attrs: signature::attrs(self.attrs).unwrap_or_else(|| fail("attributes", self.attrs)),
            regions: signature::regions(self.regions),
            traits: self.traits,
            doc: self.doc,
            format: self.format,
            rule: self.rule,
            syntax: OnceLock::new(),
        }
    }
}
