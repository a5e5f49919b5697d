//! The end of a node: its value is the result of the last operation that has its location.

use std::collections::HashSet;

use warpforge_ir::{ElementType, OpKind, ValueId};
use warpforge_tensor::Scalar;

use super::cx::Cx;
use super::graph::{location, node_name};
use super::ops::Outcome;
use super::refusal::Lowered;
use super::value::{Tensor, Value, value_type};
use crate::graph::Source;
use crate::graph::schema::{Argument, Node};
use crate::graph::size::Size;

impl Cx<'_> {
    /// Makes sure that the last operation of the node's location gives the node's value: an identity where the value
    /// comes from elsewhere, and for nodes with several values an operation of several results; the parts also get the
    /// locations of the names they are used by.
    pub(super) fn finish(&mut self, node: &Node, uses: &HashSet<&str>, outcome: Outcome) -> Lowered<Outcome> {
        let renamed =
            matches!(node.outputs.as_slice(), [Argument::AsTensor(name)] if name.name != node_name(node));
        if let [Value::Tensor(tensor)] = outcome.as_slice()
            && !renamed
        {
            if self.is_last(tensor.id, node) {
                return Ok(outcome);
            }
            let same = self.identity(tensor)?;
            return Ok(vec![Value::Tensor(same)]);
        }
        let parts = named_parts(node, &outcome);
        if parts.iter().all(Option::is_none) {
            return Ok(outcome);
        }
        let mut ids: Vec<ValueId> = Vec::new();
        for part in &parts {
            ids.push(match part {
                Some((_, tensor)) => tensor.id,
                // An empty tensor in place of what is not computed: values are known by their positions.
                None => self.splat(ElementType::Bool, &[Size::Int(0)], Scalar::Bool(false))?.id,
            });
        }
        // Nothing uses it, so it changes nothing; it has as many results as the node has values.
        self.b.create(OpKind::OptimizationBarrier, &ids, [], vec![], None)?;
        let source = Source::of(&node.metadata);
        let outer = self.b.set_location(None);
        let mut renamed = Vec::new();
        for (name, tensor) in parts.iter().flatten() {
            // What nothing uses is no node of the traced graph.
            self.b.set_location(Some(location(name, source.as_ref())));
            renamed.push(if uses.contains(name) { self.identity(tensor)? } else { tensor.clone() });
        }
        self.b.set_location(outer);
        Ok(replaced(node, outcome, &mut renamed.into_iter()))
    }

    fn is_last(&self, value: ValueId, node: &Node) -> bool {
        let module = self.b.module();
        let Some(&last) = module.block_ops(self.b.block()).last() else { return false };
        let defined = module.defining_op(value).is_some_and(|op| op.id() == last);
        let here = location(node_name(node), Source::of(&node.metadata).as_ref());
        defined && module.location(last) == Some(&here)
    }

    /// The same tensor as the result of an operation of its own; it stays the variable that it was.
    fn identity(&mut self, tensor: &Tensor) -> Lowered<Tensor> {
        let ty = value_type(tensor.dtype, &tensor.dims);
        let id = self.b.op_as(OpKind::Convert, &[tensor.id], [], ty)?;
        Ok(Tensor { id, ..tensor.clone() })
    }
}

/// The tensors that a node gives with their names, by their positions.
fn named_parts<'n>(node: &'n Node, outcome: &Outcome) -> Vec<Option<(&'n str, Tensor)>> {
    let mut parts = Vec::new();
    for (output, value) in node.outputs.iter().zip(outcome) {
        match (output, value) {
            (Argument::AsTensor(name), Value::Tensor(tensor)) => {
                parts.push(Some((name.name.as_str(), tensor.clone())));
            }
            (Argument::AsTensors(names), Value::Tensors(tensors)) => {
                let tensors = tensors.iter().flatten().cloned();
                parts.extend(names.iter().map(|name| name.name.as_str()).zip(tensors).map(Some));
            }
            _ => parts.push(None),
        }
    }
    parts
}

/// The outcome with the tensors of [`named_parts`] replaced, in order.
fn replaced(node: &Node, outcome: Outcome, tensors: &mut impl Iterator<Item = Tensor>) -> Outcome {
    let values = node.outputs.iter().zip(outcome).map(|(output, value)| match (output, value) {
        (Argument::AsTensor(_), Value::Tensor(old)) => Value::Tensor(tensors.next().unwrap_or(old)),
        (Argument::AsTensors(_), Value::Tensors(old)) => {
            let new = old.into_iter().map(|old| old.map(|old| tensors.next().unwrap_or(old)));
            Value::Tensors(new.collect())
        }
        (_, other) => other,
    });
    values.collect()
}
