//! The lowerings, one file for each family of operations.
#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Cx<'m>` is one for each `'m` and does not coerce to a function for all of them"
)]

mod arrange;
mod attention;
mod backward;
mod convolution;
#[cfg(test)]
mod covered;
mod creation;
mod detection;
mod diagonal;
mod distance;
pub(super) mod higher_order;
mod indexing;
mod loss;
mod matrix;
mod normalize;
mod pad;
mod patches;
mod pointwise;
mod pooling;
mod prelude;
mod quantized;
mod random;
mod recurrent;
mod reduction;
mod repeat;
mod resize;
mod sample;
mod special;
mod symbolic;
#[cfg(test)]
mod testing;
mod transform;
mod view;
mod window;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::args::Args;
use super::cx::Cx;
use super::refusal::Lowered;
use super::value::{Tensor, Value};

/// What a node gives: one value for each output that the archive lists.
pub(crate) type Outcome = Vec<Value>;

/// A lowering.
pub(crate) type Lower = fn(&mut Cx<'_>, &Args<'_>) -> Lowered<Outcome>;

/// An operation that can be lowered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    name: &'static str,
    /// Other names with the same lowering: overloads and synonyms.
    also: &'static [&'static str],
    /// What builds it.
    pub(super) lower: Lower,
    /// Whether a result can be the argument itself, or a view of it.
    pub(super) aliases: bool,
}

/// An operation that gives new tensors.
const fn op(name: &'static str, lower: Lower) -> Op {
    Op { name, also: &[], lower, aliases: false }
}

/// An operation that gives its argument, or views of it.
const fn view(name: &'static str, lower: Lower) -> Op {
    Op { name, also: &[], lower, aliases: true }
}

impl Op {
    /// Overloads and synonyms that are lowered in the same way.
    const fn also(self, names: &'static [&'static str]) -> Self {
        Self { also: names, ..self }
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }
}

/// One tensor.
fn one(tensor: Tensor) -> Lowered<Outcome> {
    Ok(vec![Value::Tensor(tensor)])
}

/// All families: the tables of each.
const FAMILIES: &[&[&[Op]]] = &[
    &[
        arrange::TABLE,
        attention::TABLE,
        convolution::TABLE,
        creation::TABLE,
        detection::TABLE,
        diagonal::TABLE,
        distance::TABLE,
    ],
    backward::TABLES,
    indexing::TABLES,
    loss::TABLES,
    matrix::TABLES,
    normalize::TABLES,
    &[pad::TABLE, patches::TABLE],
    pointwise::TABLES,
    pooling::TABLES,
    quantized::TABLES,
    &[random::TABLE, recurrent::TABLE, repeat::TABLE],
    reduction::TABLES,
    &[resize::TABLE, sample::TABLE, special::TABLE, symbolic::TABLE, transform::TABLE, window::TABLE],
    view::TABLES,
];

fn all() -> impl Iterator<Item = &'static Op> {
    FAMILIES.iter().flat_map(|tables| tables.iter()).flat_map(|table| table.iter())
}

static REGISTRY: LazyLock<HashMap<&'static str, Op>> =
    LazyLock::new(|| all().flat_map(|op| op.names().map(|name| (name, *op))).collect());

/// How a target can be lowered.
pub(super) enum Found {
    /// By its own entry.
    Value(Op),
    /// By the entry of the functional operation, and a write to its first argument.
    InPlace(Op),
    /// By the entry of the functional operation, and a write to its argument `out`.
    Out(Op),
}

/// Finds the lowering of a target such as `aten.add.Tensor`.
pub(super) fn lookup(target: &str) -> Option<Found> {
    if let Some(op) = REGISTRY.get(target) {
        return Some(Found::Value(*op));
    }
    let (namespace, rest) = target.split_once('.')?;
    let (base, overload) = rest.split_once('.')?;
    if overload == "out" {
        return REGISTRY.get(format!("{namespace}.{base}.default").as_str()).copied().map(Found::Out);
    }
    if let Some(viewed) = base.strip_suffix("_copy") {
        // The copy of a view shares no memory with what it was taken from.
        let op = REGISTRY.get(format!("{namespace}.{viewed}.{overload}").as_str()).copied();
        return op.map(|op| Found::Value(Op { aliases: false, ..op }));
    }
    let functional = base.strip_suffix('_').filter(|base| !base.ends_with('_') && !base.is_empty())?;
    REGISTRY.get(format!("{namespace}.{functional}.{overload}").as_str()).copied().map(Found::InPlace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_one_lowering() {
        let all: Vec<&str> = super::all().flat_map(Op::names).collect();
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(all.len(), unique.len(), "an operation is in two tables");
        assert!(unique.iter().all(|name| name.split('.').count() >= 2));
    }

    #[test]
    fn out_variants_write_to_what_they_are_given() {
        let numbers = |values: [f32; 2]| testing::Given::Floats(&[2], values.to_vec());
        let arguments = vec![("self", numbers([1.0, -3.0])), ("out", numbers([0.0, 0.0]))];
        let found = testing::evaluated("aten.relu.out", arguments, &[(testing::Code::F32, &[2])]);
        // The result, and the argument that was written to.
        assert_eq!(found, [[1.0, 0.0], [1.0, 0.0]]);
    }

    #[test]
    fn in_place_variants_are_found_by_the_functional_one() {
        assert!(matches!(lookup("aten.relu.default"), Some(Found::Value(_))));
        assert!(matches!(lookup("aten.relu_.default"), Some(Found::InPlace(_))));
        assert!(matches!(lookup("aten.atan2.out"), Some(Found::Out(_))));
        assert!(lookup("aten.no_such_thing.default").is_none());
        assert!(lookup("aten.relu__.default").is_none());
    }

    #[test]
    fn copies_of_views_are_found_by_the_view_and_share_nothing() {
        assert!(matches!(lookup("aten.slice.Tensor"), Some(Found::Value(Op { aliases: true, .. }))));
        assert!(matches!(lookup("aten.slice_copy.Tensor"), Some(Found::Value(Op { aliases: false, .. }))));
        assert!(lookup("aten.no_such_view_copy.default").is_none());
    }
}
