//! Loops beyond a contraction compute again what follows from a value that is kept.
//!
//! A value that is read beyond a contraction waits for that reader in memory, as all that a backward pass reads of a forward pass. Where it
//! follows element by element from one value that waits anyway, its readers there compute it again: it is neither
//! stored nor read. The derivative of an activation reads the activation's input alone, and a residual addition the
//! normalised value that the gradient of the normalisation needs.

use std::collections::HashMap;

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::graph::{Depths, Graph, NodeId, Op, Rewrite, below_layouts};

/// Most operations between a value and what it is computed again from.
const MOST_OPERATIONS: usize = 16;

/// A value with so many times fewer elements costs nothing to keep and to read.
const SMALL: usize = 16;

/// The graph whose loops beyond a contraction compute again what follows from a value that is kept.
pub(super) fn follow_kept(graph: Graph) -> Graph {
    let origins = Origins::new(&graph);
    if !graph.ids().any(|id| origins.is_again(id)) {
        return graph;
    }
    let mut copies = Copies { rewrite: Rewrite::new(&graph), origins: &origins, made: HashMap::new() };
    for id in graph.ids() {
        let mut node = copies.rewrite.next(id);
        for (at, &input) in graph.node(id).inputs.iter().enumerate() {
            let (source, layouts) = below_layouts(&graph, input);
            if origins.is_again(source) && !is_layout(&graph, id) && origins.depths.is_beyond(id, source) {
                let copy = copies.of(source, origins.depths.reads_at(id));
                node.inputs[at] = copies.rewrite.relayout(&layouts, copy);
            }
        }
        let new = copies.rewrite.push(node);
        copies.rewrite.end(new);
    }
    copies.rewrite.finish(None).pruned()
}

fn is_layout(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.node(id).op, Op::Layout(_))
}

/// Where readers beyond a contraction have a value from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It does not wait for any.
    Gone,
    /// Memory.
    Kept,
    /// It follows from a value that is kept, by so many operations; `waits` where such a reader reads it.
    Again { from: NodeId, operations: usize, waits: bool },
}

/// The origin of each node.
struct Origins<'g> {
    graph: &'g Graph,
    depths: Depths,
    users: Vec<Vec<NodeId>>,
    of: Vec<Origin>,
}

impl<'g> Origins<'g> {
    fn new(graph: &'g Graph) -> Self {
        let (depths, users) = (Depths::new(graph), graph.users_through_layouts());
        let mut origins = Self { graph, depths, users, of: Vec::with_capacity(graph.nodes.len()) };
        for id in graph.ids() {
            let origin = origins.decide(id);
            origins.of.push(origin);
        }
        origins
    }

    /// Whether readers beyond a contraction compute a value again.
    fn is_again(&self, id: NodeId) -> bool {
        matches!(self.of[id.index()], Origin::Again { waits: true, .. })
    }

    fn decide(&self, id: NodeId) -> Origin {
        let waits = self.waits(id);
        match self.follows(id) {
            Some((from, operations)) if !waits || self.is_read_by_loops(id) => {
                Origin::Again { from, operations, waits }
            }
            _ if waits && self.is_computed(id) => Origin::Kept,
            _ => Origin::Gone,
        }
    }

    /// Whether something beyond a contraction reads a value, or what it was widened to.
    fn waits(&self, id: NodeId) -> bool {
        let is_output = self.graph.outputs.contains(&id);
        let beyond =
            |user: &NodeId| self.depths.is_beyond(*user, id) || (self.widens(*user) && self.waits(*user));
        !is_output && !is_layout(self.graph, id) && self.users[id.index()].iter().any(beyond)
    }

    fn widens(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let from_narrow =
            |input: &NodeId| matches!(self.graph.node(*input).element, ElementType::BF16 | ElementType::F16);
        matches!(node.op, Op::Elementwise(Function::Convert))
            && node.element == ElementType::F32
            && node.inputs.iter().all(from_narrow)
    }

    /// Arguments may be overwritten, and constants are no work of this run.
    fn is_computed(&self, id: NodeId) -> bool {
        !self.graph.is_known(id) && !matches!(self.graph.node(id).op, Op::Argument(_))
    }

    /// The one value that is kept anyway and that a value follows from element by element, and by how many operations.
    fn follows(&self, id: NodeId) -> Option<(NodeId, usize)> {
        let node = self.graph.node(id);
        if !matches!(node.op, Op::Elementwise(_) | Op::Compare(..)) {
            return None;
        }
        let (mut from, mut operations) = (None, 1);
        for &input in &node.inputs {
            let source = below_layouts(self.graph, input).0;
            if self.graph.node(source).len() * SMALL <= node.len() {
                continue;
            }
            let (kept, more) = match self.of[source.index()] {
                Origin::Gone => return None,
                Origin::Kept => (source, 0),
                Origin::Again { from, operations, .. } => (from, operations),
            };
            if from.is_some_and(|from| from != kept) {
                return None;
            }
            (from, operations) = (Some(kept), operations + more);
        }
        (operations <= MOST_OPERATIONS).then_some((from?, operations))
    }

    /// Whether the readers beyond a contraction are loops that read each element once.
    fn is_read_by_loops(&self, id: NodeId) -> bool {
        let len = self.graph.node(id).len();
        let mut beyond = self.users[id.index()].iter().filter(|&&user| self.depths.is_beyond(user, id));
        beyond.all(|&user| {
            let node = self.graph.node(user);
            let once = |input: &NodeId| self.graph.node(*input).len() <= len;
            matches!(node.op, Op::Elementwise(_) | Op::Compare(..) | Op::Reduce(..))
                && node.inputs.iter().all(once)
        })
    }
}

/// The graph made anew, with the values that are computed again.
struct Copies<'g> {
    rewrite: Rewrite<'g>,
    origins: &'g Origins<'g>,
    /// By the value and the depth of its readers.
    made: HashMap<(NodeId, usize), NodeId>,
}

impl Copies<'_> {
    /// A value computed again for the readers at a depth.
    fn of(&mut self, id: NodeId, depth: usize) -> NodeId {
        if let Some(&made) = self.made.get(&(id, depth)) {
            return made;
        }
        let graph = self.origins.graph;
        let mut node = graph.node(id).clone();
        for input in &mut node.inputs {
            let (source, layouts) = below_layouts(graph, *input);
            *input = match self.origins.of[source.index()] {
                Origin::Again { .. } => {
                    let copy = self.of(source, depth);
                    self.rewrite.relayout(&layouts, copy)
                }
                _ => self.rewrite.moved(*input),
            };
        }
        let made = self.rewrite.push(node);
        self.made.insert((id, depth), made);
        made
    }
}
