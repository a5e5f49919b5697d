//! Grows a loop from the value that it gives towards its inputs.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::body::{Body, BodyOp, BodyStep, Load};
use super::split_dims::split_dims;
use super::state::State;
use crate::graph::{Graph, Node, NodeId, Op, inverse};
use crate::view::{LayoutOp, View, dense_strides};

/// Most nodes that a loop computes.
const MOST_NODES: usize = 160;

/// Longest row that reductions inside a loop reduction.
const LONGEST_ROW: usize = 1 << 15;

/// From how many elements on a reduction across elements that lie next to each other ends its loop: it has loops of its own, which read them in
/// order.
const LONG_ACROSS: usize = 32;

/// How often a value may be computed again where it repeats, unless it is cheap or the same along a row.
const MOST_REPEATS: usize = 2;

/// From how many elements on a value that a loop only repeats is computed once, in a loop of its own: readers may read it without the repeats.
const REPEATED_APART: usize = 1 << 16;

/// How an index of the domain leads to an index of a node.
type Path = Vec<LayoutOp>;

/// The loop that gives a value, and the nodes it computes.
pub(super) fn grow(state: &State<'_>, root: NodeId) -> (Body, Vec<NodeId>) {
    let mut growth = Growth::new(state, root);
    growth.spread();
    // A reduction that others need too is read: its domain is of no use then.
    if growth.reduced.contains(&true) && !growth.has_reductions() {
        growth = Growth::over_elements(state, root);
        growth.spread();
    }
    // Rows that reductions go along stay whole.
    if !growth.has_reductions()
        && let Some(dims) = split_dims(state, root)
    {
        let mut split = Growth::over_elements(state, root);
        split.root_path = vec![LayoutOp::Reshape(dims.clone())];
        split.reduced = vec![false; dims.len()];
        split.dims = dims;
        split.spread();
        if !split.has_reductions() {
            growth = split;
        }
    }
    growth.body()
}

struct Growth<'s, 'g> {
    state: &'s State<'g>,
    graph: &'g Graph,
    root: NodeId,
    dims: Vec<usize>,
    reduced: Vec<bool>,
    root_path: Path,
    /// Nodes that the loop computes.
    members: HashSet<NodeId>,
    /// Nodes reached and not decided about, with their paths.
    pending: BTreeMap<NodeId, Vec<Path>>,
}

impl<'s, 'g> Growth<'s, 'g> {
    /// A loop whose domain are the elements of the value.
    fn over_elements(state: &'s State<'g>, root: NodeId) -> Self {
        let graph = state.graph;
        let dims = graph.node(root).dims.clone();
        Self {
            state,
            graph,
            root,
            reduced: vec![false; dims.len()],
            dims,
            root_path: Vec::new(),
            members: HashSet::new(),
            pending: BTreeMap::new(),
        }
    }

    fn has_reductions(&self) -> bool {
        self.members.iter().any(|&id| matches!(self.graph.node(id).op, Op::Reduce(..)))
    }

    fn new(state: &'s State<'g>, root: NodeId) -> Self {
        let mut growth = Self::over_elements(state, root);
        let own = growth.dims.clone();
        // A value with one element for each row of a reduction needs the reduction's domain.
        if let Some(columns) = growth.row_sizes(root) {
            let map = (0..own.len()).collect();
            growth.dims.extend(&columns);
            growth.reduced.extend(columns.iter().map(|_| true));
            growth.root_path = vec![LayoutOp::Broadcast { dims: growth.dims.clone(), map }];
        }
        growth
    }

    /// The sizes that a reduction reduces on the way from a value with one element for each of its rows.
    fn row_sizes(&self, root: NodeId) -> Option<Vec<usize>> {
        let len = self.graph.node(root).len();
        let mut seen = HashSet::new();
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            let node = self.graph.node(id);
            if node.len() != len || !seen.insert(id) || seen.len() > MOST_NODES {
                continue;
            }
            let own = id == root || !self.state.needed[id.index()];
            match &node.op {
                Op::Reduce(_, axes) if own && self.fits_row(id) => {
                    let dims = &self.graph.node(node.inputs[0]).dims;
                    return Some(axes.iter().map(|&axis| dims[axis]).collect());
                }
                Op::Elementwise(_) | Op::Compare(..) if own => pending.extend(&node.inputs),
                Op::Layout(LayoutOp::Reshape(_)) => pending.extend(&node.inputs),
                _ => {}
            }
        }
        None
    }

    fn fits_row(&self, reduce: NodeId) -> bool {
        let node = self.graph.node(reduce);
        let row = self.graph.node(node.inputs[0]).len() / node.len().max(1);
        reduce == self.root || (row <= LONGEST_ROW && !(row >= LONG_ACROSS && self.reduces_across(reduce)))
    }

    /// Whether a reduction leaves the dimension whose elements lie next to each other in memory.
    fn reduces_across(&self, reduce: NodeId) -> bool {
        let node = self.graph.node(reduce);
        let Op::Reduce(_, axes) = &node.op else { return false };
        let dims = &self.graph.node(node.inputs[0]).dims;
        let mut source = self.graph.node(node.inputs[0]);
        while let Op::Elementwise(_) = source.op {
            source = self.graph.node(source.inputs[0]);
        }
        let last = match &source.op {
            Op::Layout(LayoutOp::Transpose(order)) => order.iter().position(|&dim| dim + 1 == order.len()),
            _ => dims.len().checked_sub(1),
        };
        last.is_some_and(|last| dims[last] > 1 && !axes.contains(&last))
    }

    fn spread(&mut self) {
        self.pending.insert(self.root, vec![self.root_path.clone()]);
        while let Some((id, paths)) = self.pending.pop_last() {
            if let Some(next) = self.inlined(id, &paths) {
                self.members.insert(id);
                for (input, path) in next {
                    let known = self.pending.entry(input).or_default();
                    if !known.contains(&path) {
                        known.push(path);
                    }
                }
            }
        }
    }

    fn view(&self, id: NodeId, path: &Path) -> Option<View> {
        View::dense(&self.graph.node(id).dims).after_all(path)
    }

    /// What a node leads to when the loop computes it; nothing when it reads it from memory.
    fn inlined(&mut self, id: NodeId, paths: &[Path]) -> Option<Vec<(NodeId, Path)>> {
        let node = self.graph.node(id);
        let free = self.members.len() < MOST_NODES;
        match &node.op {
            Op::Constant(tensor) => tensor.dims().is_empty().then(Vec::new),
            Op::Iota(_) => Some(Vec::new()),
            Op::Layout(step) => {
                let input = node.inputs[0];
                let longer = |path: &Path| {
                    let path = below_layout(step, path);
                    self.view(input, &path).is_some().then_some((input, path))
                };
                let is_copy = id == self.root || free;
                is_copy.then(|| paths.iter().map(longer).collect())?
            }
            Op::Elementwise(_) | Op::Compare(..) => {
                let fits = id == self.root
                    || (free
                        && (self.is_own(id) || self.is_free_again(id) || self.is_of_place(id))
                        && self.same_views(id, paths)
                        && self.is_worth(node, id, paths));
                fits.then(|| node.inputs.iter().map(|&input| (input, paths[0].clone())).collect())
            }
            Op::Reduce(_, axes) => {
                let fits = id == self.root || (free && self.is_own(id) && self.fits_row(id));
                if !fits || !self.same_views(id, paths) {
                    return None;
                }
                let path = self.below_reduction(id, axes, &paths[0])?;
                Some(vec![(node.inputs[0], path)])
            }
            _ => None,
        }
    }

    /// Whether nothing but this loop needs a value.
    fn is_own(&self, id: NodeId) -> bool {
        !self.state.needed[id.index()]
            && !self.graph.outputs.contains(&id)
            && (self.state.real_users[id.index()].iter().all(|user| self.members.contains(user))
                || self.is_read_through_root(id))
    }

    /// Whether the loop gives nothing but another layout of a value, and all others read that.
    fn is_read_through_root(&self, id: NodeId) -> bool {
        let mut at = self.root;
        while let Op::Layout(_) = self.graph.node(at).op {
            let below = self.graph.node(at).inputs[0];
            if self.state.users[below.index()] != [at] {
                return false;
            }
            at = below;
        }
        at == id && at != self.root
    }

    /// Whether every reader may compute a value for itself at the cost of reading it: a cheap function of a value that is in memory
    /// anyway, and of single elements. A gradient that is clipped by the norm of all is one.
    fn is_free_again(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let is_stored = |mut input: NodeId| {
            while let Op::Layout(LayoutOp::Reshape(_)) = self.graph.node(input).op {
                input = self.graph.node(input).inputs[0];
            }
            match &self.graph.node(input).op {
                Op::Elementwise(_) | Op::Compare(..) | Op::Iota(_) | Op::Layout(_) | Op::Constant(_) => false,
                // Otherwise the function is part of the kernel that gives the value.
                Op::Reduce(..) | Op::Dot(_) | Op::Conv(_) => self.state.real_users[input.index()].len() > 1,
                op => !op.is_tuple(),
            }
        };
        let is_single = |input: NodeId| match &self.graph.node(input).op {
            Op::Layout(LayoutOp::Broadcast { .. }) => {
                self.graph.node(self.graph.node(input).inputs[0]).len() == 1
            }
            _ => false,
        };
        let (whole, others): (Vec<NodeId>, Vec<NodeId>) =
            node.inputs.iter().copied().partition(|&input| is_stored(input));
        !self.state.needed[id.index()]
            && !self.graph.outputs.contains(&id)
            && !is_costly(&node.op)
            && whole.len() == 1
            && others.into_iter().all(is_single)
    }

    /// Whether a value follows from its place alone: a cheap function of an index and of numbers.
    fn is_of_place(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let is_number = |input: NodeId| {
            let source = match self.graph.node(input).op {
                Op::Layout(LayoutOp::Broadcast { .. }) => self.graph.node(input).inputs[0],
                _ => input,
            };
            self.graph.is_known(source) && self.graph.node(source).len() == 1
        };
        let is_index = |input: NodeId| matches!(self.graph.node(input).op, Op::Iota(_));
        !is_costly(&node.op)
            && !self.graph.outputs.contains(&id)
            && node.inputs.iter().any(|&input| is_index(input))
            && node.inputs.iter().all(|&input| is_index(input) || is_number(input))
    }

    fn same_views(&self, id: NodeId, paths: &[Path]) -> bool {
        let first = self.view(id, &paths[0]);
        first.is_some() && paths[1..].iter().all(|path| self.view(id, path) == first)
    }

    fn is_worth(&self, node: &Node, id: NodeId, paths: &[Path]) -> bool {
        let len: usize = self.dims.iter().product();
        if self.is_repeated_apart(node, id, len) {
            return false;
        }
        if node.len() * MOST_REPEATS >= len || !is_costly(&node.op) {
            return true;
        }
        let Some(view) = self.view(id, &paths[0]) else { return false };
        // One value for a row is computed once for it.
        view.strides.last() == Some(&0)
    }

    /// Whether the loop only repeats a value that is better computed before: in a loop of its own, or in the epilogue of a contraction that nothing else
    /// reads.
    fn is_repeated_apart(&self, node: &Node, id: NodeId, len: usize) -> bool {
        let mut below = self.root;
        while let Op::Layout(_) = self.graph.node(below).op {
            below = self.graph.node(below).inputs[0];
        }
        let by_contraction = |&input: &NodeId| {
            matches!(self.graph.node(input).op, Op::Dot(_) | Op::Conv(_))
                && self.state.real_users[input.index()] == [id]
        };
        let is_large = node.len() >= REPEATED_APART && node.len() * MOST_REPEATS < len;
        below == id && node.len() < len && (is_large || node.inputs.iter().any(by_contraction))
    }

    /// The path to the operand of a reduction that is reached by a path, when the loop's domain is the reduction's.
    fn below_reduction(&mut self, id: NodeId, axes: &[usize], path: &Path) -> Option<Path> {
        let node = self.graph.node(id);
        let source = self.graph.node(node.inputs[0]);
        let view = self.view(id, path)?;
        let repeats = |at: usize| self.dims[at] != 1 && view.strides[at] == 0;
        let rows: Vec<usize>;
        let columns: Vec<usize>;
        if self.reduced.iter().any(|&reduced| reduced) {
            (columns, rows) = (0..self.dims.len()).partition(|&at| self.reduced[at]);
        } else {
            (columns, rows) = (0..self.dims.len()).partition(|&at| repeats(at));
        }
        if columns.iter().any(|&at| self.dims[at] != 1 && view.strides[at] != 0) {
            return None;
        }
        let row_dims: Vec<usize> = rows.iter().map(|&at| self.dims[at]).collect();
        let dense = dense_strides(&row_dims);
        let in_order =
            rows.iter().zip(&dense).all(|(&at, &stride)| self.dims[at] == 1 || view.strides[at] == stride);
        let row_len: usize = row_dims.iter().product();
        let column_len: usize = columns.iter().map(|&at| self.dims[at]).product();
        if !in_order || view.offset != 0 || row_len != node.len() || row_len * column_len != source.len() {
            return None;
        }
        if columns.is_empty() || source.is_empty() {
            return None;
        }
        let below = path_below(axes, source, &self.dims, &rows, &columns);
        View::dense(&source.dims).after_all(&below)?;
        for &at in &columns {
            self.reduced[at] = true;
        }
        Some(below)
    }

    /// The path to the operand of a reduction of the loop.
    fn path_of_operand(&self, source: NodeId, axes: &[usize]) -> Path {
        let (columns, rows): (Vec<usize>, Vec<usize>) =
            (0..self.dims.len()).partition(|&at| self.reduced[at]);
        path_below(axes, self.graph.node(source), &self.dims, &rows, &columns)
    }

    fn body(&self) -> (Body, Vec<NodeId>) {
        let mut lowering =
            Lowering { growth: self, loads: Vec::new(), steps: Vec::new(), known: HashMap::new() };
        lowering.lower(self.root, &self.root_path);
        let (loads, steps) = (lowering.loads, lowering.steps);
        let dense = View::dense(&self.graph.node(self.root).dims);
        let output = dense.after_all(&self.root_path).unwrap_or(dense);
        let mut nodes: Vec<NodeId> = self.members.iter().copied().collect();
        nodes.sort_unstable();
        let (dims, reduced) = (self.dims.clone(), self.reduced.clone());
        (Body { dims, reduced, loads, steps, output, also: Vec::new() }, nodes)
    }
}

/// The path to the operand of a layout. Of reshapes one after the other the last one counts; on the way to it no stride may do.
fn below_layout(step: &LayoutOp, path: &Path) -> Path {
    let is_reshape = |step: Option<&LayoutOp>| matches!(step, Some(LayoutOp::Reshape(_)));
    let first = (!(is_reshape(Some(step)) && is_reshape(path.first()))).then_some(step);
    first.into_iter().chain(path).cloned().collect()
}

/// The path from the rows and columns of a domain to the operand of a reduction over its columns.
fn path_below(axes: &[usize], source: &Node, dims: &[usize], rows: &[usize], columns: &[usize]) -> Path {
    let kept = (0..source.dims.len()).filter(|at| !axes.contains(at));
    let order: Vec<usize> = kept.chain(axes.iter().copied()).collect();
    let back_from: Vec<usize> = rows.iter().chain(columns).copied().collect();
    vec![
        LayoutOp::Transpose(order),
        LayoutOp::Reshape(back_from.iter().map(|&at| dims[at]).collect()),
        LayoutOp::Transpose(inverse(&back_from)),
    ]
}

/// Whether computing it again costs much more than reading it.
fn is_costly(op: &Op) -> bool {
    match op {
        Op::Compare(..) => false,
        Op::Elementwise(function) => !function.is_cheap(),
        _ => true,
    }
}

struct Lowering<'a, 's, 'g> {
    growth: &'a Growth<'s, 'g>,
    loads: Vec<Load>,
    steps: Vec<BodyStep>,
    known: HashMap<(NodeId, View), usize>,
}

impl Lowering<'_, '_, '_> {
    fn lower(&mut self, id: NodeId, path: &Path) -> usize {
        let node = self.growth.graph.node(id);
        let dense = View::dense(&node.dims);
        let view = dense.after_all(path).unwrap_or(dense);
        if let Some(&step) = self.known.get(&(id, view.clone())) {
            return step;
        }
        let is_member = self.growth.members.contains(&id);
        let (op, inputs) = match &node.op {
            Op::Layout(step) if is_member => {
                let path = below_layout(step, path);
                let step = self.lower(node.inputs[0], &path);
                self.known.insert((id, view), step);
                return step;
            }
            Op::Constant(tensor) if is_member => (BodyOp::Constant(tensor.clone()), Vec::new()),
            Op::Iota(axis) if is_member => {
                let mut strides = vec![0; node.dims.len()];
                strides[*axis] = 1;
                let index = View { offset: 0, dims: node.dims.clone(), strides };
                match index.after_all(path) {
                    Some(index) => (BodyOp::Iota(index), Vec::new()),
                    None => (self.load(id, view.clone()), Vec::new()),
                }
            }
            Op::Elementwise(kind) if is_member => (
                BodyOp::Elementwise(*kind),
                node.inputs.iter().map(|&input| self.lower(input, path)).collect(),
            ),
            Op::Compare(direction, order) if is_member => {
                let inputs = node.inputs.iter().map(|&input| self.lower(input, path)).collect();
                (BodyOp::Compare(*direction, *order), inputs)
            }
            Op::Reduce(reduction, axes) if is_member => {
                let path = self.growth.path_of_operand(node.inputs[0], axes);
                (BodyOp::Reduce(*reduction), vec![self.lower(node.inputs[0], &path)])
            }
            _ => (self.load(id, view.clone()), Vec::new()),
        };
        self.steps.push(BodyStep { op, inputs, element: node.element });
        self.known.insert((id, view), self.steps.len() - 1);
        self.steps.len() - 1
    }

    fn load(&mut self, id: NodeId, view: View) -> BodyOp {
        self.loads.push(Load { value: id, view });
        BodyOp::Load(self.loads.len() - 1)
    }
}
