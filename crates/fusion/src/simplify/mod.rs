//! Changes to a whole graph that need to know who uses what.

use crate::graph::Graph;

/// The graph in its best form.
#[must_use]
pub fn simplify(graph: Graph) -> Graph {
    graph.pruned()
}
