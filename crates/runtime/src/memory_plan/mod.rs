//! Memory planning: one block of memory that values share, each during its own lifetime, and state that is updated in place. The
//! same on every device.

mod state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use warpforge_fusion::cluster::Clusters;
use warpforge_fusion::{Graph, NodeId, Op};

use crate::{Lifetime, Program};
pub use state::{Alias, InPlace};

/// Where a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// In an argument, by its number in the graph: an input of the run, or state.
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
    /// The values that clusters write, with the first and the last cluster that they live in; those that the run gives away or copies
    /// at the end have no last one.
    pub lifetimes: Vec<(NodeId, usize, Option<usize>)>,
    /// Copies in their order, after all clusters: new contents of state that could not be computed in its memory, and old ones that
    /// the run gives away.
    pub copies: Vec<Copy>,
}

/// A copy of a whole value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Where it lies.
    pub from: Allocation,
    /// Where it goes.
    pub to: Allocation,
    /// Its bytes.
    pub bytes: usize,
}

impl MemoryPlan {
    /// Where an output lies after a run.
    #[must_use]
    pub fn output(&self, value: NodeId) -> Option<Allocation> {
        let given = self.outputs.iter().position(|&id| id == value).map(Allocation::Output);
        given.or_else(|| self.allocations.get(&value).copied())
    }

    /// The memory of values and outputs over a run. `kernel` gives the number and the name of the kernel that runs a cluster.
    #[must_use]
    pub fn value_lifetimes(
        &self,
        graph: &Graph,
        kernel: impl Fn(usize) -> Option<(usize, String)>,
    ) -> Vec<Lifetime> {
        let lifetime = |&(id, first, last): &(NodeId, usize, Option<usize>)| {
            let (kind, offset) = match self.allocations.get(&id)? {
                Allocation::Block(offset) => ("value", Some(*offset as u64)),
                Allocation::Output(_) => ("output", None),
                Allocation::Argument(_) | Allocation::Constant(_) => return None,
            };
            let (first, name) = kernel(first)?;
            let last = last.and_then(&kernel).map(|(last, _)| last);
            Some(Lifetime {
                name,
                kind,
                bytes: graph.node(id).bytes() as u64,
                offset,
                first: Some(first),
                last,
            })
        };
        self.lifetimes.iter().filter_map(lifetime).filter(|lifetime| lifetime.bytes > 0).collect()
    }
}

/// The aliases of a program's state.
#[must_use]
pub fn aliases(program: &Program) -> Vec<Alias> {
    let sources = program.sources();
    let number = |at: usize| sources.iter().position(|source| *source == crate::Source::State(at));
    let bindings = program.bindings().iter().enumerate();
    bindings.filter_map(|(at, one)| Some(Alias { argument: number(at)?, output: one.result })).collect()
}

/// Gives every value that clusters read or write its place; in the block they begin at multiples of `line` bytes. Values
/// that do not live at the same time share memory. Outputs that are the new content of state take its memory: at once where
/// nobody reads the old content any more, else by a copy at the end.
#[must_use]
pub fn plan(
    graph: &Graph,
    clusters: &Clusters,
    line: usize,
    aliases: &[Alias],
    in_place: &InPlace<'_>,
) -> MemoryPlan {
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
    let times: HashMap<NodeId, usize> = written.iter().map(|&(time, id)| (id, time)).collect();
    let updates = state::decide(graph, clusters, aliases, &times, &last_use, in_place);
    for &(value, _) in &updates.copied {
        last_use.insert(value, usize::MAX);
    }
    for (&value, &argument) in &updates.in_place {
        plan.allocations.insert(value, Allocation::Argument(argument));
    }
    let is_state = |argument: usize| aliases.iter().any(|alias| alias.argument == argument);
    for (at, output) in clusters.outputs.iter().enumerate() {
        if aliases.iter().any(|alias| alias.output == at) {
            continue;
        }
        if let Op::Argument(argument) = graph.node(output.value).op {
            // The state goes on; what the run gives away is a copy.
            if is_state(argument) && !plan.outputs.contains(&output.value) {
                let (from, to) = (Allocation::Argument(argument), Allocation::Output(plan.outputs.len()));
                plan.copies.push(Copy { from, to, bytes: graph.node(output.value).bytes() });
                plan.outputs.push(output.value);
            }
            continue;
        }
        let given = matches!(graph.node(output.value).op, Op::Constant(_));
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
        let last = last_use[&id];
        let kept = last == usize::MAX || plan.outputs.contains(&id);
        plan.lifetimes.push((id, time, (!kept).then_some(last)));
        free_list.end_before(time);
        plan.allocations.entry(id).or_insert_with(|| {
            Allocation::Block(free_list.take(graph.node(id).bytes().next_multiple_of(line), last_use[&id]))
        });
    }
    let copies = updates.copied.iter().filter_map(|&(value, argument)| {
        let (from, to) = (*plan.allocations.get(&value)?, Allocation::Argument(argument));
        Some(Copy { from, to, bytes: graph.node(value).bytes() })
    });
    let spare = |bytes: usize| Allocation::Block(free_list.take(bytes.next_multiple_of(line), usize::MAX));
    let copies = state::ordered(copies.collect(), spare);
    plan.copies.extend(copies.into_iter().filter(|copy| copy.bytes > 0));
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
