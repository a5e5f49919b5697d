//! Groups of kernels that do not depend on one another and may run at the same time.

use std::ops::Range;

use warpforge_fusion::cluster::{Cluster, Clusters};
use warpforge_fusion::{Graph, NodeId};
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan};

/// Kernels of a group at most: each waits on the stack for the next ones.
const MOST: usize = 8;

/// Memory that a kernel reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Region {
    /// Bytes of the block.
    Block(Range<usize>),
    /// A value with memory of its own.
    Own(Allocation),
}

impl Region {
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Block(a), Self::Block(b)) => a.start < b.end && b.start < a.end,
            _ => self == other,
        }
    }
}

/// What the kernels of a group read and write.
#[derive(Debug, Default)]
struct Accesses {
    reads: Vec<Region>,
    writes: Vec<Region>,
}

impl Accesses {
    fn of(graph: &Graph, cluster: &Cluster, plan: &MemoryPlan) -> Self {
        let region = |id: NodeId| match *plan.allocations.get(&id)? {
            // Nothing writes to it.
            Allocation::Constant(_) => None,
            Allocation::Block(offset) => Some(Region::Block(offset..offset + graph.node(id).bytes())),
            own @ (Allocation::Argument(_) | Allocation::Output(_)) => Some(Region::Own(own)),
        };
        let results = cluster.results().into_iter().flat_map(|id| graph.results(id));
        Self {
            reads: cluster.reads().into_iter().filter_map(region).collect(),
            writes: results.filter_map(region).collect(),
        }
    }

    /// Whether kernels with these accesses may run in any order.
    fn independent_of(&self, other: &Self) -> bool {
        let apart = |some: &[Region], others: &[Region]| {
            some.iter().all(|one| others.iter().all(|other| !one.overlaps(other)))
        };
        apart(&self.writes, &other.writes)
            && apart(&self.writes, &other.reads)
            && apart(&self.reads, &other.writes)
    }
}

/// Divides clusters, in their order, into groups of such as neither read nor overwrite what others of the group write.
pub(crate) fn independent(graph: &Graph, clusters: &Clusters, plan: &MemoryPlan) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut accesses = Accesses::default();
    for (at, cluster) in clusters.clusters.iter().enumerate() {
        let own = Accesses::of(graph, cluster, plan);
        match groups.last_mut() {
            Some(group) if group.len() < MOST && own.independent_of(&accesses) => {
                group.end = at + 1;
                accesses.reads.extend(own.reads);
                accesses.writes.extend(own.writes);
            }
            _ => {
                groups.push(at..at + 1);
                accesses = own;
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use warpforge_fusion::cluster::{Kind, Operand};
    use warpforge_fusion::{Node, Op, View};
    use warpforge_runtime::memory_plan;
    use warpforge_tensor::ElementType;

    use super::*;

    /// Values of so many elements, each with the values that it is computed from; those computed from none are arguments.
    fn graph(values: &[(usize, Vec<usize>)]) -> (Graph, Clusters) {
        let mut graph = Graph::default();
        let mut clusters = Vec::new();
        for (at, (elements, inputs)) in values.iter().enumerate() {
            let inputs: Vec<NodeId> = inputs.iter().map(|&input| NodeId(input as u32)).collect();
            let operand = |&value: &NodeId| Operand { value, view: View::dense(&graph.node(value).dims) };
            let operands: Vec<Operand> = inputs.iter().map(operand).collect();
            let op = if inputs.is_empty() { Op::Argument(at) } else { Op::Concat(0) };
            let computed = !inputs.is_empty();
            let (element, dims) = (ElementType::F32, vec![*elements]);
            graph.nodes.push(Node { op, inputs, element, dims, origin: None });
            let output = NodeId(at as u32);
            if computed {
                clusters.push(Cluster { kind: Kind::Unfused(operands), output, nodes: vec![output] });
            }
        }
        let last = NodeId(values.len() as u32 - 1);
        let outputs = vec![Operand { value: last, view: View::dense(&graph.node(last).dims) }];
        (graph, Clusters { clusters, outputs })
    }

    fn planned(graph: &Graph, clusters: &Clusters) -> (MemoryPlan, Vec<Range<usize>>) {
        let plan = memory_plan::plan(graph, clusters, 64, &[], &|_, _| false);
        let groups = independent(graph, clusters, &plan);
        (plan, groups)
    }

    #[test]
    fn values_that_read_the_same_are_a_group_and_one_that_reads_them_is_not() {
        let values = [vec![], vec![0], vec![0], vec![0], vec![1, 2, 3], vec![4]].map(|inputs| (16, inputs));
        let (graph, clusters) = graph(&values);
        assert_eq!(planned(&graph, &clusters).1, [0..3, 3..4, 4..5]);
    }

    #[test]
    fn memory_that_is_used_again_divides_a_group() {
        // Value 3 does not depend on value 2, but lies where value 1 was, which value 2 is computed from.
        let values = [vec![], vec![0], vec![1], vec![0], vec![2, 3]].map(|inputs| (16, inputs));
        let (graph, clusters) = graph(&values);
        let (plan, groups) = planned(&graph, &clusters);
        assert_eq!(plan.allocations[&NodeId(1)], plan.allocations[&NodeId(3)]);
        assert_eq!(groups, [0..1, 1..2, 2..3, 3..4]);
    }

    #[test]
    fn a_group_is_not_endless() {
        let mut values: Vec<_> = (0..MOST + 3).map(|at| (16, vec![0; usize::from(at > 0)])).collect();
        values.push((16, (1..values.len()).collect()));
        let (graph, clusters) = graph(&values);
        assert_eq!(planned(&graph, &clusters).1, [0..MOST, MOST..MOST + 2, MOST + 2..MOST + 3]);
    }

    /// Runs random graphs with the clusters of each group backwards: every cluster must find its inputs as they were written.
    #[test]
    fn clusters_of_a_group_run_in_any_order() {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut grouped = 0;
        for _ in 0..300 {
            let count = rng.usize(3..40);
            let values: Vec<(usize, Vec<usize>)> = (0..count)
                .map(|at| {
                    let inputs =
                        (0..usize::from(at > 1) * rng.usize(1..3)).map(|_| rng.usize(0..at)).collect();
                    (rng.usize(1..60), inputs)
                })
                .collect();
            let (graph, clusters) = graph(&values);
            let (plan, groups) = planned(&graph, &clusters);
            // The value whose content each cache line of the block holds.
            let mut lines: HashMap<usize, NodeId> = HashMap::new();
            let held = |id: NodeId| match plan.allocations[&id] {
                Allocation::Block(offset) => (offset..offset + graph.node(id).bytes()).step_by(64).collect(),
                _ => Vec::new(),
            };
            for group in groups {
                grouped += usize::from(group.len() > 1);
                for cluster in clusters.clusters[group].iter().rev() {
                    for id in cluster.reads() {
                        assert!(held(id).iter().all(|line| lines.get(line) == Some(&id)), "{values:?}");
                    }
                    lines.extend(held(cluster.output).into_iter().map(|line| (line, cluster.output)));
                }
            }
        }
        assert!(grouped > 300, "{grouped}");
    }
}
