//! What a rule sees of an operation, and where it complains.

use warpforge_diag::Severity;

use super::compatible;
use crate::attr::{Attribute, DenseElements, Dict};
use crate::module::{BlockId, Module, OpRef, RegionId};
use crate::table::OpDef;
use crate::types::{Dim, TensorType, Type};

/// The types that a region takes and gives back.
#[derive(Clone, Debug, Default)]
pub struct RegionTypes<'a> {
    /// Types of the block's arguments.
    pub arguments: Vec<&'a Type>,
    /// Types of what the block returns; `None` when it does not end with a `return`.
    pub returns: Option<Vec<&'a Type>>,
    block: Option<(&'a Module, BlockId)>,
}

impl<'m> RegionTypes<'m> {
    /// The types of a region's first block: all that a region of StableHLO has.
    pub fn of(module: &'m Module, region: RegionId) -> Self {
        let Some(&block) = module.blocks(region).first() else { return Self::default() };
        let arguments = module.arguments(block).iter().map(|&value| module.value_type(value)).collect();
        let returns = module.terminator(block).map(|last| last.operand_types().collect());
        Self { arguments, returns, block: Some((module, block)) }
    }

    /// What the region returns; nothing when it does not end with a `return`.
    pub fn returned(&self) -> &[&'m Type] {
        self.returns.as_deref().unwrap_or(&[])
    }

    /// The operations of the block, the last one among them.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = OpRef<'m>> + use<'m> {
        let ids = self.block.map_or(&[] as &[_], |(module, block)| module.block_ops(block));
        let module = self.block.map(|(module, _)| module);
        ids.iter().filter_map(move |&id| Some(module?.op(id))).collect::<Vec<_>>().into_iter()
    }
}

/// An operation, apart from its place in a module: an existing one, or one that is about to be made.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The entry in the table.
    pub def: &'static OpDef,
    /// Types of the operands.
    pub operands: Vec<&'a Type>,
    /// The operands that are constants.
    pub constants: Vec<Option<&'a DenseElements>>,
    /// Types of the results; `None` when they are to be inferred.
    pub results: Option<Vec<&'a Type>>,
    /// The attributes.
    pub attrs: &'a Dict,
    /// The regions.
    pub regions: Vec<RegionTypes<'a>>,
}

/// A constraint that an operation breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its label in the specification, such as `C5`, or a word where the specification has none.
    pub label: &'static str,
    /// What is wrong.
    pub message: String,
    /// Whether the operation is refused for it.
    pub severity: Severity,
}

/// The constraints that a result's shape and elements come from.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    shape: &'static str,
    element: &'static str,
}

impl From<&'static str> for Labels {
    fn from(label: &'static str) -> Self {
        Self { shape: label, element: label }
    }
}

impl From<[&'static str; 2]> for Labels {
    fn from([shape, element]: [&'static str; 2]) -> Self {
        Self { shape, element }
    }
}

/// An operation as its rule sees it.
pub struct Cx<'a> {
    op: Candidate<'a>,
    broken: Vec<Broken>,
}

impl<'a> Cx<'a> {
    /// The context of an operation.
    pub fn new(op: Candidate<'a>) -> Self {
        Self { op, broken: Vec::new() }
    }

    /// The entry in the table.
    pub fn def(&self) -> &'static OpDef {
        self.op.def
    }

    /// Types of the operands.
    pub fn operands(&self) -> &[&'a Type] {
        &self.op.operands
    }

    /// Types of the results; empty when they are to be inferred.
    pub fn results(&self) -> &[&'a Type] {
        self.op.results.as_deref().unwrap_or(&[])
    }

    /// Types of the results; `None` when they are to be inferred.
    pub fn given_results(&self) -> Option<&[&'a Type]> {
        self.op.results.as_deref()
    }

    /// The regions.
    pub fn regions(&self) -> &[RegionTypes<'a>] {
        &self.op.regions
    }

    /// The ranked tensor type of an operand.
    pub fn tensor(&self, index: usize) -> Option<&'a TensorType> {
        self.op.operands.get(index).and_then(|ty| ty.as_tensor())
    }

    /// The ranked tensor types of some operands; `None` when one is something else.
    pub fn tensors(&self, range: std::ops::Range<usize>) -> Option<Vec<&'a TensorType>> {
        self.op.operands.get(range)?.iter().map(|ty| ty.as_tensor()).collect()
    }

    /// The ranked tensor type of a result.
    pub fn result(&self, index: usize) -> Option<&'a TensorType> {
        self.results().get(index).and_then(|ty| ty.as_tensor())
    }

    /// The attributes as they are given.
    pub fn attrs(&self) -> &'a Dict {
        self.op.attrs
    }

    /// An attribute, or its default.
    pub fn attr(&self, name: &str) -> Option<&'a Attribute> {
        self.op.attrs.get(name).or_else(|| self.op.def.attr(name)?.default_value())
    }

    /// An attribute that is an integer.
    pub fn i64(&self, name: &str) -> Option<i64> {
        self.attr(name)?.as_i64()
    }

    /// An attribute that is a list of integers.
    pub fn i64s(&self, name: &str) -> Option<&'a [i64]> {
        self.attr(name)?.as_i64s()
    }

    /// An attribute that is a list of integers, one for each dimension, or this value for all where it is left out or
    /// empty.
    pub fn per_dim(
        &mut self,
        name: &str,
        rank: usize,
        default: i64,
        label: &'static str,
    ) -> Option<Vec<i64>> {
        match self.i64s(name) {
            None | Some([]) => Some(vec![default; rank]),
            Some(values) if values.len() == rank => Some(values.to_vec()),
            Some(values) => {
                let found = values.len();
                self.fail(label, format!("{name} has {found} entries for {rank} dimensions"));
                None
            }
        }
    }

    /// An attribute of pairs, one for each dimension, or zeros where it is left out or empty.
    pub fn pairs(&mut self, name: &str, rank: usize, label: &'static str) -> Option<Vec<(i64, i64)>> {
        let Some(attr) = self.attr(name) else { return Some(vec![(0, 0); rank]) };
        let elements = attr.as_elements()?;
        let shape = elements.ty().shape_usize()?;
        if shape == [0, 2] {
            return Some(vec![(0, 0); rank]);
        }
        if shape != [rank, 2] {
            self.fail(label, format!("{name} has the shape {shape:?}, not [{rank}, 2]"));
            return None;
        }
        Some(elements.to_i64s()?.chunks(2).map(|pair| (pair[0], pair[1])).collect())
    }

    /// The region at a position; an empty one when there is none.
    pub fn region(&self, index: usize) -> RegionTypes<'a> {
        self.op.regions.get(index).cloned().unwrap_or_default()
    }

    /// The integers of an operand that is a constant of integers.
    pub fn constant_ints(&self, index: usize) -> Option<Vec<i64>> {
        let constant = (*self.op.constants.get(index)?)?;
        let element = constant.ty().element().plain()?;
        let counts = element.is_int() || element == crate::types::ElementType::Index;
        if counts { constant.to_i64s() } else { None }
    }

    /// Reports a broken constraint by its label in the specification.
    pub fn fail(&mut self, label: &'static str, message: impl Into<String>) {
        self.broken.push(Broken { label, message: message.into(), severity: Severity::Error });
    }

    /// Reports a broken constraint of the specification that its own tools let pass.
    pub fn warn(&mut self, label: &'static str, message: impl Into<String>) {
        self.broken.push(Broken { label, message: message.into(), severity: Severity::Warning });
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
    pub fn gives(&mut self, labels: impl Into<Labels>, types: Vec<Type>) -> Option<Vec<Type>> {
        let labels = labels.into();
        let Some(results) = self.op.results.clone() else { return Some(types) };
        if results.len() != types.len() {
            let found = results.len();
            self.fail(labels.shape, format!("there are {found} results where {} are inferred", types.len()));
            return None;
        }
        for (found, inferred) in results.into_iter().zip(&types) {
            let label = match (found.as_tensor(), inferred.as_tensor()) {
                _ if compatible::types(found, inferred) => continue,
                (Some(a), Some(b)) if compatible::dims(a.dims(), b.dims()) => labels.element,
                _ => labels.shape,
            };
            self.fail(label, format!("the result has the type {found} where {inferred} is inferred"));
        }
        Some(types)
    }

    /// As [`Cx::gives`], for one tensor with the dimensions given and the elements of another.
    pub fn gives_like(
        &mut self,
        labels: impl Into<Labels>,
        like: &TensorType,
        dims: Vec<Dim>,
    ) -> Option<Vec<Type>> {
        self.gives(labels, vec![Type::Tensor(like.with_dims(dims))])
    }

    /// As [`Cx::gives`], where the elements are free: only the shape of the one result is held against what is inferred.
    pub fn gives_shape(
        &mut self,
        label: &'static str,
        like: &TensorType,
        dims: Vec<Dim>,
    ) -> Option<Vec<Type>> {
        let inferred = like.with_dims(dims);
        match self.result(0) {
            Some(result) => {
                self.same_shape(label, "the result and what is inferred", result, &inferred);
                None
            }
            None => Some(vec![Type::Tensor(inferred)]),
        }
    }

    /// Whether a constraint was broken.
    pub fn is_broken(&self) -> bool {
        self.broken.iter().any(|broken| broken.severity == Severity::Error)
    }

    /// The broken constraints.
    pub fn into_broken(self) -> Vec<Broken> {
        self.broken
    }
}
