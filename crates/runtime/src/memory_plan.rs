//! Where values lie while a program runs: one block of memory that they share, each in its time. The same on every device.

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
        for id in cluster.results().into_iter().flat_map(|id| results(graph, id)) {
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

/// The values that a cluster gives: one, or the results of an operation that the reference evaluates.
#[must_use]
pub fn results(graph: &Graph, output: NodeId) -> Vec<NodeId> {
    if !matches!(graph.node(output).op, Op::Opaque(_)) {
        return vec![output];
    }
    let is_result = |id: &NodeId| {
        matches!(graph.node(*id).op, Op::Result(_)) && graph.node(*id).inputs.first() == Some(&output)
    };
    graph.ids().filter(is_result).collect()
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
}
