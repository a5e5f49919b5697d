//! A function as a graph in which every operation has nodes of its own: nothing is folded, joined, moved or left out.

use std::collections::{HashMap, HashSet};

use warpforge_ir::slice::uses;
use warpforge_ir::table::OpDef;
use warpforge_ir::{Func, OpId, OpKind, OpRef};
use warpforge_tensor::Tensor;

use super::element::storage;
use super::{Import, Result, Values, check_size, inputs, not, ops_of};
use crate::graph::build::Builder;
use crate::graph::op::Op;
use crate::graph::{Graph, Node, NodeId};

/// A moment of an operation, in the order in which the nodes of a graph are computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpSpan {
    /// The operation, of the function or of one that it calls.
    pub op: OpId,
    /// How many nodes of the graph are computed by then.
    pub nodes: usize,
    /// What it gives; nothing where it begins. An operation that changes nothing gives a node that others gave before.
    pub results: Option<Vec<NodeId>>,
}

/// A function operation by operation.
#[derive(Debug, Clone)]
pub(crate) struct OpByOp {
    /// The nodes of all operations, one operation's after the other's.
    pub(crate) graph: Graph,
    /// Where each operation begins and ends among them.
    pub(crate) marks: Vec<OpSpan>,
}

/// The graph of a function as it is written. `weights` are the arguments that are known while compiling.
///
/// # Errors
///
/// When the function has values that are no tensors of known sizes, or calls that add up to too many operations.
pub(crate) fn import_op_by_op(func: Func<'_>, weights: &dyn Fn(usize) -> Option<Tensor>) -> Result<OpByOp> {
    check_size(func)?;
    let module = func.op().module();
    let mut each = OpByOp { graph: Graph::default(), marks: Vec::new() };
    let mut values = Values::new();
    let mut given = 0;
    for (at, &argument) in func.arguments().iter().enumerate() {
        let (op, element, dims) = match weights(at) {
            Some(weight) => {
                let (element, dims) = (weight.element_type(), weight.dims().to_vec());
                (Op::Constant(weight), element, dims)
            }
            None => {
                let (element, dims) = storage(module.value_type(argument))
                    .ok_or_else(|| not(format!("argument {at} is no tensor of known sizes")))?;
                given += 1;
                (Op::Argument(given - 1), element, dims)
            }
        };
        let id = each.push(Node { op, inputs: Vec::new(), element, dims, origin: None })?;
        values.insert(argument, id);
    }
    each.graph.outputs = each.body(func, values, 0)?;
    Ok(each)
}

impl OpByOp {
    fn push(&mut self, node: Node) -> Result<NodeId> {
        let id = u32::try_from(self.graph.nodes.len()).map_err(|_| not("too many values"))?;
        self.graph.nodes.push(node);
        Ok(NodeId(id))
    }

    fn mark(&mut self, op: OpId, results: Option<Vec<NodeId>>) {
        self.marks.push(OpSpan { op, nodes: self.graph.nodes.len(), results });
    }

    fn body(&mut self, func: Func<'_>, mut values: Values, depth: usize) -> Result<Vec<NodeId>> {
        for op in ops_of(func, depth)? {
            if op.def().is_some_and(OpDef::is_terminator) {
                return inputs(op, &values);
            }
            self.mark(op.id(), None);
            let results = match op.callee() {
                Some(callee) => {
                    let given = inputs(op, &values)?;
                    let values = callee.arguments().iter().copied().zip(given).collect();
                    self.body(callee, values, depth + 1)?
                }
                None => self.alone(func, op, &values, depth)?,
            };
            self.mark(op.id(), Some(results.clone()));
            values.extend(op.results().zip(results));
        }
        Err(not(format!("@{} does not return", func.name())))
    }

    /// The nodes of one operation, made as if its operands were a function's arguments.
    fn alone(&mut self, func: Func<'_>, op: OpRef<'_>, values: &Values, depth: usize) -> Result<Vec<NodeId>> {
        let mut import = Import::new(Builder::as_written());
        import.builder.origin = Some(op.id());
        let (mut own, mut known) = (Values::new(), HashMap::new());
        for value in uses(op) {
            if own.contains_key(&value) {
                continue;
            }
            let outer =
                *values.get(&value).ok_or_else(|| not(format!("{} uses an unknown value", op.name())))?;
            let node = self.graph.node(outer);
            let stand_in = match &node.op {
                Op::Constant(tensor) if starts_at_a_value(op) && node.dims.is_empty() => {
                    Op::Constant(tensor.clone())
                }
                _ => Op::Argument(own.len()),
            };
            let inner = import.builder.raw(stand_in, Vec::new(), node.element, node.dims.clone());
            own.insert(value, inner);
            known.insert(inner, outer);
        }
        let results = import.op(func, op, &own, depth)?;
        let needed = needed(&import, &results);
        let effects = import.effects;
        for (at, mut node) in (0..).zip(import.builder.into_nodes()) {
            let inner = NodeId(at);
            if known.contains_key(&inner) || !needed.contains(&inner) {
                continue;
            }
            node.inputs.iter_mut().for_each(|input| *input = known[input]);
            let outer = self.push(node)?;
            known.insert(inner, outer);
        }
        self.graph.effects.extend(effects.iter().map(|id| known[id]));
        Ok(results.iter().map(|id| known[id]).collect())
    }
}

/// Whether kernels of an operation begin with a value that must be known when they are made.
fn starts_at_a_value(op: OpRef<'_>) -> bool {
    op.is(OpKind::Reduce) || op.is(OpKind::ReduceWindow)
}

/// The nodes that results and effects are computed from, themselves among them.
fn needed(import: &Import, results: &[NodeId]) -> HashSet<NodeId> {
    let mut pending: Vec<NodeId> = results.iter().chain(&import.effects).copied().collect();
    let mut needed = HashSet::new();
    while let Some(id) = pending.pop() {
        if needed.insert(id) {
            pending.extend(&import.builder.node(id).inputs);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    /// The names of a function's operations with those of the nodes that each gives.
    fn each(module: &str) -> (OpByOp, Vec<(String, Vec<String>)>) {
        let module = text::parse(&Source::new("m", module), &text::Options::default()).unwrap();
        let each = import_op_by_op(module.function("main").unwrap(), &|_| None).unwrap();
        let ended = each.marks.iter().filter_map(|mark| {
            let given = mark.results.as_ref()?.iter().map(|&id| each.graph.node(id).op.name()).collect();
            Some((module.op(mark.op).name().to_owned(), given))
        });
        let ended = ended.collect();
        (each, ended)
    }

    #[test]
    fn equal_neutral_constant_and_unused_operations_are_all_there() {
        let (each, ended) = each(
            "func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<2x3xf32>
    %i = stablehlo.iota dim = 0 : tensor<2x3xf32>
    %0 = stablehlo.multiply %a, %one : tensor<2x3xf32>
    %1 = stablehlo.multiply %a, %one : tensor<2x3xf32>
    %2 = stablehlo.add %one, %i : tensor<2x3xf32>
    %3 = stablehlo.reshape %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %5 = stablehlo.negate %4 : tensor<3x2xf32>
    return %5 : tensor<3x2xf32>\n}",
        );
        let names: Vec<&str> = ended.iter().map(|(_, given)| given[0].as_str()).collect();
        assert_eq!(
            names,
            ["broadcast", "iota", "multiply", "multiply", "add", "multiply", "transpose", "negate"]
        );
        // The reshape changes nothing: its value is the second product.
        let results: Vec<&Vec<NodeId>> = each.marks.iter().filter_map(|mark| mark.results.as_ref()).collect();
        assert_eq!(results[5], results[3]);
        assert_ne!(results[2], results[3]);
        // Each operation begins before its nodes and ends after them.
        for pair in each.marks.chunks(2) {
            assert_eq!((pair[0].op, pair[0].results.is_none()), (pair[1].op, true));
            let made = pair[0].nodes..pair[1].nodes;
            assert!(made.clone().all(|at| each.graph.nodes[at].origin == Some(pair[0].op)), "{made:?}");
        }
    }

    #[test]
    fn called_functions_are_inside_their_calls_and_reductions_know_where_they_start() {
        let (each, ended) = each(
            "func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>\n}
func.func @main(%a: tensor<4xf32>) -> tensor<f32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>\n}",
        );
        let names: Vec<&str> = ended.iter().map(|(name, _)| name.as_str()).collect();
        let inside = ["stablehlo.add", "func.call"];
        assert_eq!(names, [&["stablehlo.constant"], &inside[..], &inside, &["stablehlo.reduce"]].concat());
        assert_eq!(ended[5].1, ["reduce add"]);
        assert_eq!(each.graph.outputs.len(), 1);
    }
}
