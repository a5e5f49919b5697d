//! Values that are computed again instead of being kept.

mod chains;
mod restored;
mod segments;

use crate::graph::Graph;

/// The graph that computes again what takes more to keep; with `checkpoints`, the backward pass all of the forward pass but what lies
/// between its segments.
pub(crate) fn recompute(graph: Graph, checkpoints: bool) -> Graph {
    let graph = restored::restore_for_each_reader(graph);
    let graph = if checkpoints { segments::keep_between_segments(graph) } else { graph };
    chains::follow_kept(graph)
}
