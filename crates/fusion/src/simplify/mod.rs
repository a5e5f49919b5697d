//! Changes to a whole graph that need to know who uses what.

mod batch;
mod batch_norm;
mod gelu;
mod pointwise_groups;
mod reduction;
mod resample;
mod rewrite;
mod rotary;
mod sum_of_products;

pub(crate) use resample::resampled;

use crate::graph::Graph;

/// The graph in its best form.
#[must_use]
pub(crate) fn simplify(graph: &Graph) -> Graph {
    let graph = pointwise_groups::as_products(&batch_norm::fold_into_weights(graph));
    let graph = rotary::canonicalise(&graph);
    sum_of_products::join(&batch::unmerge(&reduction::split(&gelu::join(&graph))))
}
