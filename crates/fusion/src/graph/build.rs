//! Building a graph: equal nodes are one, constants are folded, layouts are moved to where they cost least.

use std::collections::HashMap;

use warpforge_ir::OpId;
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::evaluate::evaluate;
use super::op::Op;
use super::scalar::ReduceKind;
use super::{Graph, Node, NodeId, ValueSource};
use crate::view::{LayoutOp, View};

/// Constants with up to so many elements are computed while compiling.
const FOLDED_ELEMENTS: usize = 1 << 17;

/// Constants with up to so many bytes are compared with each other.
const COMPARED_BYTES: usize = 1 << 10;

/// Builds a graph node by node.
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    known: HashMap<String, NodeId>,
    /// Where the nodes added now come from.
    pub origin: Option<OpId>,
    /// Whether nothing is computed while compiling.
    as_written: bool,
}

impl Builder {
    /// A builder that computes nothing while compiling.
    pub(super) fn as_written() -> Self {
        Self { as_written: true, ..Self::default() }
    }

    /// Says which values of the entry function the nodes hold.
    pub fn set_values(&mut self, values: Vec<ValueSource>) {
        self.graph.values = values;
    }

    /// The finished graph.
    #[must_use]
    pub fn finish(mut self, outputs: Vec<NodeId>, effects: Vec<NodeId>) -> Graph {
        self.graph.outputs = outputs;
        self.graph.effects = effects;
        self.graph.pruned()
    }

    /// The nodes so far.
    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.graph.nodes
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }

    /// A node as it is; an equal one that is there already stands for it.
    pub fn raw(&mut self, op: Op, inputs: Vec<NodeId>, element: ElementType, dims: Vec<usize>) -> NodeId {
        let key = match &op {
            Op::Constant(tensor) if tensor.bytes().len() <= COMPARED_BYTES => {
                Some(format!("{element} {dims:?} {:?}", tensor.bytes()))
            }
            Op::Constant(_) | Op::Opaque(_) => None,
            _ => Some(format!("{op:?} {inputs:?} {element} {dims:?}")),
        };
        if let Some(&id) = key.as_ref().and_then(|key| self.known.get(key)) {
            return id;
        }
        let id = NodeId(u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX));
        self.graph.nodes.push(Node { op, inputs, element, dims, origin: self.origin });
        if let Some(key) = key {
            self.known.insert(key, id);
        }
        id
    }

    /// A constant; one that repeats a single element is a broadcast scalar.
    pub fn constant(&mut self, tensor: Tensor) -> NodeId {
        let (element, dims) = (tensor.element_type(), tensor.dims().to_vec());
        let width = element.byte_width();
        let first = tensor.bytes().get(..width);
        let uniform = tensor.len() > 1
            && tensor.len() <= FOLDED_ELEMENTS
            && tensor.bytes().chunks_exact(width).all(|one| Some(one) == first);
        if uniform && let Some(scalar) = first.and_then(|first| scalar(element, first)) {
            let scalar = self.raw(Op::Constant(scalar), vec![], element, vec![]);
            return self.broadcast(scalar, dims, &[]);
        }
        self.raw(Op::Constant(tensor), vec![], element, dims)
    }

    /// A scalar constant repeated.
    pub fn splat(&mut self, element: ElementType, value: Scalar, dims: Vec<usize>) -> Option<NodeId> {
        let scalar = self.constant(Tensor::scalar(element, value).ok()?);
        Some(self.broadcast(scalar, dims, &[]))
    }

    /// A node in its best form.
    pub fn add(&mut self, op: Op, inputs: Vec<NodeId>, element: ElementType, dims: Vec<usize>) -> NodeId {
        if let Some(id) = self.const_folded(&op, &inputs, element, &dims) {
            return id;
        }
        match op {
            Op::Elementwise(_) | Op::Compare(..) => self.elementwise(op, inputs, element, dims),
            Op::Layout(step) => match inputs.as_slice() {
                &[input] => self.layout(step, input),
                _ => self.raw(Op::Layout(step), inputs, element, dims),
            },
            Op::Reduce(reduction, axes) => self.reduce(reduction, axes, inputs, element, dims),
            Op::DynamicSlice => self.dynamic_slice(inputs, element, dims),
            Op::Concat(axis) => self.concat(axis, inputs, element, dims),
            _ => self.raw(op, inputs, element, dims),
        }
    }

    /// A comparison of two nodes of one shape.
    pub fn compare(
        &mut self,
        direction: ComparisonDirection,
        order: ComparisonType,
        a: NodeId,
        b: NodeId,
    ) -> NodeId {
        let dims = self.node(a).dims.clone();
        self.add(Op::Compare(direction, order), vec![a, b], ElementType::Bool, dims)
    }

    /// An operation on each element of nodes of one shape; the result has the element type of the last.
    pub fn map(&mut self, function: Function, inputs: Vec<NodeId>) -> NodeId {
        let last = self.node(inputs[inputs.len() - 1]);
        let (element, dims) = (last.element, last.dims.clone());
        self.add(Op::Elementwise(function), inputs, element, dims)
    }

    /// A node in other dimensions.
    pub fn reshape(&mut self, input: NodeId, dims: Vec<usize>) -> NodeId {
        self.layout(LayoutOp::Reshape(dims), input)
    }

    /// A node with its dimensions in another order.
    pub fn transpose(&mut self, input: NodeId, permutation: Vec<usize>) -> NodeId {
        self.layout(LayoutOp::Transpose(permutation), input)
    }

    /// A node repeated; dimensions of size 1 that grow are taken out first.
    pub fn broadcast(&mut self, input: NodeId, dims: Vec<usize>, map: &[usize]) -> NodeId {
        let own = self.node(input).dims.clone();
        let grows = |at: usize| own[at] == 1 && dims[map[at]] != 1;
        let kept: Vec<usize> = (0..own.len()).filter(|&at| !grows(at)).collect();
        let squeezed = self.reshape(input, kept.iter().map(|&at| own[at]).collect());
        let map: Vec<usize> = kept.iter().map(|&at| map[at]).collect();
        self.layout(LayoutOp::Broadcast { dims, map }, squeezed)
    }

    /// The value of a node that is known while compiling, unless it is large.
    #[must_use]
    pub fn value(&self, id: NodeId) -> Option<Tensor> {
        let node = self.node(id);
        match &node.op {
            Op::Constant(tensor) => Some(tensor.clone()),
            Op::Layout(_) if node.len() <= FOLDED_ELEMENTS => {
                let inner = self.value(node.inputs[0])?;
                evaluate(&node.op, &[inner], node.element, &node.dims)
            }
            _ => None,
        }
    }

    fn const_folded(
        &mut self,
        op: &Op,
        inputs: &[NodeId],
        element: ElementType,
        dims: &[usize],
    ) -> Option<NodeId> {
        let elements: usize = dims.iter().product();
        let is_layout = matches!(op, Op::Layout(LayoutOp::Broadcast { .. }));
        if self.as_written || is_layout || !is_folded(op) || elements > FOLDED_ELEMENTS {
            return None;
        }
        // What repeats is computed once, and repeated afterwards.
        if matches!(op, Op::Elementwise(_) | Op::Compare(..))
            && inputs.iter().all(|&id| self.splat_source(id).is_some())
        {
            let scalars: Vec<NodeId> = inputs.iter().filter_map(|&id| self.splat_source(id)).collect();
            let tensors: Option<Vec<Tensor>> = scalars.iter().map(|&id| self.value(id)).collect();
            let result = evaluate(op, &tensors?, element, &[])?;
            let scalar = self.constant(result);
            return Some(self.broadcast(scalar, dims.to_vec(), &[]));
        }
        let tensors: Option<Vec<Tensor>> = inputs.iter().map(|&id| self.value(id)).collect();
        let result = evaluate(op, &tensors?, element, dims)?;
        Some(self.constant(result))
    }

    /// The scalar that a node repeats, itself where it is a scalar.
    fn splat_source(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id);
        match &node.op {
            Op::Constant(tensor) if tensor.dims().is_empty() => Some(id),
            Op::Layout(LayoutOp::Broadcast { map, .. }) if map.is_empty() => Some(node.inputs[0]),
            _ => None,
        }
    }

    /// The number that a node repeats.
    #[must_use]
    pub fn number(&self, id: NodeId) -> Option<f64> {
        let source = self.splat_source(id)?;
        let tensor = self.graph.constant(source)?;
        matches!(tensor.element_type(), ElementType::Float(_)).then(|| tensor.get(0).to_f64())
    }

    fn elementwise(&mut self, op: Op, inputs: Vec<NodeId>, element: ElementType, dims: Vec<usize>) -> NodeId {
        if let Some(id) = self.neutral(&op, &inputs, element) {
            return id;
        }
        if let Some(id) = self.below_broadcast(&op, &inputs, element, &dims) {
            return id;
        }
        if let Some(permutation) = self.common_transpose(&inputs) {
            let back = inverse(&permutation);
            let inner: Vec<NodeId> = inputs.iter().map(|&id| self.transpose(id, back.clone())).collect();
            let inner_dims = back.iter().map(|&at| dims[at]).collect();
            let result = self.add(op, inner, element, inner_dims);
            return self.transpose(result, permutation);
        }
        self.raw(op, inputs, element, dims)
    }

    /// Values one after the other, in the order of dimensions that they are stored in.
    fn concat(&mut self, axis: usize, inputs: Vec<NodeId>, element: ElementType, dims: Vec<usize>) -> NodeId {
        let Some(permutation) = self.common_transpose(&inputs) else {
            return self.raw(Op::Concat(axis), inputs, element, dims);
        };
        let back = inverse(&permutation);
        let inner: Vec<NodeId> = inputs.iter().map(|&id| self.transpose(id, back.clone())).collect();
        let inner_dims = back.iter().map(|&at| dims[at]).collect();
        let result = self.raw(Op::Concat(permutation[axis]), inner, element, inner_dims);
        self.transpose(result, permutation)
    }

    /// Operations that change nothing.
    fn neutral(&self, op: &Op, inputs: &[NodeId], element: ElementType) -> Option<NodeId> {
        let Op::Elementwise(kind) = op else { return None };
        let is = |at: usize, number: f64| self.number(inputs[at]) == Some(number);
        let truth = |at: usize, value: bool| {
            let source = self.splat_source(inputs[at])?;
            (self.node(source).element == ElementType::Bool
                && self.graph.constant(source)?.get(0).is_true() == value)
                .then_some(())
        };
        match kind {
            Function::Convert if self.node(inputs[0]).element == element => Some(inputs[0]),
            Function::Multiply if is(1, 1.0) => Some(inputs[0]),
            Function::Multiply if is(0, 1.0) => Some(inputs[1]),
            Function::Divide if is(1, 1.0) => Some(inputs[0]),
            // Adding -0 changes nothing; adding +0 turns -0 into +0, and is kept.
            Function::And if truth(0, true).is_some() => Some(inputs[1]),
            Function::And if truth(1, true).is_some() => Some(inputs[0]),
            Function::Or if truth(0, false).is_some() => Some(inputs[1]),
            Function::Or if truth(1, false).is_some() => Some(inputs[0]),
            Function::Select if truth(0, true).is_some() => Some(inputs[1]),
            Function::Select if truth(0, false).is_some() => Some(inputs[2]),
            _ => None,
        }
    }

    /// An operation on what repeats in the same way, done before it repeats.
    fn below_broadcast(
        &mut self,
        op: &Op,
        inputs: &[NodeId],
        element: ElementType,
        dims: &[usize],
    ) -> Option<NodeId> {
        let mut common: Option<Vec<usize>> = None;
        for &id in inputs {
            let node = self.node(id);
            match &node.op {
                Op::Layout(LayoutOp::Broadcast { map, .. }) if map.is_empty() => {}
                Op::Layout(LayoutOp::Broadcast { map, .. }) => match &common {
                    None => common = Some(map.clone()),
                    Some(known) if known == map => {}
                    Some(_) => return None,
                },
                Op::Constant(tensor) if tensor.dims().is_empty() => {}
                _ => return None,
            }
        }
        let map = common?;
        let inner_dims: Vec<usize> = map.iter().map(|&at| dims[at]).collect();
        let inner: Vec<NodeId> = inputs
            .iter()
            .map(|&id| match &self.node(id).op {
                Op::Layout(LayoutOp::Broadcast { map, .. }) if !map.is_empty() => self.node(id).inputs[0],
                _ => {
                    let source = self.splat_source(id).unwrap_or(id);
                    self.broadcast(source, inner_dims.clone(), &[])
                }
            })
            .collect();
        let result = self.add(op.clone(), inner, element, inner_dims);
        Some(self.broadcast(result, dims.to_vec(), &map))
    }

    /// The permutation that all operands come out of, repeated ones left aside.
    fn common_transpose(&self, inputs: &[NodeId]) -> Option<Vec<usize>> {
        let mut common = None;
        for &id in inputs {
            match &self.node(id).op {
                Op::Layout(LayoutOp::Transpose(permutation)) => match common {
                    None => common = Some(permutation),
                    Some(known) if known == permutation => {}
                    Some(_) => return None,
                },
                Op::Layout(LayoutOp::Broadcast { .. }) => {}
                _ => return None,
            }
        }
        common.cloned()
    }

    /// A node in another layout.
    pub fn layout(&mut self, step: LayoutOp, input: NodeId) -> NodeId {
        let node = self.node(input);
        let (element, own) = (node.element, node.dims.clone());
        let dims = match &step {
            LayoutOp::Reshape(dims) | LayoutOp::Broadcast { dims, .. } | LayoutOp::Slice { dims, .. } => {
                dims.clone()
            }
            LayoutOp::Transpose(permutation) => permutation.iter().map(|&at| own[at]).collect(),
            LayoutOp::Reverse(_) => own.clone(),
        };
        let unchanged = View::dense(&own).after(&step);
        if dims == own && unchanged.as_ref().is_some_and(View::is_dense) {
            return input;
        }
        if !matches!(step, LayoutOp::Broadcast { .. })
            && let Some(id) = self.const_folded(&Op::Layout(step.clone()), &[input], element, &dims)
        {
            return id;
        }
        let (inner, source) = match &self.node(input).op {
            Op::Layout(inner) => (inner.clone(), self.node(input).inputs[0]),
            _ => return self.raw(Op::Layout(step), vec![input], element, dims),
        };
        match (&inner, &step) {
            (LayoutOp::Reshape(_), LayoutOp::Reshape(_)) => return self.reshape(source, dims),
            (LayoutOp::Transpose(first), LayoutOp::Transpose(second)) => {
                let both = second.iter().map(|&at| first[at]).collect();
                return self.transpose(source, both);
            }
            (LayoutOp::Broadcast { map: first, .. }, LayoutOp::Broadcast { map: second, .. }) => {
                let both = first.iter().map(|&at| second[at]).collect();
                return self.layout(LayoutOp::Broadcast { dims, map: both }, source);
            }
            // What repeats is put in order before it repeats.
            (LayoutOp::Broadcast { map, .. }, LayoutOp::Transpose(permutation)) => {
                let place = inverse(permutation);
                let mut order: Vec<usize> = (0..map.len()).collect();
                order.sort_by_key(|&at| place[map[at]]);
                let ordered = self.transpose(source, order.clone());
                let map = order.iter().map(|&at| place[map[at]]).collect();
                return self.layout(LayoutOp::Broadcast { dims, map }, ordered);
            }
            (LayoutOp::Broadcast { map, .. }, _) if map.is_empty() => {
                return self.layout(LayoutOp::Broadcast { dims, map: vec![] }, source);
            }
            _ => {}
        }
        // A transpose that only moves dimensions of size 1 is a reshape.
        if let LayoutOp::Transpose(_) = step
            && unchanged.is_some_and(|view| view.is_dense())
        {
            return self.raw(Op::Layout(LayoutOp::Reshape(dims.clone())), vec![input], element, dims);
        }
        self.raw(Op::Layout(step), vec![input], element, dims)
    }

    /// A dynamic slice; a plain one where its start is known.
    fn dynamic_slice(&mut self, inputs: Vec<NodeId>, element: ElementType, dims: Vec<usize>) -> NodeId {
        let starts: Option<Vec<usize>> = (0..dims.len())
            .map(|at| {
                let most = self.node(inputs[0]).dims[at].checked_sub(dims[at])?;
                let start = self.value(*inputs.get(1 + at)?)?.get(0).to_i128();
                usize::try_from(start.clamp(0, most as i128)).ok()
            })
            .collect();
        match starts {
            Some(starts) if !self.as_written => {
                self.layout(LayoutOp::Slice { starts, steps: vec![1; dims.len()], dims }, inputs[0])
            }
            _ => self.raw(Op::DynamicSlice, inputs, element, dims),
        }
    }

    fn reduce(
        &mut self,
        reduction: ReduceKind,
        axes: Vec<usize>,
        inputs: Vec<NodeId>,
        element: ElementType,
        dims: Vec<usize>,
    ) -> NodeId {
        let [input] = inputs[..] else {
            return self.raw(Op::Reduce(reduction, axes), inputs, element, dims);
        };
        let node = self.node(input);
        if axes.iter().all(|&axis| node.dims[axis] == 1) {
            return self.reshape(input, dims);
        }
        // The order of dimensions that are summed over does not matter, and that of the others can be restored.
        if let Op::Layout(LayoutOp::Transpose(permutation)) = &node.op {
            let (permutation, source) = (permutation.clone(), node.inputs[0]);
            let mut inner_axes: Vec<usize> = axes.iter().map(|&axis| permutation[axis]).collect();
            inner_axes.sort_unstable();
            let kept: Vec<usize> =
                (0..permutation.len()).filter(|at| !axes.contains(at)).map(|at| permutation[at]).collect();
            let mut sorted = kept.clone();
            sorted.sort_unstable();
            let source_dims = self.node(source).dims.clone();
            let inner_dims = sorted.iter().map(|&at| source_dims[at]).collect();
            let result = self.raw(Op::Reduce(reduction, inner_axes), vec![source], element, inner_dims);
            let order = kept.iter().filter_map(|at| sorted.binary_search(at).ok()).collect();
            return self.transpose(result, order);
        }
        self.raw(Op::Reduce(reduction, axes), inputs, element, dims)
    }
}

/// Whether an operation of constants is computed while compiling: it takes about as long as copying its operands.
fn is_folded(op: &Op) -> bool {
    matches!(
        op,
        Op::Elementwise(_)
            | Op::Compare(..)
            | Op::Iota(_)
            | Op::Layout(_)
            | Op::Pad { .. }
            | Op::Concat(_)
            | Op::Gather(..)
            | Op::Scatter(..)
            | Op::DynamicSlice
            | Op::DynamicUpdateSlice
    )
}

/// The permutation that undoes another.
#[must_use]
pub(crate) fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut back = vec![0; permutation.len()];
    for (to, &from) in permutation.iter().enumerate() {
        back[from] = to;
    }
    back
}

fn scalar(element: ElementType, bytes: &[u8]) -> Option<Tensor> {
    Tensor::from_bytes(element, Shape::new(Vec::new()).ok()?, bytes).ok()
}
