//! Rounds the f32 operands of contractions to a narrower element type.
//!
//! Grouped convolutions are left as they are: they are bound by memory, and their kernels multiply in f32.
//!
//! Activations that an ungrouped convolution reads are rounded where they are produced, for all their readers: residual networks are
//! bound by moving them. Other values keep f32 for the readers that are no contractions.
//!
//! A value that contractions read in several layouts, as a forward and a backward pass do, is rounded once, below the layouts.

use std::collections::{HashMap, HashSet};

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Tensor};

use super::rewrite::{Rewrite, below_layouts};
use crate::graph::{Graph, Node, NodeId, Op, OpSpan, ReduceKind};

/// The graph whose contractions read operands of type `element` instead of f32. `spans` follow the nodes.
pub(crate) fn narrow_contractions(
    graph: &Graph,
    element: ElementType,
    spans: Option<&mut [OpSpan]>,
) -> Graph {
    // Op by op, every value is seen as the module has it: no value is rounded for other readers.
    let shared = if spans.is_some() { HashSet::new() } else { rounded_for_all(graph, element) };
    let in_several_layouts = read_in_several_layouts(graph);
    let mut narrowing =
        Narrowing { rewrite: Rewrite::new(graph), element, in_several_layouts, narrow: HashMap::new() };
    for id in graph.ids() {
        narrowing.visit(id, shared.contains(&id));
    }
    let seen = spans.is_some();
    let graph = narrowing.rewrite.finish(spans);
    if seen { graph } else { graph.pruned() }
}

/// Whether the operands of a node are rounded.
fn is_narrowed(graph: &Graph, node: &Node) -> bool {
    let contraction = match &node.op {
        Op::Dot(_) => true,
        Op::Conv(conv) => conv.groups == 1,
        _ => false,
    };
    contraction
        && node.element == ElementType::F32
        && node.inputs.iter().all(|&input| graph.node(input).element == ElementType::F32)
}

fn source(graph: &Graph, id: NodeId) -> NodeId {
    below_layouts(graph, id).0
}

/// The values that contractions whose operands are rounded read through different layouts.
fn read_in_several_layouts(graph: &Graph) -> HashSet<NodeId> {
    let mut operand_of: HashMap<NodeId, NodeId> = HashMap::new();
    let mut found = HashSet::new();
    for node in graph.nodes.iter().filter(|node| is_narrowed(graph, node)) {
        for &operand in &node.inputs {
            let source = source(graph, operand);
            if *operand_of.entry(source).or_insert(operand) != operand {
                found.insert(source);
            }
        }
    }
    found
}

/// The values that are rounded where they are produced: what convolutions read, where every other reader can take the rounded value.
fn rounded_for_all(graph: &Graph, element: ElementType) -> HashSet<NodeId> {
    let mut wanted = HashSet::new();
    for id in graph.ids().rev() {
        let node = graph.node(id);
        let reads_image = matches!(node.op, Op::Conv(_)) && is_narrowed(graph, node);
        let pools_image = wanted.contains(&id) && pooled(node, element).is_some();
        if reads_image || pools_image {
            wanted.insert(source(graph, node.inputs[0]));
        }
    }
    let users = graph.users_through_layouts();
    let mut rounded = HashSet::new();
    for id in graph.ids().filter(|id| wanted.contains(id)) {
        let node = graph.node(id);
        let produced = match &node.op {
            Op::Elementwise(_) | Op::Dot(_) | Op::Conv(_) | Op::Reduce(..) => true,
            Op::ReduceWindow(..) => rounded.contains(&source(graph, node.inputs[0])),
            _ => false,
        };
        let readable = users[id.index()].iter().all(|&user| {
            let reader = graph.node(user);
            match &reader.op {
                Op::Elementwise(_) | Op::Compare(..) | Op::Reduce(..) => true,
                Op::Dot(_) | Op::Conv(_) => is_narrowed(graph, reader),
                Op::ReduceWindow(..) => wanted.contains(&user) && pooled(reader, element).is_some(),
                _ => false,
            }
        });
        let is_output = graph.outputs.iter().any(|&output| source(graph, output) == id);
        if node.element == ElementType::F32 && produced && readable && !is_output {
            rounded.insert(id);
        }
    }
    rounded
}

/// A maximum or minimum over windows of f32 as one over a narrower type, which gives the same rounded values.
fn pooled(node: &Node, element: ElementType) -> Option<Op> {
    let Op::ReduceWindow(kind @ (ReduceKind::Max | ReduceKind::Min), window, init) = &node.op else {
        return None;
    };
    let value = init.get(0);
    let narrow = Tensor::scalar(element, value).ok()?;
    let exact = narrow.get(0).to_f64() == value.to_f64();
    exact.then(|| Op::ReduceWindow(*kind, window.clone(), narrow))
}

/// The rewrite of a graph, and what was rounded so far.
struct Narrowing<'g> {
    rewrite: Rewrite<'g>,
    element: ElementType,
    in_several_layouts: HashSet<NodeId>,
    /// Rounded values, by the old node.
    narrow: HashMap<NodeId, NodeId>,
}

impl Narrowing<'_> {
    fn visit(&mut self, id: NodeId, for_all: bool) {
        let mut node = self.rewrite.next(id);
        let old = self.rewrite.old.node(id);
        if is_narrowed(self.rewrite.old, old) {
            node.inputs = old.inputs.iter().map(|&input| self.rounded(input)).collect();
        }
        let narrow = match pooled(old, self.element).filter(|_| for_all) {
            Some(op) => {
                let inputs = vec![self.rounded(old.inputs[0])];
                self.rewrite.push(Node { op, inputs, element: self.element, ..node })
            }
            None => {
                let new = self.rewrite.push(node);
                if !for_all {
                    self.rewrite.end(new);
                    return;
                }
                // What was widened is rounded already.
                match self.before_widening(id) {
                    Some(before) => before,
                    None => self.rewrite.convert(new, self.element),
                }
            }
        };
        self.narrow.insert(id, narrow);
        let wide = self.rewrite.convert(narrow, ElementType::F32);
        self.rewrite.end(wide);
    }

    /// A value rounded, in its own layout. A value that is rounded already, was widened, or is read in several layouts is rounded
    /// below its layouts; else the conversion stands above them, where one loop does both.
    fn rounded(&mut self, id: NodeId) -> NodeId {
        let (source, layouts) = below_layouts(self.rewrite.old, id);
        if !self.is_rounded_below(source) {
            return self.converted(id);
        }
        let mut narrow = self.converted(source);
        for &layout in layouts.iter().rev() {
            narrow = match self.narrow.get(&layout) {
                Some(&known) => known,
                None => self.rewrite.relayout(&[layout], narrow),
            };
            self.narrow.insert(layout, narrow);
        }
        narrow
    }

    /// Whether a value without layouts is rounded as it is, so that layouts are those of the rounded value.
    fn is_rounded_below(&self, source: NodeId) -> bool {
        let is_rounded = self.narrow.contains_key(&source) || self.before_widening(source).is_some();
        is_rounded || self.in_several_layouts.contains(&source)
    }

    /// What a value was before it was widened to f32.
    fn before_widening(&self, id: NodeId) -> Option<NodeId> {
        let graph = self.rewrite.old;
        match (&graph.node(id).op, graph.node(id).inputs.as_slice()) {
            (Op::Elementwise(Function::Convert), &[from]) if graph.node(from).element == self.element => {
                Some(self.rewrite.moved(from))
            }
            _ => None,
        }
    }

    fn converted(&mut self, id: NodeId) -> NodeId {
        if let Some(&known) = self.narrow.get(&id) {
            return known;
        }
        let narrow = match self.before_widening(id) {
            Some(before) => before,
            None => self.rewrite.convert(self.rewrite.moved(id), self.element),
        };
        self.narrow.insert(id, narrow);
        narrow
    }
}
