//! Clusters: which nodes one kernel computes together.

mod attach;
mod attention;
mod attention_gradient;
mod body;
mod cost;
mod grow;
mod op_by_op;
mod operand;

use std::collections::HashMap;

pub use attention::{Attention, DataMask, DeferredDivision, Mask, Softmax, Visible, ZeroRows};
pub(crate) use attention_gradient::fuse_attention_gradients;
pub use attention_gradient::{AttentionGradient, Gradient, SoftmaxGradient};
pub use body::{Body, BodyOp, BodyStep, Load};
pub use cost::Cost;
pub(crate) use cost::unfused;
pub(crate) use op_by_op::op_by_op;
pub use operand::{Operand, single_stride};

use crate::graph::{Graph, NodeId, Op};

/// Nodes that one kernel computes.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// How.
    pub kind: Kind,
    /// The value that it gives, or the first of those in [`Cluster::results`].
    pub output: NodeId,
    /// All nodes that it computes, in order.
    pub nodes: Vec<NodeId>,
}

/// What kind of kernel computes a cluster.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Operations on each element of a domain, with reductions over some of its dimensions.
    Loop(Body),
    /// A matrix product and what is done to its result while it is at hand.
    Dot(Contraction),
    /// A convolution and what is done to its result.
    Conv(Contraction),
    /// Two products with a loop over whole rows between them; what lies between is never in memory as a whole.
    Attention(Box<Attention>),
    /// The gradients of attention by its queries, keys and values, three values; only devices that fuse them have it.
    AttentionGradient(Box<AttentionGradient>),
    /// The node of the output alone, from operands in memory.
    Unfused(Vec<Operand>),
    /// Something that a backend computes in its own way: what it reads, and which values it gives. Only backends make it.
    Library(Vec<Operand>, Vec<NodeId>),
}

/// A product or a convolution with its epilogue.
#[derive(Debug, Clone)]
pub struct Contraction {
    /// The node.
    pub node: NodeId,
    /// What it takes.
    pub operands: [Operand; 2],
    /// What is done to the result; it is the body's load number [`Epilogue::tile`].
    pub epilogue: Option<Epilogue>,
}

/// A loop over the result of a product.
#[derive(Debug, Clone)]
pub struct Epilogue {
    /// The loop; its domain has the dimensions of the result's rows, then those of its columns.
    pub body: Body,
    /// Which of its loads is the result.
    pub tile: usize,
    /// How many dimensions of the domain are those of rows.
    pub rows: usize,
}

/// The clusters of a graph, in an order in which they can run.
#[derive(Debug, Clone)]
pub struct Clusters {
    /// The clusters.
    pub clusters: Vec<Cluster>,
    /// Where the results of the function lie: a value in memory, seen in the result's shape.
    pub outputs: Vec<Operand>,
}

/// What a device can do, as far as clusters depend on it.
#[derive(Clone, Copy)]
pub(crate) struct DeviceKernels<'d> {
    /// Whether contractions read an operand before its conversion if the conversion would need a kernel of its own.
    pub(crate) convert_operands: bool,
    /// Whether there is a kernel for a cluster. A contraction without one stays alone.
    pub(crate) compute: &'d dyn Fn(&Cluster) -> bool,
}

/// Groups the nodes of a graph.
#[must_use]
pub(crate) fn clusters<'g>(graph: &'g Graph, kernels: DeviceKernels<'g>) -> Clusters {
    let mut state = State::new(graph, kernels);
    let outputs: Vec<Operand> = graph.outputs.iter().map(|&id| state.dense_operand(id)).collect();
    for &id in &graph.effects {
        state.needed[id.index()] = true;
    }
    for id in graph.ids().rev() {
        if state.needed[id.index()] {
            state.place(id);
        }
    }
    let mut clusters: Vec<Cluster> = state.clusters.into_iter().rev().collect();
    attach::attach(graph, &mut clusters, &outputs);
    attention::join(graph, &mut clusters, &outputs);
    Clusters { clusters, outputs }
}

/// What is known while nodes are grouped, from the last to the first.
struct State<'g> {
    graph: &'g Graph,
    /// Values that must lie in memory.
    needed: Vec<bool>,
    /// For each node the nodes besides layouts that use it, directly or through layouts.
    real_users: Vec<Vec<NodeId>>,
    kernels: DeviceKernels<'g>,
    clusters: Vec<Cluster>,
}

impl<'g> State<'g> {
    fn new(graph: &'g Graph, kernels: DeviceKernels<'g>) -> Self {
        Self {
            graph,
            needed: vec![false; graph.nodes.len()],
            real_users: graph.users_through_layouts(),
            kernels,
            clusters: Vec::new(),
        }
    }

    /// Makes the cluster that gives a value.
    fn place(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let kind = match &node.op {
            Op::Argument(_) | Op::Constant(_) => return,
            Op::Elementwise(_) | Op::Compare(..) | Op::Iota(_) | Op::Layout(_) | Op::Reduce(..) => {
                let (body, nodes) = grow::grow(self, id);
                for load in &body.loads {
                    self.needed[load.value.index()] = true;
                }
                self.clusters.push(Cluster { kind: Kind::Loop(body), output: id, nodes });
                return;
            }
            Op::Dot(dot) => {
                let operands = self.dot_operands(id, dot);
                let kind = Kind::Dot(Contraction { node: id, operands, epilogue: None });
                let cluster = Cluster { kind, output: id, nodes: vec![id] };
                if (self.kernels.compute)(&cluster) {
                    cluster.reads().into_iter().for_each(|value| self.needed[value.index()] = true);
                    self.clusters.push(cluster);
                    return;
                }
                self.unfused(id)
            }
            Op::Conv(_) => {
                let operands = [self.image_operand(node.inputs[0]), self.weights_operand(node.inputs[1])];
                Kind::Conv(Contraction { node: id, operands, epilogue: None })
            }
            Op::Concat(_) => {
                Kind::Unfused(node.inputs.iter().map(|&input| self.any_operand(input)).collect())
            }
            Op::Pad { .. } => {
                Kind::Unfused(vec![self.any_operand(node.inputs[0]), self.dense_operand(node.inputs[1])])
            }
            Op::ReduceWindow(..)
            | Op::Gather(..)
            | Op::Scatter(..)
            | Op::DynamicSlice
            | Op::DynamicUpdateSlice
            | Op::SelectAndScatter { .. }
            | Op::Sort { .. }
            | Op::VariadicReduce(..)
            | Op::Opaque(_) => self.unfused(id),
            Op::Result(_) => {
                self.needed[node.inputs[0].index()] = true;
                return;
            }
        };
        self.clusters.push(Cluster { kind, output: id, nodes: vec![id] });
    }

    /// A node alone, from operands that are read whole.
    fn unfused(&mut self, id: NodeId) -> Kind {
        Kind::Unfused(self.graph.node(id).inputs.iter().map(|&input| self.dense_operand(input)).collect())
    }
}

impl Cluster {
    /// Whether the cluster reads each element of a value only to compute the element of its result at the same place: a kernel that
    /// reads an element before it writes it may write over the value.
    #[must_use]
    pub fn is_elementwise_update(&self, graph: &Graph, value: NodeId) -> bool {
        let Kind::Loop(body) = &self.kind else { return false };
        let width = |id: NodeId| graph.node(id).element.byte_width();
        !body.has_reductions()
            && body.output.is_dense()
            && width(value) == width(self.output)
            && body.loads.iter().filter(|load| load.value == value).all(|load| load.view == body.output)
    }
}

/// Which cluster of a list computes a node.
fn owners(clusters: &[Cluster]) -> HashMap<NodeId, usize> {
    clusters
        .iter()
        .enumerate()
        .flat_map(|(at, cluster)| cluster.nodes.iter().map(move |&id| (id, at)))
        .collect()
}

/// The one cluster that reads each value which exactly one reads; outputs are read by others too.
fn only_readers(clusters: &[Cluster], outputs: &[Operand]) -> HashMap<NodeId, usize> {
    let mut readers: HashMap<NodeId, Vec<usize>> = HashMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        for id in cluster.reads() {
            readers.entry(id).or_default().push(at);
        }
    }
    let is_output = |id: &NodeId| outputs.iter().any(|output| output.value == *id);
    let alone = readers.into_iter().filter(|(id, by)| by.len() == 1 && !is_output(id));
    alone.map(|(id, by)| (id, by[0])).collect()
}
