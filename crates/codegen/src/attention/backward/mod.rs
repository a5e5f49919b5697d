//! The gradients of attention in two kernels, scores of a tile at a time on tensor cores.
//!
//! The first has tiles of queries and goes over all keys twice: once for what each row needs as a whole (the logarithm of
//! the softmax's sum, and the sum of weights times their gradients), once for the gradient by the queries. The second has
//! tiles of keys and goes over the queries, with what the first left of each row. No block waits for another and nothing
//! is added in memory, so that every run gives the same.

mod text;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{AttentionGradient, Cluster, Cost};

use super::causal::sees;
use super::narrow;
use super::slope::{Slope, slope};
use super::softmax::{Softmax, softmax};
use crate::kernel::{Emitted, Kernel, Unsupported};
use crate::options::Options;
use crate::product::geometry::Geometry;
use crate::product::tile::APART;
use text::Sweep;

/// Widest heads.
const WIDEST: usize = 128;

/// Warps of a block, sixteen rows each.
const WARPS: usize = 4;

/// Rows of a block.
const ROWS: usize = WARPS * 16;

/// What the kernels are made of.
pub(super) struct Plan<'a> {
    graph: &'a Graph,
    cluster: &'a Cluster,
    backward: &'a AttentionGradient,
    options: &'a Options,
    softmax: Softmax,
    slope: Slope,
    /// Queries by keys.
    scores: Geometry,
    /// The result's gradient by values.
    by_weights: Geometry,
    /// The type that tensor cores take.
    ty: &'static str,
    shape: Shape,
    /// How many keys beyond its own number a query sees, where it does not see all.
    ahead: Option<isize>,
}

/// How the work is cut.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Rows of a tile that passes by.
    passing: usize,
    /// Widths of queries and keys, and of values, in whole pieces of sixteen.
    head: usize,
    width: usize,
}

impl Shape {
    fn new(head: usize, width: usize) -> Self {
        let (head, width) = (head.next_multiple_of(16), width.next_multiple_of(16));
        Self { passing: if head.max(width) <= 64 { 64 } else { 32 }, head, width }
    }

    /// Bytes of shared memory: the block's own tiles, two of each that pass by, and what is known of their rows.
    fn shared(&self) -> usize {
        let line = self.head + APART + self.width + APART;
        2 * (ROWS + 2 * self.passing) * line + 4 * 2 * 2 * self.passing
    }
}

/// The plan of the kernels, where the loops are a softmax and its gradient between products that tensor cores take.
pub(super) fn plan<'a>(
    graph: &'a Graph,
    cluster: &'a Cluster,
    backward: &'a AttentionGradient,
    options: &'a Options,
) -> Result<Option<Plan<'a>>, Unsupported> {
    let known = softmax(&backward.weights.body).zip(slope(&backward.by_scores.body, backward.shares));
    let Some((softmax, slope)) = known else { return Ok(None) };
    let scores = Geometry::new(graph, &backward.scores)?;
    let by_weights = Geometry::new(graph, &backward.by_weights)?;
    let sides = [&scores.lhs, &scores.rhs, &by_weights.lhs, &by_weights.rhs];
    let Some(ty) = narrow(&sides.map(|side| side.element), options.products) else { return Ok(None) };
    let fits = (1..=WIDEST).contains(&scores.k)
        && (1..=WIDEST).contains(&by_weights.k)
        && (by_weights.m, by_weights.n, by_weights.batches()) == (scores.m, scores.n, scores.batches())
        && scores.m * scores.n > 0;
    let weights = &backward.weights;
    let ahead = sees(&weights.body, weights.rows, softmax.scores)
        .filter(|_| weights.body.dims.get(weights.rows - 1) == Some(&scores.m));
    let shape = Shape::new(scores.k, by_weights.k);
    Ok(fits.then_some(Plan {
        graph,
        cluster,
        backward,
        options,
        softmax,
        slope,
        scores,
        by_weights,
        ty,
        shape,
        ahead,
    }))
}

impl Plan<'_> {
    /// Both kernels; what the first says of each row lies in scratch memory between them.
    pub(super) fn emit(&self) -> Result<Emitted, Unsupported> {
        let of_rows = (self.scores.batches() * self.scores.m * 4) as u64;
        let kernels: Result<Vec<Kernel>, Unsupported> =
            [false, true].into_iter().map(|by_keys| Sweep::new(self, by_keys).emit()).collect();
        Ok(Emitted { kernels: kernels?, scratch: vec![of_rows; 2] })
    }

    /// The part of the cluster's cost that a kernel has: each product once, what is read in both.
    fn cost(&self, by_keys: bool) -> Cost {
        let whole = self.cluster.cost(self.graph);
        let pairs = self.scores.batches() * self.scores.m * self.scores.n;
        let last = 2 * (pairs * (self.scores.k + self.by_weights.k)) as u64;
        let given = self.backward.gradients().map(|gradient| self.graph.node(gradient.output).bytes() as u64);
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
    use super::Shape;

    #[test]
    fn tiles_fit_into_the_shared_memory_of_the_smallest_devices_that_are_meant() {
        // A block of sm_86 has 99 KiB.
        let fits = |head: usize, width: usize| Shape::new(head, width).shared() <= 99 << 10;
        assert!(fits(64, 64) && fits(128, 128) && fits(8, 128));
    }
}
