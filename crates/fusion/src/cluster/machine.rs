//! What a machine itself says about decisions that are close.

use std::fmt;

use super::kind::Cluster;
use crate::graph::Graph;

/// Measured answers to fusion decisions. The same answers give the same plan.
pub trait Machine: fmt::Debug + Send + Sync {
    /// Whether a contraction with a loop as its epilogue is no slower than the two alone; nothing where that was not measured.
    fn fuses_epilogue(&self, graph: &Graph, contraction: &Cluster, then: &Cluster) -> Option<bool>;

    /// Whether attention in one kernel is no slower than its three; nothing where that was not measured.
    fn fuses_attention(
        &self,
        graph: &Graph,
        scores: &Cluster,
        softmax: &Cluster,
        values: &Cluster,
    ) -> Option<bool>;
}
