//! What a rule sees of an operation, and where it complains.

use super::compatible;
use crate::attr::{Attribute, Dict};
use crate::module::{Module, RegionId};
use crate::table::OpDef;
use crate::types::{Dim, TensorType, Type};

/// The types that a region takes and gives back.
#[derive(Clone, Debug, Default)]
pub struct RegionTypes<'a> {
    /// Types of the block's arguments.
    pub arguments: Vec<&'a Type>,
    /// Types of what the block returns; `None` when it does not end with a `return`.
    pub returns: Option<Vec<&'a Type>>,
}

impl<'m> RegionTypes<'m> {
    /// The types of a region's first block: all that a region of StableHLO has.
    pub fn of(module: &'m Module, region: RegionId) -> Self {
        let Some(&block) = module.blocks(region).first() else { return Self::default() };
        let arguments = module.arguments(block).iter().map(|&value| module.value_type(value)).collect();
        let returns = module.terminator(block).map(|last| last.operand_types().collect());
        Self { arguments, returns }
    }
}

/// An operation as its rule sees it: an existing one, or one that the builder is about to make.
pub struct Cx<'a> {
    def: &'static OpDef,
    operands: Vec<&'a Type>,
    results: Option<Vec<&'a Type>>,
    attrs: &'a Dict,
    regions: Vec<RegionTypes<'a>>,
    broken: Vec<(&'static str, String)>,
}

impl<'a> Cx<'a> {
    /// The context of an operation; `results` is `None` when they are to be inferred.
    pub fn new(
        def: &'static OpDef,
        operands: Vec<&'a Type>,
        results: Option<Vec<&'a Type>>,
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
        self.results.as_deref().unwrap_or(&[])
    }

    /// Types of the results; `None` when they are to be inferred.
    pub fn given_results(&self) -> Option<&[&'a Type]> {
        self.results.as_deref()
    }

    /// The regions.
    pub fn regions(&self) -> &[RegionTypes<'a>] {
        &self.regions
    }

    /// The ranked tensor type of an operand.
    pub fn tensor(&self, index: usize) -> Option<&'a TensorType> {
        self.operands.get(index).and_then(|ty| ty.as_tensor())
    }

    /// The ranked tensor types of some operands; `None` when one is something else.
    pub fn tensors(&self, range: std::ops::Range<usize>) -> Option<Vec<&'a TensorType>> {
        self.operands.get(range)?.iter().map(|ty| ty.as_tensor()).collect()
    }

    /// The ranked tensor type of a result.
    pub fn result(&self, index: usize) -> Option<&'a TensorType> {
        self.results().get(index).and_then(|ty| ty.as_tensor())
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

    /// An attribute that is a list of integers, one for each dimension, or this value for all where it is left out.
    pub fn per_dim(
        &mut self,
        name: &str,
        rank: usize,
        default: i64,
        label: &'static str,
    ) -> Option<Vec<i64>> {
        match self.i64s(name) {
            None => Some(vec![default; rank]),
            Some(values) if values.len() == rank => Some(values.to_vec()),
            Some(values) => {
                let found = values.len();
                self.fail(label, format!("{name} has {found} entries for {rank} dimensions"));
                None
            }
        }
    }

    /// An attribute of pairs, one for each dimension, or zeros where it is left out.
    pub fn pairs(&mut self, name: &str, rank: usize, label: &'static str) -> Option<Vec<(i64, i64)>> {
        let Some(attr) = self.attr(name) else { return Some(vec![(0, 0); rank]) };
        let elements = attr.as_elements()?;
        let shape = elements.ty().shape_usize()?;
        if shape != [rank, 2] {
            self.fail(label, format!("{name} has the shape {shape:?}, not [{rank}, 2]"));
            return None;
        }
        Some(elements.to_i64s()?.chunks(2).map(|pair| (pair[0], pair[1])).collect())
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

    /// Checks that each value is the number of a dimension.
    pub fn in_rank(&mut self, label: &'static str, what: &str, values: &[i64], rank: usize) -> bool {
        let bad = values.iter().find(|v| **v < 0 || **v >= rank as i64).copied();
        self.check(bad.is_none(), label, || {
            format!("{what} {} is not a dimension of a tensor of rank {rank}", bad.unwrap_or(0))
        })
    }

    /// Checks that no value occurs twice.
    pub fn unique(&mut self, label: &'static str, what: &str, values: &[i64]) -> bool {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        self.check(!twice, label, || format!("{what} {values:?} has a value twice"))
    }

    /// Checks that values do not decrease.
    pub fn sorted(&mut self, label: &'static str, what: &str, values: &[i64]) -> bool {
        let rising = values.windows(2).all(|pair| pair[0] <= pair[1]);
        self.check(rising, label, || format!("{what} {values:?} is not sorted"))
    }

    /// Checks that two numbers are the same.
    pub fn same_count(&mut self, label: &'static str, what: &str, found: usize, expected: usize) -> bool {
        self.check(found == expected, label, || format!("{what}: found {found}, expected {expected}"))
    }

    /// Checks that two tensors have elements of the same kind.
    pub fn same_elements(&mut self, label: &'static str, what: &str, a: &TensorType, b: &TensorType) -> bool {
        let same = compatible::elements(a.element(), b.element());
        self.check(same, label, || format!("{what} have different elements: {a} and {b}"))
    }

    /// Checks that two tensors can have the same shape.
    pub fn same_shape(&mut self, label: &'static str, what: &str, a: &TensorType, b: &TensorType) -> bool {
        let same = compatible::dims(a.dims(), b.dims());
        self.check(same, label, || format!("{what} have different shapes: {a} and {b}"))
    }

    /// Gives the inferred result types, after holding those of the operation against them.
    pub fn gives(&mut self, label: &'static str, types: Vec<Type>) -> Option<Vec<Type>> {
        let Some(results) = &self.results else { return Some(types) };
        if results.len() != types.len() {
            let found = results.len();
            self.fail(label, format!("there are {found} results where {} are inferred", types.len()));
            return None;
        }
        let wrong: Vec<String> = results
            .iter()
            .zip(&types)
            .filter(|(found, inferred)| !compatible::types(found, inferred))
            .map(|(found, inferred)| format!("the result has the type {found} where {inferred} is inferred"))
            .collect();
        for message in wrong {
            self.fail(label, message);
        }
        Some(types)
    }

    /// As [`Cx::gives`], for one tensor with the dimensions given and the elements of another.
    pub fn gives_like(
        &mut self,
        label: &'static str,
        like: &TensorType,
        dims: Vec<Dim>,
    ) -> Option<Vec<Type>> {
        self.gives(label, vec![Type::Tensor(like.with_dims(dims))])
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
