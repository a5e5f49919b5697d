//! The plan of the kernels: what they compute and their tiles.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{AttentionGradient, Cluster, Cost, Softmax, SoftmaxGradient};

use crate::gemm::geometry::Geometry;
use crate::gemm::tile::PADDING;
use crate::kernel::{Request, Unsupported};
use crate::options::Options;
use crate::types::{attention_type, tensor_core_bytes};

/// Largest head size.
const MAX_HEAD: usize = 128;

/// Shared memory of a block on the smallest devices that are meant, those of sm_86.
const MAX_SHARED: usize = 99 << 10;

/// Warps per block, sixteen rows each.
pub(super) const WARPS: usize = 4;

/// Rows per block.
pub(super) const ROWS: usize = WARPS * 16;

/// The plan of both kernels.
pub(crate) struct AttentionGradientPlan<'a> {
    pub(super) graph: &'a Graph,
    pub(super) cluster: &'a Cluster,
    pub(super) attention: &'a AttentionGradient,
    pub(super) options: &'a Options,
    pub(super) softmax: &'a Softmax,
    pub(super) softmax_gradient: &'a SoftmaxGradient,
    /// Queries times keys.
    pub(super) scores: Geometry,
    /// The output gradient times values.
    pub(super) by_weights: Geometry,
    /// The element type of the tensor-core operands.
    pub(super) ty: &'static str,
    pub(super) shape: Shape,
}

/// The tiling.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Rows of a streamed tile.
    pub(super) passing: usize,
    /// Head sizes of queries and keys, and of values, rounded up to multiples of sixteen.
    pub(super) head: usize,
    pub(super) width: usize,
    /// Bytes of an element.
    pub(super) bytes: usize,
}

impl Shape {
    pub(super) fn new(head: usize, width: usize, bytes: usize) -> Self {
        let (head, width) = (head.next_multiple_of(16), width.next_multiple_of(16));
        let passing = if head.max(width) <= 64 { 128 } else { 64 } / bytes;
        Self { passing, head, width, bytes }
    }

    /// Bytes of shared memory: resident tiles, double-buffered streamed tiles, and row statistics.
    pub(super) fn shared(&self) -> usize {
        let line = self.head + PADDING + self.width + PADDING;
        self.bytes * (ROWS + 2 * self.passing) * line + 4 * 2 * 2 * self.passing
    }
}

/// Plans the kernels, where the loops are a softmax and its gradient between GEMMs that tensor cores support.
pub(crate) fn plan<'a>(
    request: Request<'a>,
    attention: &'a AttentionGradient,
) -> Result<Option<AttentionGradientPlan<'a>>, Unsupported> {
    let Request { graph, cluster, options } = request;
    let (Some(softmax), Some(softmax_gradient)) = (&attention.softmax, &attention.softmax_gradient) else {
        return Ok(None);
    };
    let scores = Geometry::new(graph, &attention.scores)?;
    let by_weights = Geometry::new(graph, &attention.by_weights)?;
    let sides = [&scores.lhs, &scores.rhs, &by_weights.lhs, &by_weights.rhs];
    let Some(ty) = attention_type(options, &sides.map(|side| side.element)) else { return Ok(None) };
    let fits = (1..=MAX_HEAD).contains(&scores.k)
        && (1..=MAX_HEAD).contains(&by_weights.k)
        && (by_weights.m, by_weights.n, by_weights.batches()) == (scores.m, scores.n, scores.batches())
        && scores.m * scores.n > 0;
    let shape = Shape::new(scores.k, by_weights.k, tensor_core_bytes(ty));
    Ok((fits && shape.shared() <= MAX_SHARED).then_some(AttentionGradientPlan {
        graph,
        cluster,
        attention,
        options,
        softmax,
        softmax_gradient,
        scores,
        by_weights,
        ty,
        shape,
    }))
}

impl AttentionGradientPlan<'_> {
    /// The share of the cluster's cost: each GEMM once, reads in both kernels.
    pub(super) fn cost(&self, by_keys: bool) -> Cost {
        let whole = self.cluster.cost(self.graph);
        let pairs = self.scores.batches() * self.scores.m * self.scores.n;
        let last = 2 * (pairs * (self.scores.k + self.by_weights.k)) as u64;
        let given =
            self.attention.gradients().map(|gradient| self.graph.node(gradient.output).bytes() as u64);
        let [queries, keys, values] = given;
        let read = whole.bytes.saturating_sub(queries + keys + values);
        if by_keys {
            Cost { flops: last, bytes: read + keys + values }
        } else {
            Cost { flops: whole.flops.saturating_sub(last), bytes: read + queries }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_SHARED, Shape};

    #[test]
    fn tiles_fit_into_the_shared_memory_of_the_smallest_devices_that_are_meant() {
        let fits =
            |head: usize, width: usize, bytes: usize| Shape::new(head, width, bytes).shared() <= MAX_SHARED;
        assert!(
            fits(64, 64, 2) && fits(128, 128, 2) && fits(8, 128, 2) && fits(64, 64, 4) && fits(96, 96, 4)
        );
        assert!(!fits(128, 128, 4));
    }
}
