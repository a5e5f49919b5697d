//! Finds the clusters that together give the gradients of attention.

use std::collections::HashMap;

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::softmax_gradient::softmax_gradient;
use super::{AttentionGradient, Gradient};
use crate::cluster::attach::{columns_of, in_order};
use crate::cluster::attention::{Describer, same_rows};
use crate::cluster::operand::single_stride;
use crate::cluster::{
    Attention, Body, BodyOp, BodyStep, Cluster, Clusters, Contraction, Epilogue, Kind, Operand,
};
use crate::graph::{Graph, NodeId, Op};
use crate::view::merged;

/// The gradients of one attention.
pub(super) struct Found {
    /// All of it as a cluster.
    pub(super) cluster: Cluster,
    /// The places of the clusters that it is made of.
    pub(super) parts: Vec<usize>,
    /// The last of them.
    pub(super) last: usize,
    /// The product that took the same weights, by its place, and attention that computes its own.
    pub(super) forward: Option<(usize, Cluster)>,
}

/// Clusters by what they give and read.
pub(super) struct Search<'a> {
    graph: &'a Graph,
    clusters: &'a [Cluster],
    outputs: &'a [Operand],
    givers: HashMap<NodeId, usize>,
    readers: HashMap<NodeId, Vec<usize>>,
    describer: Describer<'a>,
}

/// Sizes of the scores.
#[derive(Clone, Copy)]
struct Sizes {
    batches: usize,
    rows: usize,
    columns: usize,
}

/// What a product sums over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    /// The rows of the scores.
    Rows,
    /// Their columns.
    Columns,
}

/// A product that takes the weights or the gradient by the scores, perhaps rounded.
struct Use<'a> {
    place: usize,
    product: &'a Contraction,
    side: usize,
    sums: Along,
    /// The type that it was rounded to.
    rounded: Option<ElementType>,
}

/// The layout of a matmul operand: batch strides, the free and the contracting stride.
#[derive(PartialEq, Eq)]
struct OperandLayout {
    value: NodeId,
    offset: isize,
    batches: Vec<(usize, isize)>,
    free: isize,
    summed: isize,
}

impl<'a> Search<'a> {
    pub(super) fn new(graph: &'a Graph, all: &'a Clusters) -> Self {
        let clusters = all.clusters.as_slice();
        let mut readers: HashMap<NodeId, Vec<usize>> = HashMap::new();
        for (at, cluster) in clusters.iter().enumerate() {
            for id in cluster.reads() {
                readers.entry(id).or_default().push(at);
            }
        }
        let givers = clusters.iter().enumerate().map(|(at, cluster)| (cluster.output, at)).collect();
        Self { graph, clusters, outputs: &all.outputs, givers, readers, describer: Describer::new(graph) }
    }

    /// The gradients whose scores' gradient the cluster at a place gives.
    pub(super) fn at(&mut self, place: usize) -> Option<Found> {
        let body = self.rows(place)?;
        let (tile, by_weights_place, by_weights) = self.product_below(place, body)?;
        let view = &body.loads[tile].view;
        let (shares, weights_place) = body.loads.iter().enumerate().find_map(|(at, load)| {
            let from = *self.givers.get(&load.value)?;
            (at != tile && load.view == *view && self.rows(from).is_some()).then_some((at, from))
        })?;
        let weights = self.rows(weights_place)?;
        let (scores_tile, scores_place, scores) = self.product_below(weights_place, weights)?;
        let columns = columns_of(self.graph, scores.node);
        if columns != columns_of(self.graph, by_weights.node) || columns == 0 {
            return None;
        }
        let weights = self.over_rows(weights, scores_tile, columns)?;
        let by_scores = self.over_rows(body, tile, columns)?;
        let rows = self.size_of_rows(scores);
        let sizes =
            Sizes { batches: self.graph.node(scores.node).len() / (rows * columns).max(1), rows, columns };
        let mut parts = vec![scores_place, weights_place, by_weights_place, place];
        let of_scores = self.uses(self.clusters[place].output, None, sizes, &mut parts)?;
        let of_weights = self.uses(self.clusters[weights_place].output, Some(place), sizes, &mut parts)?;
        let [queries, keys] = [self.lay(scores, 0)?, self.lay(scores, 1)?];
        let given = self.lay(by_weights, 0)?;
        let by_queries = self.only(&of_scores, Along::Columns, &keys)?;
        let by_keys = self.only(&of_scores, Along::Rows, &queries)?;
        let by_values = self.only(&of_weights, Along::Rows, &given)?;
        let forward = match of_weights.iter().filter(|of| of.sums == Along::Columns).collect::<Vec<_>>()[..] {
            [] => None,
            [of] => Some(self.attention(of, scores, &weights, &parts)?),
            _ => return None,
        };
        if of_scores.len() != 2 || of_weights.len() != 1 + usize::from(forward.is_some()) {
            return None;
        }
        let gradients = [by_queries, by_keys, by_values];
        parts.extend(gradients.map(|of| of.place));
        let [by_queries, by_keys, by_values] = gradients.map(|of| Gradient {
            product: of.product.clone(),
            side: of.side,
            output: self.clusters[of.place].output,
        });
        let softmax = self.describer.softmax(scores, &weights);
        let softmax_gradient = softmax_gradient(&by_scores.body, shares);
        let backward = AttentionGradient {
            scores: scores.clone(),
            weights,
            by_weights: by_weights.clone(),
            by_scores,
            shares,
            by_queries,
            by_keys,
            by_values,
            softmax,
            softmax_gradient,
        };
        let output = backward.by_queries.output;
        let last = gradients.iter().map(|of| of.place).max()?;
        let cluster =
            Cluster { kind: Kind::AttentionGradient(Box::new(backward)), output, nodes: self.nodes(&parts) };
        // The product that took the weights is replaced, not taken away.
        parts.extend(forward.iter().map(|(at, _)| *at));
        Some(Found { cluster, parts, last, forward })
    }

    /// The loop of a cluster that reduces its rows.
    fn rows(&self, place: usize) -> Option<&'a Body> {
        match &self.clusters[place].kind {
            Kind::Loop(body) if body.has_reductions() => Some(body),
            _ => None,
        }
    }

    fn is_output(&self, value: NodeId) -> bool {
        self.outputs.iter().any(|output| output.value == value)
    }

    /// The product whose result the loop at a place reads once, and nothing else does.
    fn product_below(&self, place: usize, body: &Body) -> Option<(usize, usize, &'a Contraction)> {
        body.loads.iter().enumerate().find_map(|(at, load)| {
            let from = *self.givers.get(&load.value)?;
            let Kind::Dot(product) = &self.clusters[from].kind else { return None };
            let once = body.loads.iter().filter(|other| other.value == load.value).count() == 1;
            let alone = self.readers.get(&load.value).is_some_and(|by| *by == [place]);
            let bare = product.node == load.value && product.epilogue.is_none();
            (once && alone && bare && !self.is_output(load.value)).then_some((at, from, product))
        })
    }

    /// A loop over the result of a product that reduces its columns.
    fn over_rows(&self, body: &Body, tile: usize, columns: usize) -> Option<Epilogue> {
        let found = in_order(self.graph, body, tile, columns)?;
        let by_columns =
            found.body.reduced.iter().enumerate().all(|(dim, &reduced)| reduced == (dim >= found.rows));
        (by_columns && found.body.output.is_dense()).then_some(found)
    }

    fn size_of_rows(&self, product: &Contraction) -> usize {
        let Op::Dot(dot) = &self.graph.node(product.node).op else { return 0 };
        let dims = &product.operands[0].view.dims;
        let free = |at: &usize| !dot.lhs_batch.contains(at) && !dot.lhs_contract.contains(at);
        (0..dims.len()).filter(free).map(|at| dims[at]).product()
    }

    /// The products that take a value of the scores' sizes, rounded or not; nothing where something else does too.
    /// Loops that only round are added to `parts`.
    fn uses(
        &self,
        value: NodeId,
        besides: Option<usize>,
        sizes: Sizes,
        parts: &mut Vec<usize>,
    ) -> Option<Vec<Use<'a>>> {
        let mut found = Vec::new();
        let mut pending = vec![(value, None)];
        while let Some((value, rounded)) = pending.pop() {
            if self.is_output(value) {
                return None;
            }
            for &place in self.readers.get(&value).into_iter().flatten().filter(|&&at| Some(at) != besides) {
                let cluster = &self.clusters[place];
                match &cluster.kind {
                    Kind::Loop(body) => {
                        let element = rounding(body)?;
                        parts.push(place);
                        pending.push((cluster.output, Some(element)));
                    }
                    Kind::Dot(product) => {
                        let (side, sums) = self.role(product, value, sizes)?;
                        found.push(Use { place, product, side, sums, rounded });
                    }
                    _ => return None,
                }
            }
        }
        Some(found)
    }

    /// On which side of a product a dense value of the scores' sizes stands, and along what it is summed.
    fn role(&self, product: &Contraction, value: NodeId, sizes: Sizes) -> Option<(usize, Along)> {
        let epilogue = product.epilogue.iter().flat_map(|epilogue| &epilogue.body.loads);
        let [left, right] = [0, 1].map(|side| product.operands[side].value == value);
        if left == right || epilogue.into_iter().any(|load| load.value == value) {
            return None;
        }
        let side = usize::from(right);
        let OperandLayout { offset, batches, free, summed, .. } = self.lay(product, side)?;
        let Sizes { batches: count, rows, columns } = sizes;
        let whole = match batches.as_slice() {
            [] => count == 1,
            &[(len, stride)] => len == count && stride == (rows * columns) as isize,
            _ => false,
        };
        let sums = match (free, summed) {
            (1, summed) if summed == columns as isize => Along::Rows,
            (free, 1) if free == columns as isize => Along::Columns,
            _ => return None,
        };
        let full = product.operands[side].view.len() == count * rows * columns;
        (whole && full && offset == 0 && columns > 1).then_some((side, sums))
    }

    fn lay(&self, product: &Contraction, side: usize) -> Option<OperandLayout> {
        let Op::Dot(dot) = &self.graph.node(product.node).op else { return None };
        let (batch, contract) =
            if side == 0 { (&dot.lhs_batch, &dot.lhs_contract) } else { (&dot.rhs_batch, &dot.rhs_contract) };
        let Operand { value, view } = &product.operands[side];
        let free: Vec<usize> =
            (0..view.dims.len()).filter(|at| !batch.contains(at) && !contract.contains(at)).collect();
        let batches = batch.iter().map(|&at| (view.dims[at], view.strides[at])).filter(|&(dim, _)| dim != 1);
        Some(OperandLayout {
            value: *value,
            offset: view.offset,
            batches: merged(batches),
            free: single_stride(view, &free)?,
            summed: single_stride(view, contract)?,
        })
    }

    /// The one product that sums along this, and whose other operand is this one with what is summed over exchanged.
    fn only<'u>(&self, uses: &'u [Use<'a>], along: Along, other: &OperandLayout) -> Option<&'u Use<'a>> {
        let mut found = uses.iter().filter(|of| of.sums == along);
        let one = found.next().filter(|_| found.next().is_none())?;
        let lay = self.lay(one.product, 1 - one.side)?;
        let transposed = OperandLayout { free: lay.summed, summed: lay.free, ..lay };
        (transposed == *other).then_some(one)
    }

    /// Attention that computes its own weights, where a product takes them.
    fn attention(
        &mut self,
        of: &Use<'_>,
        scores: &Contraction,
        weights: &Epilogue,
        parts: &[usize],
    ) -> Option<(usize, Cluster)> {
        let known = |operand: &Operand| self.graph.constant(operand.value).is_some();
        let values = of.product;
        let fits = of.side == 0
            && values.operands[0].view.is_dense()
            && same_rows(self.graph, scores.node, values.node)
            && !known(&scores.operands[1])
            && !known(&values.operands[1]);
        let mut weights = weights.clone();
        if let Some(element) = of.rounded {
            let last = weights.body.steps.len().checked_sub(1)?;
            let op = BodyOp::Elementwise(Function::Convert);
            weights.body.steps.push(BodyStep { op, inputs: vec![last], element });
        }
        let mut nodes = self.nodes(&parts[..2]);
        // The rounding of the weights, where there is one.
        nodes.extend(of.rounded.map(|_| values.operands[0].value));
        nodes.extend(&self.clusters[of.place].nodes);
        if !fits {
            return None;
        }
        let attention = Attention::new(&mut self.describer, scores.clone(), weights, values.clone());
        let output = self.clusters[of.place].output;
        Some((of.place, Cluster { kind: Kind::Attention(Box::new(attention)), output, nodes }))
    }

    fn nodes(&self, parts: &[usize]) -> Vec<NodeId> {
        parts.iter().flat_map(|&part| self.clusters[part].nodes.iter().copied()).collect()
    }
}

/// The type of floats that a loop rounds to, when it does nothing else.
fn rounding(body: &Body) -> Option<ElementType> {
    let ([load], [read, convert]) = (body.loads.as_slice(), body.steps.as_slice()) else { return None };
    let only = matches!(read.op, BodyOp::Load(0))
        && matches!(convert.op, BodyOp::Elementwise(Function::Convert))
        && read.element.is_float()
        && convert.element.is_float();
    (only && load.view.is_dense() && body.output.is_dense() && load.view.len() == body.output.len())
        .then_some(convert.element)
}
