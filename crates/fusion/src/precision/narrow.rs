//! Rounds the f32 operands of contractions to a narrower element type.
//!
//! Which convolutions are left as they are is the device's choice, by their groups and by whether their results are rounded too.
//!
//! Activations that other convolutions read are rounded where they are produced, for all their readers: residual networks are
//! bound by moving them. That holds through concatenations, gathers and pooling too, which give the same elements in either order.
//! Other values keep f32 for the readers that are no contractions.
//!
//! A value that contractions read in several layouts, as a forward and a backward pass do, is rounded once, below the layouts.
//!
//! What a backward pass moves is rounded where it is produced too: see [`kept`].

use std::collections::{HashMap, HashSet};

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Tensor};

use super::kept;
use crate::graph::{Graph, Node, NodeId, Op, OpSpan, ReduceKind, Rewrite, below_layouts};

/// Whether a convolution reads narrow operands; with the functions between it and its result, where that is rounded too.
pub(crate) type NarrowsConvolution<'d> = dyn Fn(&Node, Option<&[Function]>) -> bool + 'd;

/// The graph whose contractions read operands of type `element` instead of f32. `spans` follow the nodes.
pub(crate) fn narrow_contractions(
    graph: &Graph,
    element: ElementType,
    narrows_convolution: &NarrowsConvolution<'_>,
    spans: Option<&mut [OpSpan]>,
) -> Graph {
    // Op by op, every value is seen as the module has it: no value is rounded for other readers.
    let choice = match &spans {
        Some(_) => Choice::op_by_op(graph, narrows_convolution),
        None => Choice::new(graph, element, narrows_convolution),
    };
    let in_several_layouts = read_in_several_layouts(graph, &choice.narrow);
    let mut narrowing =
        Narrowing { rewrite: Rewrite::new(graph), element, in_several_layouts, narrow: HashMap::new() };
    for id in graph.ids() {
        narrowing.visit(id, &choice);
    }
    let seen = spans.is_some();
    let graph = narrowing.rewrite.finish(spans);
    if seen { graph } else { graph.pruned() }
}

/// What is rounded.
struct Choice {
    /// The contractions that read narrow operands.
    narrow: HashSet<NodeId>,
    /// The values that are rounded where they are produced.
    rounded: HashSet<NodeId>,
}

impl Choice {
    fn op_by_op(graph: &Graph, narrows_convolution: &NarrowsConvolution<'_>) -> Self {
        let mut narrow = of_f32(graph);
        narrow.retain(|&id| !is_conv(graph, id) || narrows_convolution(graph.node(id), None));
        Self { narrow, rounded: HashSet::new() }
    }

    /// Begins with every convolution that may be narrow and leaves those out that are not: then fewer values are rounded.
    fn new(graph: &Graph, element: ElementType, narrows_convolution: &NarrowsConvolution<'_>) -> Self {
        let users = graph.users_through_layouts();
        let mut narrow = of_f32(graph);
        narrow.retain(|&id| !is_conv(graph, id) || narrows_convolution(graph.node(id), Some(&[])));
        loop {
            let rounded = rounded_for_all(graph, &users, element, &narrow);
            let before = narrow.len();
            narrow.retain(|&id| {
                let result = rounded_result(graph, &users, &rounded, id);
                !is_conv(graph, id) || narrows_convolution(graph.node(id), result.as_deref())
            });
            if narrow.len() == before {
                let rounded = &rounded | &kept::rounded_in_training(graph, &users, &narrow);
                return Self { narrow, rounded };
            }
        }
    }
}

/// The functions between a convolution and a value that is rounded, where nothing else reads what is between them.
fn rounded_result(
    graph: &Graph,
    users: &[Vec<NodeId>],
    rounded: &HashSet<NodeId>,
    conv: NodeId,
) -> Option<Vec<Function>> {
    let (mut at, mut functions) = (conv, Vec::new());
    while !rounded.contains(&at) {
        let &[user] = users[at.index()].as_slice() else { return None };
        let Op::Elementwise(function) = graph.node(user).op else { return None };
        functions.push(function);
        at = user;
    }
    Some(functions)
}

fn is_conv(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.node(id).op, Op::Conv(_))
}

/// The contractions of f32.
fn of_f32(graph: &Graph) -> HashSet<NodeId> {
    let is_of_f32 = |id: &NodeId| {
        let node = graph.node(*id);
        let may_round = match &node.op {
            Op::Dot(dot) => !dot.keeps_precision,
            Op::Conv(_) => true,
            _ => false,
        };
        may_round
            && node.element == ElementType::F32
            && node.inputs.iter().all(|&input| graph.node(input).element == ElementType::F32)
    };
    graph.ids().filter(is_of_f32).collect()
}

fn source(graph: &Graph, id: NodeId) -> NodeId {
    below_layouts(graph, id).0
}

/// The values that contractions whose operands are rounded read through different layouts.
fn read_in_several_layouts(graph: &Graph, narrow: &HashSet<NodeId>) -> HashSet<NodeId> {
    let mut operand_of: HashMap<NodeId, NodeId> = HashMap::new();
    let mut found = HashSet::new();
    for id in graph.ids().filter(|id| narrow.contains(id)) {
        for &operand in &graph.node(id).inputs {
            let source = source(graph, operand);
            if *operand_of.entry(source).or_insert(operand) != operand {
                found.insert(source);
            }
        }
    }
    found
}

/// The values that are rounded where they are produced: what convolutions read, where every other reader can take the rounded value.
fn rounded_for_all(
    graph: &Graph,
    users: &[Vec<NodeId>],
    element: ElementType,
    narrow: &HashSet<NodeId>,
) -> HashSet<NodeId> {
    let mut passing: HashSet<NodeId> =
        graph.ids().filter(|&id| passes_elements(graph.node(id), element).is_some()).collect();
    // What does not become narrow itself is no reason to round what it reads.
    loop {
        let rounded = rounded_through(graph, users, narrow, &passing);
        let before = passing.len();
        passing.retain(|id| rounded.contains(id));
        if passing.len() == before {
            return rounded;
        }
    }
}

/// The values that are rounded where they are produced, if the operations of `passing` can read and give rounded ones.
fn rounded_through(
    graph: &Graph,
    users: &[Vec<NodeId>],
    narrow: &HashSet<NodeId>,
    passing: &HashSet<NodeId>,
) -> HashSet<NodeId> {
    let mut wanted = HashSet::new();
    for id in graph.ids().rev() {
        let node = graph.node(id);
        if is_conv(graph, id) && narrow.contains(&id) {
            wanted.insert(source(graph, node.inputs[0]));
        } else if wanted.contains(&id) && passing.contains(&id) {
            wanted.extend(passed_inputs(node).iter().map(|&input| source(graph, input)));
        }
    }
    let mut rounded = HashSet::new();
    for id in graph.ids().filter(|id| wanted.contains(id)) {
        let node = graph.node(id);
        let produced = match &node.op {
            Op::Elementwise(_) | Op::Dot(_) | Op::Conv(_) | Op::Reduce(..) => true,
            _ if passing.contains(&id) => {
                passed_inputs(node).iter().all(|&input| rounded.contains(&source(graph, input)))
            }
            _ => false,
        };
        let readable = users[id.index()].iter().all(|&user| match &graph.node(user).op {
            Op::Elementwise(_) | Op::Compare(..) | Op::Reduce(..) => true,
            Op::Dot(_) | Op::Conv(_) => narrow.contains(&user),
            _ => wanted.contains(&user) && passing.contains(&user),
        });
        let is_output = graph.outputs.iter().any(|&output| source(graph, output) == id);
        if node.element == ElementType::F32 && produced && readable && !is_output {
            rounded.insert(id);
        }
    }
    rounded
}

/// An operation that gives elements of its inputs as they are, on a narrower type: it gives the same rounded values.
fn passes_elements(node: &Node, element: ElementType) -> Option<Op> {
    match &node.op {
        Op::Concat(_) | Op::Gather(..) => Some(node.op.clone()),
        Op::ReduceWindow(kind @ (ReduceKind::Max | ReduceKind::Min), window, init) => {
            let value = init.get(0);
            let narrow = Tensor::scalar(element, value).ok()?;
            let exact = narrow.get(0).to_f64() == value.to_f64();
            exact.then(|| Op::ReduceWindow(*kind, window.clone(), narrow))
        }
        _ => None,
    }
}

/// The inputs of an operation that gives their elements.
fn passed_inputs(node: &Node) -> &[NodeId] {
    match node.op {
        Op::Concat(_) => &node.inputs,
        _ => &node.inputs[..1],
    }
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
    fn visit(&mut self, id: NodeId, choice: &Choice) {
        let for_all = choice.rounded.contains(&id);
        let mut node = self.rewrite.next(id);
        let old = self.rewrite.old.node(id);
        if choice.narrow.contains(&id) {
            node.inputs = old.inputs.iter().map(|&input| self.rounded(input)).collect();
        }
        let narrow = match passes_elements(old, self.element).filter(|_| for_all) {
            Some(op) => {
                for (at, &input) in passed_inputs(old).iter().enumerate() {
                    node.inputs[at] = self.rounded(input);
                }
                self.rewrite.push(Node { op, element: self.element, ..node })
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
        let (mut source, mut layouts) = below_layouts(self.rewrite.old, id);
        if let Some(known) = layouts.iter().position(|layout| self.narrow.contains_key(layout)) {
            source = layouts[known];
            layouts.truncate(known);
        }
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
