//! What is known while nodes are grouped, and the operands in memory that layouts lead to.

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::contraction::Contraction;
use super::kind::{Cluster, Kind};
use super::machine::Machine;
use super::operand::{Operand, single_stride};
use crate::graph::{Dot, Graph, NodeId, Op};
use crate::precision::quantize::{QuantizedWeights, weights_of};
use crate::view::{LayoutOp, View};

/// What a device can do, as far as clusters depend on it.
#[derive(Clone, Copy)]
pub(crate) struct DeviceKernels<'d> {
    /// Whether contractions read an operand before its conversion if the conversion would need a kernel of its own.
    pub(crate) convert_operands: bool,
    /// Whether products read quantized weights in the type that they are stored in.
    pub(crate) quantized_weights: bool,
    /// Whether there is a kernel for a cluster. A contraction without one stays alone.
    pub(crate) compute: &'d dyn Fn(&Cluster) -> bool,
    /// Whether the device reads the image of a convolution as its operand is.
    pub(crate) strided_image: &'d dyn Fn(&Cluster) -> bool,
    /// The shortest row that dimensions of a loop are split into.
    pub(crate) shortest_row: usize,
    /// What the machine says about decisions that are close.
    pub(crate) machine: Option<&'d dyn Machine>,
}

/// What is known while nodes are grouped, from the last to the first.
pub(super) struct State<'g> {
    pub(super) graph: &'g Graph,
    /// Values that must lie in memory.
    pub(super) needed: Vec<bool>,
    /// For each node those that use it.
    pub(super) users: Vec<Vec<NodeId>>,
    /// For each node the nodes besides layouts that use it, directly or through layouts.
    pub(super) real_users: Vec<Vec<NodeId>>,
    pub(super) kernels: DeviceKernels<'g>,
    pub(super) clusters: Vec<Cluster>,
}

impl<'g> State<'g> {
    pub(super) fn new(graph: &'g Graph, kernels: DeviceKernels<'g>) -> Self {
        Self {
            graph,
            needed: vec![false; graph.nodes.len()],
            users: graph.users(),
            real_users: graph.users_through_layouts(),
            kernels,
            clusters: Vec::new(),
        }
    }
}

impl State<'_> {
    /// The value that layouts lead to, as deep as `accept` takes the view.
    fn operand(&self, id: NodeId, accept: impl Fn(&Operand) -> bool) -> Operand {
        let graph = self.graph;
        let mut best = Operand { value: id, view: View::dense(&graph.node(id).dims) };
        let mut steps: Vec<&LayoutOp> = Vec::new();
        let mut value = id;
        while let Op::Layout(step) = &graph.node(value).op {
            steps.insert(0, step);
            value = graph.node(value).inputs[0];
            let seen = View::dense(&graph.node(value).dims).after_all(steps.iter().copied());
            let Some(view) = seen else { break };
            let deeper = Operand { value, view };
            if accept(&deeper) {
                best = deeper;
            }
        }
        best
    }

    fn in_memory(&mut self, operand: Operand) -> Operand {
        self.needed[operand.value.index()] = true;
        operand
    }

    /// Where an operand of a contraction is read from: before its conversion, where the contraction converts it while it reads. That is so where
    /// the conversion would need a kernel of its own and only one contraction reads it; constants are converted while they are packed.
    fn before_conversion(&self, id: NodeId) -> NodeId {
        let (graph, node) = (self.graph, self.graph.node(id));
        let (Op::Elementwise(Function::Convert), &[wide]) = (&node.op, node.inputs.as_slice()) else {
            return id;
        };
        let narrows = graph.node(wide).element == ElementType::F32
            && matches!(node.element, ElementType::BF16 | ElementType::F16);
        if !self.kernels.convert_operands || !narrows || graph.outputs.contains(&id) {
            return id;
        }
        let mut source = wide;
        while let Op::Layout(_) = graph.node(source).op {
            source = graph.node(source).inputs[0];
        }
        let by_producer = match graph.node(source).op {
            Op::Constant(_) => return wide,
            Op::Elementwise(_)
            | Op::Compare(..)
            | Op::Iota(_)
            | Op::Reduce(..)
            | Op::Dot(_)
            | Op::Conv(_) => self.real_users[source.index()] == [id],
            _ => false,
        };
        if !by_producer && self.real_users[id.index()].len() == 1 { wide } else { id }
    }

    /// A value that kernels read whole and in row-major order.
    pub(super) fn dense_operand(&mut self, id: NodeId) -> Operand {
        let operand = self.dense(id);
        self.in_memory(operand)
    }

    fn dense(&self, id: NodeId) -> Operand {
        let len = self.graph.node(id).len();
        self.operand(id, |seen| seen.view.is_dense() && self.graph.node(seen.value).len() == len)
    }

    /// The image of a convolution, read as [`State::dense_operand`] is.
    pub(super) fn image_operand(&mut self, id: NodeId) -> Operand {
        let operand = self.dense(self.before_conversion(id));
        self.in_memory(operand)
    }

    /// A convolution: its image is read with any strides where the device does that.
    pub(super) fn convolution(&mut self, id: NodeId) -> Contraction {
        let inputs = &self.graph.node(id).inputs;
        let (image, weights) = (inputs[0], inputs[1]);
        let weights = self.weights_operand(weights);
        let forwards = |seen: &Operand| seen.view.strides.iter().all(|&stride| stride >= 0);
        let strided = self.operand(self.before_conversion(image), forwards);
        let contraction = |image| Contraction {
            node: id,
            operands: [image, weights.clone()],
            weights: None,
            epilogue: None,
        };
        let kind = Kind::Conv(contraction(strided.clone()));
        if (self.kernels.strided_image)(&Cluster { kind, output: id, nodes: vec![id] }) {
            return contraction(self.in_memory(strided));
        }
        contraction(self.image_operand(image))
    }

    /// A value that kernels read with any strides.
    pub(super) fn any_operand(&mut self, id: NodeId) -> Operand {
        let operand = self.operand(id, |_| true);
        self.in_memory(operand)
    }

    /// The weights of a convolution: windows may be read backwards, channels not.
    pub(super) fn weights_operand(&mut self, id: NodeId) -> Operand {
        let channels = self.graph.node(id).dims.len() - 2..;
        let operand = self.operand(self.before_conversion(id), |seen| {
            seen.view.strides[channels.clone()].iter().all(|&stride| stride >= 0)
        });
        self.in_memory(operand)
    }

    /// The quantized weights of a product, where the device reads such.
    pub(super) fn quantized_weights(&self, id: NodeId) -> Option<QuantizedWeights> {
        if self.kernels.quantized_weights { weights_of(self.graph, id) } else { None }
    }

    /// The operands of a product: rows and columns each with one stride.
    pub(super) fn dot_operands(
        &self,
        id: NodeId,
        dot: &Dot,
        weights: Option<&QuantizedWeights>,
    ) -> [Operand; 2] {
        let mut inputs = self.graph.node(id).inputs.clone();
        if let Some(weights) = weights {
            inputs[0] = weights.activations;
        }
        let sides = [(&dot.lhs_batch, &dot.lhs_contract), (&dot.rhs_batch, &dot.rhs_contract)];
        [0, 1].map(|side| {
            if let (1, Some(weights)) = (side, weights) {
                let view = View::dense(&self.graph.node(inputs[1]).dims);
                return Operand { value: weights.codes, view };
            }
            let (batch, contract) = sides[side];
            let rank = self.graph.node(inputs[side]).dims.len();
            let free: Vec<usize> =
                (0..rank).filter(|at| !batch.contains(at) && !contract.contains(at)).collect();
            self.operand(self.before_conversion(inputs[side]), |seen| {
                single_stride(&seen.view, contract).is_some()
                    && single_stride(&seen.view, &free).is_some()
                    && seen.view.strides.iter().all(|&stride| stride >= 0)
            })
        })
    }
}
