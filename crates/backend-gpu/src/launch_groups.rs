//! Which tasks are launched together: equal kernels that touch no memory of each other, as the updates of an optimizer are.

use std::collections::{BTreeMap, HashSet};

use warpforge_codegen::Kernel;
use warpforge_fusion::cluster::Kind;
use warpforge_fusion::{Graph, NodeId};
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan};

use crate::lower::{Lowering, Task};

/// Tasks that are started together.
pub(crate) struct LaunchGroup {
    /// Their positions.
    pub(crate) tasks: Vec<usize>,
    /// The kernel of several tasks.
    pub(crate) kernel: Option<Kernel>,
}

impl LaunchGroup {
    fn one(at: usize) -> Self {
        Self { tasks: vec![at], kernel: None }
    }

    /// Every task by itself, in order.
    pub(crate) fn each(tasks: &[Task]) -> Vec<Self> {
        (0..tasks.len()).map(Self::one).collect()
    }

    /// The kernels that it launches.
    pub(crate) fn kernels<'t>(&'t self, tasks: &'t [Task]) -> impl Iterator<Item = &'t Kernel> {
        let own = match self.kernel {
            Some(_) => &[],
            None => self.tasks.as_slice(),
        };
        self.kernel.iter().chain(own.iter().flat_map(|&at| tasks[at].kernels()))
    }
}

/// The group of each of so many tasks.
pub(crate) fn positions(groups: &[LaunchGroup], tasks: usize) -> Vec<usize> {
    let mut positions = vec![0; tasks];
    for (at, group) in groups.iter().enumerate() {
        group.tasks.iter().for_each(|&task| positions[task] = at);
    }
    positions
}

/// Groups tasks. A task waits for equal ones until one that cannot wait needs its result or its memory. Tasks that depend on each
/// other, by value or by memory, keep their order.
pub(crate) fn schedule(graph: &Graph, tasks: &[Task], plan: &MemoryPlan) -> Vec<LaunchGroup> {
    let mut schedule = Vec::new();
    // In the order in which they are launched.
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        let accesses = Accesses::of(graph, task, plan);
        // The groups that must come first.
        let before = match &accesses {
            Some(own) => waiting
                .iter()
                .rposition(|group| group.accesses.conflicts_with(own))
                .map_or(0, |last| last + 1),
            None => waiting.len(),
        };
        let (Some(accesses), Some(kernel)) = (accesses, kernel(task)) else {
            schedule.extend(waiting.drain(..before).flat_map(Waiting::finish));
            schedule.push(LaunchGroup::one(at));
            continue;
        };
        match waiting[before..].iter_mut().find(|group| group.kernels[0].name == kernel.name) {
            Some(group) => {
                group.tasks.push(at);
                group.kernels.push(kernel);
                group.accesses.extend(accesses);
            }
            None => waiting.push(Waiting { tasks: vec![at], kernels: vec![kernel], accesses }),
        }
    }
    schedule.extend(waiting.into_iter().flat_map(Waiting::finish));
    schedule
}

/// Tasks that wait to be launched together.
struct Waiting<'t> {
    tasks: Vec<usize>,
    kernels: Vec<&'t Kernel>,
    accesses: Accesses,
}

impl Waiting<'_> {
    fn finish(self) -> Vec<LaunchGroup> {
        let several = (self.tasks.len() > 1).then(|| Kernel::group(&self.kernels)).flatten();
        match several {
            Some(kernel) => vec![LaunchGroup { tasks: self.tasks, kernel: Some(kernel) }],
            None => self.tasks.into_iter().map(LaunchGroup::one).collect(),
        }
    }
}

/// The kernel of a task that can be launched with others: that of a loop, which alone may not fill the device.
fn kernel(task: &Task) -> Option<&Kernel> {
    match (&task.lowering, &task.cluster.kind) {
        (Lowering::Emitted(emitted), Kind::Loop(_)) => match emitted.kernels.as_slice() {
            [kernel] if emitted.scratch.is_empty() && kernel.can_be_grouped() => Some(kernel),
            _ => None,
        },
        _ => None,
    }
}

/// The memory that tasks read and write.
#[derive(Default)]
struct Accesses {
    reads: Places,
    writes: Places,
}

impl Accesses {
    /// The accesses of a task; none where the host or another process takes part, which is left where it is.
    fn of(graph: &Graph, task: &Task, plan: &MemoryPlan) -> Option<Self> {
        match task.lowering {
            Lowering::Collective(_) | Lowering::Bucket(_) | Lowering::Grid(_) | Lowering::Host(_) => {
                return None;
            }
            Lowering::Emitted(_) | Lowering::Gemm(_) | Lowering::Convolution(_) | Lowering::Attention(_) => {}
        }
        let mut accesses = Self::default();
        for id in task.cluster.reads() {
            accesses.reads.add(graph, id, plan);
        }
        for id in task.cluster.results().into_iter().flat_map(|id| graph.results(id)) {
            accesses.writes.add(graph, id, plan);
        }
        Some(accesses)
    }

    fn conflicts_with(&self, later: &Accesses) -> bool {
        self.writes.overlap(&later.reads)
            || self.writes.overlap(&later.writes)
            || self.reads.overlap(&later.writes)
    }

    fn extend(&mut self, other: Accesses) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
    }
}

/// Places in memory.
#[derive(Default)]
struct Places {
    /// Memory that belongs to one value at a time: arguments, outputs and constants.
    whole: HashSet<Allocation>,
    /// Ranges of the block that do not touch each other's bytes: starts with their ends.
    ranges: BTreeMap<usize, usize>,
}

impl Places {
    fn add(&mut self, graph: &Graph, id: NodeId, plan: &MemoryPlan) {
        match plan.allocations.get(&id) {
            Some(&Allocation::Block(start)) => {
                let bytes = graph.node(id).bytes();
                if bytes > 0 {
                    self.add_range(start, start + bytes);
                }
            }
            Some(&place) => drop(self.whole.insert(place)),
            // A result of the setup: nothing writes it.
            None => {}
        }
    }

    fn add_range(&mut self, mut start: usize, mut end: usize) {
        while let Some((from, to)) = self.last_before(end).filter(|&(_, to)| to > start) {
            self.ranges.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.ranges.insert(start, end);
    }

    /// The last range that starts before an offset.
    fn last_before(&self, offset: usize) -> Option<(usize, usize)> {
        self.ranges.range(..offset).next_back().map(|(&start, &end)| (start, end))
    }

    fn overlap(&self, other: &Places) -> bool {
        let (few, many) = if self.whole.len() < other.whole.len() { (self, other) } else { (other, self) };
        if few.whole.iter().any(|place| many.whole.contains(place)) {
            return true;
        }
        let (few, many) = if self.ranges.len() < other.ranges.len() { (self, other) } else { (other, self) };
        few.ranges.iter().any(|(&start, &end)| many.last_before(end).is_some_and(|(_, to)| to > start))
    }

    fn extend(&mut self, other: Places) {
        self.whole.extend(other.whole);
        for (start, end) in other.ranges {
            self.add_range(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    fn places(ranges: &[(usize, usize)]) -> Places {
        let mut places = Places::default();
        ranges.iter().for_each(|&(start, end)| places.add_range(start, end));
        places
    }

    #[test]
    fn overlapping_ranges_are_one() {
        let all = places(&[(10, 20), (40, 50), (15, 45), (60, 70), (70, 80)]);
        assert_eq!(all.ranges.into_iter().collect::<Vec<_>>(), [(10, 50), (60, 70), (70, 80)]);
    }

    #[test]
    fn ranges_overlap_where_they_have_a_byte_in_common() {
        let all = places(&[(10, 20), (40, 50)]);
        for (range, overlaps) in [
            ((0, 10), false),
            ((0, 11), true),
            ((19, 30), true),
            ((20, 40), false),
            ((20, 41), true),
            ((0, 99), true),
            ((50, 51), false),
        ] {
            assert_eq!(all.overlap(&places(&[range])), overlaps, "{range:?}");
            assert_eq!(places(&[range]).overlap(&all), overlaps, "{range:?}");
        }
    }
}
