//! Attention: two products with a loop over whole rows of scores between them, and what that loop is.
//!
//! The loop is described once, when its cluster is made. Engines, reports and pictures read the description.

mod division;
mod expression;
mod guard;
mod index_program;
mod join;
mod mask;
mod row_values;
mod softmax;

pub use division::{DeferredDivision, ZeroRows};
use expression::ScoreLoop;
pub(super) use join::{join, same_rows};
pub use mask::{DataMask, Mask, Visible};
pub use softmax::Softmax;

use std::collections::HashMap;

use super::{Contraction, Epilogue};
use crate::graph::{Graph, Op};

/// Two products with a loop between.
#[derive(Debug, Clone)]
pub struct Attention {
    /// The product that gives the scores.
    pub scores: Contraction,
    /// What is done to whole rows of scores.
    pub weights: Epilogue,
    /// The product with the values.
    pub values: Contraction,
    /// The softmax that the loop is.
    pub softmax: Option<Softmax>,
    /// The division that the loop ends in.
    pub division: Option<DeferredDivision>,
}

impl Attention {
    /// Attention of these parts, described.
    pub(super) fn new(
        describer: &mut Describer<'_>,
        scores: Contraction,
        weights: Epilogue,
        values: Contraction,
    ) -> Self {
        let softmax = describer.softmax(&scores, &weights);
        let division = division::of(&weights);
        Self { scores, weights, values, softmax, division }
    }
}

/// Describes the loops of attention.
pub(super) struct Describer<'g> {
    graph: &'g Graph,
    /// Which values depend on nothing but constants.
    constant: Vec<bool>,
    /// Loops that are known, by their text: layers have the same.
    known: HashMap<String, Option<Softmax>>,
}

impl<'g> Describer<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        let mut constant: Vec<bool> = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let from_outside = node.op.is_tuple() || matches!(node.op, Op::Argument(_) | Op::Result(_));
            constant.push(!from_outside && node.inputs.iter().all(|input| constant[input.index()]));
        }
        Self { graph, constant, known: HashMap::new() }
    }

    /// The softmax that a loop over scores is.
    pub(super) fn softmax(&mut self, scores: &Contraction, weights: &Epilogue) -> Option<Softmax> {
        let queries = self.queries(scores);
        let text = text(weights, queries);
        if let Some(known) = self.known.get(&text) {
            return known.clone();
        }
        let dims = &weights.body.dims;
        let row = (0..weights.rows).rev().find(|&at| dims[at] != 1 && queries != 1);
        let by_queries =
            dims.len() == weights.rows + 1 && row.map_or(queries == 1, |row| dims[row] == queries);
        let score_loop = ScoreLoop { graph: self.graph, weights, constant: &self.constant, queries, row };
        let found = softmax::of(score_loop, by_queries);
        self.known.insert(text, found.clone());
        found
    }

    /// The number of queries of a batch.
    fn queries(&self, scores: &Contraction) -> usize {
        let Op::Dot(dot) = &self.graph.node(scores.node).op else { return 0 };
        let dims = &scores.operands[0].view.dims;
        let free = |at: &usize| !dot.lhs_batch.contains(at) && !dot.lhs_contract.contains(at);
        (0..dims.len()).filter(free).map(|at| dims[at]).product()
    }
}

/// All that a loop computes and reads but for which scores it is of.
fn text(weights: &Epilogue, queries: usize) -> String {
    let Epilogue { body, tile, rows, .. } = weights;
    let loads: Vec<_> = body.loads.iter().enumerate().filter(|(at, _)| at != tile).collect();
    let steps: Vec<_> = body.steps.iter().map(|step| (&step.op, &step.inputs, step.element)).collect();
    format!("{queries} {rows} {:?} {loads:?} {steps:?}", body.dims)
}

#[cfg(test)]
mod tests {
    use crate::cluster::Kind;
    use crate::testing::graph;

    /// Whether keys that a causal mask of this number hides weigh nothing for every query. `added` is what is added besides.
    fn hides(fill: &str, offset: isize, added: &str) -> bool {
        let (x, s, r) = ("tensor<2x6x4xf32>", "tensor<2x6x6xf32>", "tensor<2x6xf32>");
        let (index, truth) = ("tensor<2x6x6xi32>", "tensor<2x6x6xi1>");
        let graph = graph(&format!(
            "func.func @main(%q: {x}, %k: {x}, %v: {x}, %given: {s}) -> {x} {{
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : {s}
    %fill = stablehlo.constant dense<{fill}> : {s}
    %far = stablehlo.constant dense<{offset}> : {index}
    %i = stablehlo.iota dim = 1 : {index}
    %j = stablehlo.iota dim = 2 : {index}
    %until = stablehlo.add %i, %far : {index}
    %see = stablehlo.compare LE, %j, %until : ({index}, {index}) -> {truth}
    %mask = stablehlo.select %see, %zeros, %fill : {truth}, {s}
    %p = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : ({x}, {x}) -> {s}
    %y = stablehlo.add %p, {added} : {s}
    %x = stablehlo.add %y, %mask : {s}
    %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [2] : ({s}, tensor<f32>) -> {r}
    %mm = stablehlo.broadcast_in_dim %max, dims = [0, 1] : ({r}) -> {s}
    %d = stablehlo.subtract %x, %mm : {s}
    %e = stablehlo.exponential %d : {s}
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : ({s}, tensor<f32>) -> {r}
    %ss = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : ({r}) -> {s}
    %w = stablehlo.divide %e, %ss : {s}
    %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : ({s}, {x}) -> {x}
    return %o : {x}\n}}"
        ));
        let all = crate::testing::grouped(&graph);
        let [cluster] = all.clusters.as_slice() else { panic!("not one cluster") };
        let Kind::Attention(attention) = &cluster.kind else { panic!("not attention") };
        attention.softmax.as_ref().unwrap().mask.hides
    }

    #[test]
    fn large_negative_numbers_hide_keys_of_queries_that_see_one_for_sure() {
        let (infinite, finite) = ("0xFF800000", "-1.0E+9");
        assert!(hides(infinite, 0, "%zeros") && hides(finite, 0, "%zeros"));
        // The first query sees no key.
        assert!(hides(infinite, -1, "%zeros") && !hides(finite, -1, "%zeros"));
        // What is given may hide all keys of a query.
        assert!(hides(infinite, 0, "%given") && !hides(finite, 0, "%given"));
    }
}
