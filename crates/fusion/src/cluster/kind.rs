//! A cluster: which nodes one kernel computes, and what kind of kernel.

use std::collections::HashMap;

use super::attention::Attention;
use super::attention_gradient::AttentionGradient;
use super::body::Body;
use super::contraction::Contraction;
use super::operand::Operand;
use crate::graph::{Graph, NodeId};

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

/// The clusters of a graph, in an order in which they can run.
#[derive(Debug, Clone)]
pub struct Clusters {
    /// The clusters.
    pub clusters: Vec<Cluster>,
    /// Where the results of the function lie: a value in memory, seen in the result's shape.
    pub outputs: Vec<Operand>,
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
            && self.results().into_iter().all(|given| width(value) == width(given))
            && body.loads.iter().filter(|load| load.value == value).all(|load| load.view == body.output)
    }

    /// The values that the cluster gives: one, but for joined loops, gradients and what backends compute in their own way.
    #[must_use]
    pub fn results(&self) -> Vec<NodeId> {
        match &self.kind {
            Kind::AttentionGradient(backward) => {
                backward.gradients().map(|gradient| gradient.output).to_vec()
            }
            Kind::Loop(body) => {
                [self.output].into_iter().chain(body.also.iter().map(|also| also.value)).collect()
            }
            Kind::Library(_, given) => given.clone(),
            _ => vec![self.output],
        }
    }
}

/// Which cluster of a list computes a node.
pub(super) fn owners(clusters: &[Cluster]) -> HashMap<NodeId, usize> {
    clusters
        .iter()
        .enumerate()
        .flat_map(|(at, cluster)| cluster.nodes.iter().map(move |&id| (id, at)))
        .collect()
}

/// The one cluster that reads each value which exactly one reads; outputs are read by others too.
pub(super) fn only_readers(clusters: &[Cluster], outputs: &[Operand]) -> HashMap<NodeId, usize> {
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
