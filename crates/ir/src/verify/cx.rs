//! What a rule sees of an operation, and where it complains.

use crate::attr::{Attribute, Dict};
use crate::table::OpDef;
use crate::types::{TensorType, Type};

/// The types that a region takes and gives back.
#[derive(Clone, Debug, Default)]
pub struct RegionTypes<'a> {
    /// Types of the block's arguments.
    pub arguments: Vec<&'a Type>,
    /// Types of what the block returns; `None` when it does not end with a `return`.
    pub returns: Option<Vec<&'a Type>>,
}

/// An operation as its rule sees it: an existing one, or one that the builder is about to make.
pub struct Cx<'a> {
    def: &'static OpDef,
    operands: Vec<&'a Type>,
    results: Vec<&'a Type>,
    attrs: &'a Dict,
    regions: Vec<RegionTypes<'a>>,
    broken: Vec<(&'static str, String)>,
}

impl<'a> Cx<'a> {
    /// The context of an operation; `results` is empty when they are to be inferred.
    pub fn new(
        def: &'static OpDef,
        operands: Vec<&'a Type>,
        results: Vec<&'a Type>,
        attrs: &'a Dict,
        regions: Vec<RegionTypes<'a>>,
    ) -> Self {
        Self { def, operands, results, attrs, regions, broken: Vec::new() }
    }

    /// The entry in the table.
    pub fn def(&self) -> &'static OpDef {
        self.def
    }

    /// Types of the operands.
    pub fn operands(&self) -> &[&'a Type] {
        &self.operands
    }

    /// Types of the results; empty when they are to be inferred.
    pub fn results(&self) -> &[&'a Type] {
        &self.results
    }

    /// The regions.
    pub fn regions(&self) -> &[RegionTypes<'a>] {
        &self.regions
    }

    /// The ranked tensor type of an operand.
    pub fn tensor(&self, index: usize) -> Option<&'a TensorType> {
        self.operands.get(index).and_then(|ty| ty.as_tensor())
    }

    /// The ranked tensor type of a result.
    pub fn result(&self, index: usize) -> Option<&'a TensorType> {
        self.results.get(index).and_then(|ty| ty.as_tensor())
    }

    /// An attribute, or its default.
    pub fn attr(&self, name: &str) -> Option<&'a Attribute> {
        self.attrs.get(name).or_else(|| self.def.attr(name)?.default_value())
    }

    /// An attribute that is an integer.
    pub fn i64(&self, name: &str) -> Option<i64> {
        self.attr(name)?.as_i64()
    }

    /// An attribute that is a list of integers.
    pub fn i64s(&self, name: &str) -> Option<&'a [i64]> {
        self.attr(name)?.as_i64s()
    }

    /// Reports a broken constraint by its label in the specification.
    pub fn fail(&mut self, label: &'static str, message: impl Into<String>) {
        self.broken.push((label, message.into()));
    }

    /// Reports a broken constraint unless `holds`.
    pub fn check(&mut self, holds: bool, label: &'static str, message: impl FnOnce() -> String) -> bool {
        if !holds {
            self.fail(label, message());
        }
        holds
    }

    /// Whether a constraint was broken.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// The broken constraints.
    pub fn into_broken(self) -> Vec<(&'static str, String)> {
        self.broken
    }
}
