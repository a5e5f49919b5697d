//! Joins the products and loops that together give the gradients of attention.
//!
//! Attention multiplies values by weights, a softmax over rows of scores. With the gradient of its result there are five
//! products and two loops over rows: the scores (again), the gradient by the weights, and from those the gradients by
//! queries, keys and values. One cluster of them never needs a matrix of the scores' size in memory. Where attention itself
//! shared its weights with them, it becomes a cluster that computes its own.

mod description;
mod find;
mod order;
mod softmax_gradient;

pub use description::{AttentionGradient, Gradient};
pub use softmax_gradient::SoftmaxGradient;

use super::{Cluster, Clusters};
use crate::graph::Graph;
use find::{Found, Search};

/// The clusters with the gradients of attention as one where a backend takes them so; it is asked about each, and about
/// attention that shared its weights with them.
#[must_use]
pub(crate) fn fuse_attention_gradients(
    graph: &Graph,
    clusters: Clusters,
    takes: &dyn Fn(&Cluster) -> bool,
) -> Clusters {
    // Clusters may change places, and what is run for its effects must not.
    if !graph.effects.is_empty() {
        return clusters;
    }
    let mut taken = vec![false; clusters.clusters.len()];
    let mut placed: Vec<Option<Cluster>> = vec![None; clusters.clusters.len()];
    let mut search = Search::new(graph, &clusters);
    for place in 0..clusters.clusters.len() {
        let Some(Found { cluster, parts, last, forward }) = search.at(place) else { continue };
        let free = parts.iter().all(|&part| !taken[part]);
        if !free || !takes(&cluster) || !forward.iter().all(|(_, attention)| takes(attention)) {
            continue;
        }
        parts.iter().for_each(|&part| taken[part] = true);
        placed[last] = Some(cluster);
        if let Some((at, attention)) = forward {
            placed[at] = Some(attention);
        }
    }
    if placed.iter().all(Option::is_none) {
        return clusters;
    }
    let next = clusters.clusters.iter().zip(&taken).zip(placed);
    let next = next.filter_map(|((old, &taken), new)| new.or_else(|| (!taken).then(|| old.clone())));
    match order::by_use(graph, next.collect()) {
        Some(next) => Clusters { clusters: next, outputs: clusters.outputs },
        None => clusters,
    }
}

#[cfg(test)]
mod tests {
    use super::fuse_attention_gradients;
    use crate::cluster::{Clusters, Kind};
    use crate::testing::{graph, grouped};

    /// Attention of f32 and its gradients; `more` is what is given besides.
    fn text(more: Option<&str>) -> String {
        let (x, s, r) = ("tensor<2x6x4xf32>", "tensor<2x6x6xf32>", "tensor<2x6xf32>");
        let dot = |operands: &str, sums: &str, result: &str| {
            let left = if result == s || operands.starts_with("%g") { x } else { s };
            format!(
                "stablehlo.dot_general {operands}, batching_dims = [0] x [0], contracting_dims = {sums} : ({left}, {x}) -> {result}"
            )
        };
        let (name, ty) =
            more.map_or((String::new(), String::new()), |more| (format!(", {more}"), format!(", {s}")));
        format!(
            "func.func @main(%q: {x}, %k: {x}, %v: {x}, %g: {x}) -> ({x}, {x}, {x}, {x}{ty}) {{
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %x = {}
    %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [2] : ({s}, tensor<f32>) -> {r}
    %mm = stablehlo.broadcast_in_dim %max, dims = [0, 1] : ({r}) -> {s}
    %d = stablehlo.subtract %x, %mm : {s}
    %e = stablehlo.exponential %d : {s}
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : ({s}, tensor<f32>) -> {r}
    %ss = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : ({r}) -> {s}
    %w = stablehlo.divide %e, %ss : {s}
    %o = {}
    %dv = {}
    %dw = {}
    %wg = stablehlo.multiply %dw, %w : {s}
    %t = stablehlo.reduce(%wg init: %zero) applies stablehlo.add across dimensions = [2] : ({s}, tensor<f32>) -> {r}
    %tt = stablehlo.broadcast_in_dim %t, dims = [0, 1] : ({r}) -> {s}
    %back = stablehlo.multiply %w, %tt : {s}
    %dx = stablehlo.subtract %wg, %back : {s}
    %dq = {}
    %dk = {}
    return %o, %dq, %dk, %dv{name} : {x}, {x}, {x}, {x}{ty}\n}}",
            dot("%q, %k", "[2] x [2]", s),
            dot("%w, %v", "[2] x [1]", x),
            dot("%w, %g", "[1] x [1]", x),
            dot("%g, %v", "[2] x [2]", s),
            dot("%dx, %k", "[2] x [1]", x),
            dot("%dx, %q", "[1] x [1]", x),
        )
    }

    fn kinds(clusters: &Clusters) -> Vec<&'static str> {
        let kind = |kind: &Kind| match kind {
            Kind::Loop(_) => "loop",
            Kind::Dot(_) => "product",
            Kind::Attention(_) => "attention",
            Kind::AttentionGradient(_) => "backward",
            _ => "other",
        };
        clusters.clusters.iter().map(|cluster| kind(&cluster.kind)).collect()
    }

    #[test]
    fn gradients_are_one_cluster_and_attention_one_of_its_own_where_both_are_taken() {
        let graph = graph(&text(None));
        let apart = grouped(&graph);
        assert!(!kinds(&apart).contains(&"attention"));
        let joined = fuse_attention_gradients(&graph, apart.clone(), &|_| true);
        assert_eq!(kinds(&joined), ["attention", "backward"]);
        let given: Vec<_> = joined.clusters.iter().flat_map(super::Cluster::results).collect();
        assert_eq!(given, graph.outputs);
        for refused in ["attention", "backward"] {
            let takes = |cluster: &super::Cluster| {
                matches!(cluster.kind, Kind::Attention(_)) == (refused == "backward")
            };
            assert_eq!(kinds(&fuse_attention_gradients(&graph, apart.clone(), &takes)), kinds(&apart));
        }
    }

    #[test]
    fn weights_that_somebody_else_needs_stay_in_memory() {
        for more in ["%w", "%dx", "%x", "%dw"] {
            let graph = graph(&text(Some(more)));
            let apart = grouped(&graph);
            assert_eq!(
                kinds(&fuse_attention_gradients(&graph, apart.clone(), &|_| true)),
                kinds(&apart),
                "{more}"
            );
        }
    }
}
