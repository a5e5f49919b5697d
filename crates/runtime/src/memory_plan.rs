//! Memory planning: one block of memory that values share, each during its own lifetime. The same on every device.

use std::collections::HashMap;

use warpforge_fusion::cluster::Clusters;
use warpforge_fusion::{Graph, NodeId, Op};

/// Where a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// In an input of the run.
    Argument(usize),
    /// Among the constants, by its number there.
    Constant(usize),
    /// In the block of memory, from this byte on.
    Block(usize),
    /// In memory of its own that the run gives away.
    Output(usize),
}

/// Where all values lie.
#[derive(Debug, Clone, Default)]
pub struct MemoryPlan {
    /// The place of each value.
    pub allocations: HashMap<NodeId, Allocation>,
    /// The values of [`Allocation::Constant`], in order.
    pub constants: Vec<NodeId>,
    /// The values of [`Allocation::Output`], in order.
    pub outputs: Vec<NodeId>,
    /// Bytes of the block.
    pub block: usize,
}

/// Gives every value that clusters read or write its place; in the block they begin at multiples of `line` bytes. Values
/// that do not live at the same time share memory.
#[must_use]
pub fn plan(graph: &Graph, clusters: &Clusters, line: usize) -> MemoryPlan {
    let mut plan = MemoryPlan::default();
    let mut last_use: HashMap<NodeId, usize> = HashMap::new();
    let mut written: Vec<(usize, NodeId)> = Vec::new();
    for (time, cluster) in clusters.clusters.iter().enumerate() {
        for id in cluster.reads() {
            last_use.insert(id, time);
        }
        for id in cluster.results().into_iter().flat_map(|id| graph.results(id)) {
            written.push((time, id));
            last_use.entry(id).or_insert(time);
        }
    }
    for output in &clusters.outputs {
        let given = matches!(graph.node(output.value).op, Op::Argument(_) | Op::Constant(_));
        if !given && !plan.outputs.contains(&output.value) {
            plan.allocations.insert(output.value, Allocation::Output(plan.outputs.len()));
            plan.outputs.push(output.value);
        }
    }
    for id in last_use.keys().copied().chain(clusters.outputs.iter().map(|output| output.value)) {
        match graph.node(id).op {
            Op::Argument(at) => {
                plan.allocations.insert(id, Allocation::Argument(at));
            }
            Op::Constant(_) if !plan.allocations.contains_key(&id) => {
                plan.allocations.insert(id, Allocation::Constant(plan.constants.len()));
                plan.constants.push(id);
            }
            _ => {}
        }
    }
    let mut free_list = FreeList::default();
    for (time, id) in written {
        free_list.end_before(time);
        plan.allocations.entry(id).or_insert_with(|| {
            Allocation::Block(free_list.take(graph.node(id).bytes().next_multiple_of(line), last_use[&id]))
        });
    }
    plan.block = free_list.high;
    plan
}

/// Parts of the block that are taken, each until a time.
#[derive(Debug, Default)]
struct FreeList {
    /// Offset, bytes, last time; by offset.
    taken: Vec<(usize, usize, usize)>,
    high: usize,
}

impl FreeList {
    fn end_before(&mut self, time: usize) {
        self.taken.retain(|&(_, _, last)| last >= time);
    }

    /// The smallest gap that is large enough, or new memory at the end.
    fn take(&mut self, bytes: usize, last: usize) -> usize {
        // An empty value takes no place, and must not stand between those that do.
        if bytes == 0 {
            return 0;
        }
        let mut best: Option<(usize, usize)> = None;
        let mut end = 0;
        for &(offset, size, _) in &self.taken {
            let gap = offset - end;
            if gap >= bytes && best.is_none_or(|(_, smallest)| gap < smallest) {
                best = Some((end, gap));
            }
            end = offset + size;
        }
        let offset = best.map_or(end, |(offset, _)| offset);
        let at = self.taken.partition_point(|&(other, _, _)| other < offset);
        self.taken.insert(at, (offset, bytes, last));
        self.high = self.high.max(offset + bytes);
        offset
    }
}

#[cfg(test)]
mod tests {
    use warpforge_fusion::cluster::{Cluster, Kind, Operand};
    use warpforge_fusion::{Node, View};
    use warpforge_tensor::ElementType;

    use super::*;

    #[test]
    fn values_of_different_times_share_memory() {
        let mut free_list = FreeList::default();
        assert_eq!(free_list.take(128, 1), 0);
        assert_eq!(free_list.take(64, 2), 128);
        free_list.end_before(2);
        assert_eq!(free_list.take(64, 3), 0);
        assert_eq!(free_list.take(128, 3), 192);
        assert_eq!(free_list.take(64, 3), 64);
        assert_eq!(free_list.high, 320);
    }

    /// A random graph of values that each read some before them, a cluster for each value, and some of them as outputs.
    fn random(rng: &mut fastrand::Rng) -> (Graph, Clusters) {
        let dense =
            |graph: &Graph, value: NodeId| Operand { value, view: View::dense(&graph.node(value).dims) };
        let mut graph = Graph::default();
        let mut clusters = Vec::new();
        let arguments = rng.usize(1..4);
        let count = arguments + rng.usize(1..40);
        for at in 0..count {
            let id = NodeId(at as u32);
            let dims = vec![rng.usize(0..400)];
            let (op, inputs) = match at < arguments {
                true => (Op::Argument(at), Vec::new()),
                false => {
                    let reads = rng.usize(1..4);
                    let read = |_| NodeId(rng.usize(0..at) as u32);
                    (Op::Concat(0), (0..reads).map(read).collect::<Vec<_>>())
                }
            };
            let operands = inputs.iter().map(|&input| dense(&graph, input)).collect();
            graph.nodes.push(Node { op, inputs, element: ElementType::F32, dims, origin: None });
            if at >= arguments {
                clusters.push(Cluster { kind: Kind::Unfused(operands), output: id, nodes: vec![id] });
            }
        }
        let given = rng.usize(1..4);
        let outputs: Vec<NodeId> = (0..given).map(|_| NodeId(rng.usize(0..count) as u32)).collect();
        let outputs = outputs.iter().map(|&id| dense(&graph, id)).collect();
        (graph, Clusters { clusters, outputs })
    }

    /// Every two values whose bytes overlap in the block are alive at different times: checked for all pairs, from the clusters alone.
    #[test]
    fn no_two_values_that_live_at_the_same_time_overlap() {
        const LINE: usize = 64;
        let mut rng = fastrand::Rng::with_seed(7);
        let mut shared = 0;
        for _ in 0..500 {
            let (graph, clusters) = random(&mut rng);
            let plan = plan(&graph, &clusters, LINE);
            let written = |id: NodeId| clusters.clusters.iter().position(|cluster| cluster.output == id);
            let read_last =
                |id: NodeId| clusters.clusters.iter().rposition(|cluster| cluster.reads().contains(&id));
            let mut blocks = Vec::new();
            for id in graph.ids() {
                let is_output = clusters.outputs.iter().any(|output| output.value == id);
                match plan.allocations.get(&id) {
                    Some(&Allocation::Block(offset)) => {
                        assert!(!is_output, "an output lies in the shared block");
                        assert!(offset % LINE == 0 && offset + graph.node(id).bytes() <= plan.block);
                        let from = written(id).unwrap();
                        let bytes = offset..offset + graph.node(id).bytes();
                        blocks.push((bytes, from..=read_last(id).unwrap_or(from)));
                    }
                    Some(&Allocation::Output(at)) => assert_eq!((plan.outputs[at], is_output), (id, true)),
                    Some(&Allocation::Argument(at)) => {
                        assert_eq!(graph.node(id).op.name(), format!("argument {at}"));
                    }
                    Some(Allocation::Constant(_)) => unreachable!("there are no constants"),
                    None => assert!(written(id).is_none() && read_last(id).is_none(), "a value has no place"),
                }
            }
            for (at, (bytes, alive)) in blocks.iter().enumerate() {
                for (other, later) in &blocks[at + 1..] {
                    let overlap = bytes.start < other.end && other.start < bytes.end;
                    let together = alive.start() <= later.end() && later.start() <= alive.end();
                    assert!(!(overlap && together), "{bytes:?} {alive:?} and {other:?} {later:?}");
                    shared += usize::from(overlap);
                }
            }
        }
        assert!(shared > 1000, "memory is hardly shared: {shared} pairs");
    }
}
