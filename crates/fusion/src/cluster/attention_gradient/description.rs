//! What the gradients of attention are computed from.

use super::softmax_gradient::SoftmaxGradient;
use crate::cluster::{Contraction, Epilogue, Operand, Softmax};
use crate::graph::NodeId;

/// The gradients of attention.
#[derive(Debug, Clone)]
pub struct AttentionGradient {
    /// The product of queries and keys.
    pub scores: Contraction,
    /// What makes whole rows of scores weights.
    pub weights: Epilogue,
    /// The product of the result's gradient and the values: the gradient by the weights.
    pub by_weights: Contraction,
    /// What makes that the gradient by the scores: a loop over whole rows of it, with a sum over each row.
    pub by_scores: Epilogue,
    /// Which load of that loop is the weights.
    pub shares: usize,
    /// The gradient by the queries: the gradient by the scores times keys.
    pub by_queries: Gradient,
    /// The gradient by the keys: the gradient by the scores, transposed, times queries.
    pub by_keys: Gradient,
    /// The gradient by the values: the weights, transposed, times the result's gradient.
    pub by_values: Gradient,
    /// The softmax that makes scores weights.
    pub softmax: Option<Softmax>,
    /// Its gradient.
    pub softmax_gradient: Option<SoftmaxGradient>,
}

/// One of the gradients.
#[derive(Debug, Clone)]
pub struct Gradient {
    /// The product that gives it.
    pub product: Contraction,
    /// Which operand is the weights or the gradient by the scores.
    pub side: usize,
    /// The value that is given.
    pub output: NodeId,
}

impl AttentionGradient {
    /// The three gradients.
    #[must_use]
    pub fn gradients(&self) -> [&Gradient; 3] {
        [&self.by_queries, &self.by_keys, &self.by_values]
    }

    /// Queries, keys, the result's gradient and values.
    #[must_use]
    pub fn operands(&self) -> [&Operand; 4] {
        let ([queries, keys], [given, values]) = (&self.scores.operands, &self.by_weights.operands);
        [queries, keys, given, values]
    }
}
