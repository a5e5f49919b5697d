//! Constant hoisting: clusters that depend on constants alone are computed once.

use std::collections::HashSet;

use super::kind::{Cluster, Clusters, Kind};
use super::operand::Operand;
use crate::graph::{Graph, NodeId};

/// A cluster with fewer operations than this for each byte of its result is cheap.
const CHEAP_FLOPS_PER_BYTE: u64 = 4;

/// What a device keeps of values that are computed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoistLimits {
    /// Most bytes that they take beyond those of the constants that they are computed from.
    pub added_bytes: usize,
    /// Most bytes of a value that is much larger than what it is computed from and cheap to compute, such as a mask of indices: computing a
    /// larger one into a cache is faster than reading it from memory.
    pub cheap_bytes: usize,
}

/// Decides cluster by cluster, in the order in which they run, which are computed once.
#[derive(Debug)]
pub struct Hoisting<'g> {
    graph: &'g Graph,
    limits: HoistLimits,
    /// Values that runs give away or that are computed for what they do.
    given: HashSet<NodeId>,
    /// Values that are computed once.
    known: HashSet<NodeId>,
    /// Values whose place those that are made from them take.
    replaced: HashSet<NodeId>,
    added: usize,
}

impl<'g> Hoisting<'g> {
    /// Begins with the clusters of a graph. `known` are values that are computed once anyway.
    pub fn new(
        graph: &'g Graph,
        outputs: &[Operand],
        limits: HoistLimits,
        known: impl IntoIterator<Item = NodeId>,
    ) -> Self {
        let given = outputs.iter().map(|output| output.value).chain(graph.effects.iter().copied());
        Self {
            graph,
            limits,
            given: given.collect(),
            known: known.into_iter().collect(),
            replaced: HashSet::new(),
            added: 0,
        }
    }

    /// Whether the next cluster is computed once: it gives one value that runs do not give away, from constants and values that are
    /// computed once, within the limits.
    pub fn takes(&mut self, cluster: &Cluster) -> bool {
        let node = self.graph.node(cluster.output);
        let reads = cluster.reads();
        let plain =
            cluster.results().len() == 1 && !node.op.is_tuple() && !self.given.contains(&cluster.output);
        let is_known = |id: &NodeId| self.known.contains(id) || self.graph.constant(*id).is_some();
        if !plain || !reads.iter().all(is_known) {
            return false;
        }
        let bytes = |id: NodeId| self.graph.node(id).bytes();
        let read: usize = reads.iter().map(|&id| bytes(id)).sum();
        if node.bytes() > self.limits.cheap_bytes && node.bytes() > 2 * read && self.is_cheap(cluster) {
            return false;
        }
        // A constant in another type or order takes the place of what it is made from, once.
        let freed: usize = reads.iter().filter(|id| !self.replaced.contains(id)).map(|&id| bytes(id)).sum();
        let added = self.added + node.bytes().saturating_sub(freed);
        if added > self.limits.added_bytes {
            return false;
        }
        self.added = added;
        self.replaced.extend(reads);
        self.known.insert(cluster.output);
        true
    }

    /// Whether computing a cluster takes no longer than writing its result.
    fn is_cheap(&self, cluster: &Cluster) -> bool {
        let Kind::Loop(body) = &cluster.kind else { return false };
        let bytes = self.graph.node(cluster.output).bytes() as u64;
        !body.has_reductions() && cluster.cost(self.graph).flops < CHEAP_FLOPS_PER_BYTE * bytes
    }
}

/// Takes the clusters that are computed once out of those of each run. Operations without a kernel stay, so that they are reported.
pub(crate) fn hoist(
    graph: &Graph,
    clusters: &mut Clusters,
    limits: HoistLimits,
    has_kernel: &dyn Fn(&Cluster) -> bool,
) -> Vec<Cluster> {
    let mut hoisting = Hoisting::new(graph, &clusters.outputs, limits, []);
    let all = std::mem::take(&mut clusters.clusters);
    let (once, every_run) = all.into_iter().partition(|cluster| {
        let has_kernel = !matches!(cluster.kind, Kind::Unfused(_)) || has_kernel(cluster);
        has_kernel && hoisting.takes(cluster)
    });
    clusters.clusters = every_run;
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, grouped};

    const LIMITS: HoistLimits = HoistLimits { added_bytes: 64 << 20, cheap_bytes: 1 << 20 };

    /// The sizes of the values that a device with these limits computes once, of `values` in a function on `%x`.
    fn once(values: &str, results: &[(&str, &str)], limits: HoistLimits) -> Vec<Vec<usize>> {
        let (names, types): (Vec<_>, Vec<_>) = results.iter().copied().unzip();
        let (names, types) = (names.join(", "), types.join(", "));
        let text = format!(
            "func.func @main(%x: tensor<512x512xf32>) -> ({types}) {{\n{values}\nreturn {names} : {types}\n}}"
        );
        let graph = graph(&text);
        let mut clusters = grouped(&graph);
        let once = hoist(&graph, &mut clusters, limits, &|_| true);
        once.iter().map(|cluster| graph.node(cluster.output).dims.clone()).collect()
    }

    /// The rows of two tables, multiplied. The tables are too large to be computed as constants of the graph.
    const TABLE: &str = "%p = stablehlo.iota dim = 0 : tensor<512x512xf32>
        %q = stablehlo.iota dim = 1 : tensor<512x512xf32>
        %w = stablehlo.dot_general %p, %q, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
        %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>";

    #[test]
    fn what_reads_constants_alone_is_computed_once() {
        let square = "tensor<512x512xf32>";
        assert_eq!(once(TABLE, &[("%y", square)], LIMITS), vec![vec![512, 512]; 3]);
        // What runs give away is computed by them.
        assert_eq!(once(TABLE, &[("%y", square), ("%w", square)], LIMITS), vec![vec![512, 512]; 2]);
    }

    #[test]
    fn memory_is_bounded() {
        let bounded = |added_bytes| {
            once(TABLE, &[("%y", "tensor<512x512xf32>")], HoistLimits { added_bytes, ..LIMITS })
        };
        // Each table takes 1 MiB; their product takes the place of both.
        assert_eq!(bounded(32 << 16).len(), 3);
        assert_eq!(bounded(31 << 16).len(), 1);
        assert_eq!(bounded(0).len(), 0);
    }

    #[test]
    fn large_values_that_are_cheap_are_computed_in_every_run() {
        let mask = |size: usize| {
            let ty = format!("tensor<{size}x{size}xf32>");
            let text = format!(
                "%p = stablehlo.iota dim = 0 : {ty}
                %q = stablehlo.iota dim = 1 : {ty}
                %m = stablehlo.subtract %p, %q : {ty}
                %w = stablehlo.dot_general %m, %m, batching_dims = [0] x [0], contracting_dims = [1] x [1] : ({ty}, {ty}) -> tensor<{size}xf32>
                %d = stablehlo.iota dim = 0 : tensor<{size}xf32>
                %y = stablehlo.add %w, %d : tensor<{size}xf32>"
            );
            once(&text, &[("%y", &format!("tensor<{size}xf32>")), ("%x", "tensor<512x512xf32>")], LIMITS)
        };
        assert_eq!(mask(512), [[512, 512]]);
        assert!(mask(1024).is_empty());
    }
}
