//! Fusion decisions that are close: what the machine itself said about such a fusion of such a size.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::Machine;
use warpforge_fusion::cluster::{Cluster, Kind};

use super::CostModel;
use super::work::{Class, Work};
use crate::profile::FusionProfile;
use crate::verdict::Verdict;

/// A measurement further away than this, in octaves, says nothing about a decision.
const FURTHEST: f64 = 1.5;

impl Machine for CostModel {
    fn fuses_epilogue(&self, graph: &Graph, contraction: &Cluster, then: &Cluster) -> Option<bool> {
        let (alone, following) = (self.work(graph, contraction), self.work(graph, then));
        let costly = following.approximate > 0.0;
        let pattern = match (alone.class, costly) {
            (Class::Matmul, true) => "Linear_Bias_GELU",
            (Class::Matmul, false) if following.cheap > 1.0 => "Linear_Bias_ReLU",
            (Class::Matmul, false) => "Linear_Bias",
            (Class::Conv | Class::Depthwise, false) => "Conv2d_ReLU",
            (Class::Batched, false) => "QK^T",
            _ => return None,
        };
        self.measured_fusion(pattern, &alone)
    }

    fn fuses_attention(&self, graph: &Graph, scores: &Cluster, _: &Cluster, _: &Cluster) -> Option<bool> {
        if !matches!(scores.kind, Kind::Dot(_)) {
            return None;
        }
        self.measured_fusion("FullAttention", &self.work(graph, scores))
    }
}

impl CostModel {
    /// Whether the nearest measurement of a pattern says that it pays; nothing where none is near or clear.
    fn measured_fusion(&self, pattern: &str, work: &Work) -> Option<bool> {
        let own = self
            .fusions
            .iter()
            .filter(|fusion| fusion.fusion_pattern == pattern && fusion.dtype == work.dtype);
        let apart = |fusion: &FusionProfile| {
            let point = features(fusion, work.class)?;
            let squares = point.iter().zip(&work.features).map(|(a, b)| (a - b).powi(2));
            (point.len() == work.features.len()).then(|| squares.sum::<f64>().sqrt())
        };
        let near = own.filter_map(|fusion| Some((apart(fusion)?, fusion)));
        let (distance, nearest) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
        match nearest.verdict {
            _ if distance > FURTHEST => None,
            Verdict::Inconclusive => None,
            Verdict::Slower => Some(false),
            Verdict::Strong | Verdict::Moderate | Verdict::Minimal => Some(true),
        }
    }
}

/// The features of a pattern's first contraction.
fn features(fusion: &FusionProfile, class: Class) -> Option<Vec<f64>> {
    match (class, fusion.input_shape.as_slice()) {
        (Class::Matmul, &[m, k, n]) => Some(super::work::octaves(&[m, k, n])),
        (Class::Batched, &[batch, heads, sequence, width]) => {
            Some(super::work::octaves(&[batch * heads, sequence, sequence, width]))
        }
        (
            Class::Conv | Class::Grouped | Class::Depthwise,
            &[batch, channels, side, _, outputs, window, stride, groups],
        ) => {
            let (own, channels, outputs) = super::work::conv_class(channels / groups.max(1), outputs, groups);
            let out = (side + 2 * (window / 2) - window) / stride + 1;
            let features =
                super::work::conv_features(channels, outputs, batch * out * out, window * window, stride);
            (own == class).then_some(features)
        }
        _ => None,
    }
}
