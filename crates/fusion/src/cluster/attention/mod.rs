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
    let Epilogue { body, tile, rows } = weights;
    let loads: Vec<_> = body.loads.iter().enumerate().filter(|(at, _)| at != tile).collect();
    let steps: Vec<_> = body.steps.iter().map(|step| (&step.op, &step.inputs, step.element)).collect();
    format!("{queries} {rows} {:?} {loads:?} {steps:?}", body.dims)
}
