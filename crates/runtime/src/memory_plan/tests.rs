//! Plans of random graphs, held against brute force.

use std::collections::HashSet;

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
fn random(rng: &mut fastrand::Rng, sizes: &[usize]) -> (Graph, Clusters) {
    let dense = |graph: &Graph, value: NodeId| Operand { value, view: View::dense(&graph.node(value).dims) };
    let mut graph = Graph::default();
    let mut clusters = Vec::new();
    let arguments = rng.usize(1..4);
    let count = arguments + rng.usize(1..40);
    for at in 0..count {
        let id = NodeId(at as u32);
        let dims = vec![sizes[rng.usize(0..sizes.len())]];
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
    let sizes: Vec<usize> = (0..400).collect();
    let mut shared = 0;
    for _ in 0..500 {
        let (graph, clusters) = random(&mut rng, &sizes);
        let plan = plan(&graph, &clusters, LINE, &[], &|_, _| false);
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

/// What each byte of the memory of a run holds: a value, whole or a part of it.
struct Memory<'p> {
    plan: &'p MemoryPlan,
    block: Vec<Option<NodeId>>,
    arguments: HashMap<usize, Option<NodeId>>,
    outputs: Vec<Option<NodeId>>,
}

impl Memory<'_> {
    fn read(&self, from: Allocation, bytes: usize) -> Option<NodeId> {
        match from {
            Allocation::Argument(at) => self.arguments[&at],
            Allocation::Output(at) => self.outputs[at],
            Allocation::Block(offset) => {
                let held: HashSet<_> = self.block[offset..offset + bytes].iter().copied().collect();
                if held.len() == 1 { held.into_iter().next().flatten() } else { None }
            }
            Allocation::Constant(_) => unreachable!("there are no constants"),
        }
    }

    fn write(&mut self, to: Allocation, bytes: usize, value: Option<NodeId>) {
        match to {
            Allocation::Argument(at) => drop(self.arguments.insert(at, value)),
            Allocation::Output(at) => self.outputs[at] = value,
            Allocation::Block(offset) => self.block[offset..offset + bytes].fill(value),
            Allocation::Constant(_) => unreachable!("there are no constants"),
        }
    }

    fn holds(&self, graph: &Graph, value: NodeId, at: Allocation) -> bool {
        graph.node(value).is_empty() || self.read(at, graph.node(value).bytes()) == Some(value)
    }
}

/// Pairs of arguments and outputs of one size, each at most once.
fn random_aliases(rng: &mut fastrand::Rng, graph: &Graph, clusters: &Clusters) -> Vec<Alias> {
    let mut aliases: Vec<Alias> = Vec::new();
    for id in graph.ids() {
        let Op::Argument(argument) = graph.node(id).op else { break };
        let fits = |at: &usize| {
            graph.node(clusters.outputs[*at].value).dims == graph.node(id).dims
                && aliases.iter().all(|alias| alias.output != *at)
        };
        let fitting: Vec<usize> = (0..clusters.outputs.len()).filter(fits).collect();
        if let Some(output) = rng.choice(fitting) {
            aliases.push(Alias { argument, output });
        }
    }
    aliases
}

/// Runs random programs with state on their plans, byte by byte: every cluster reads the values that the graph says, and at the end
/// the state has its new contents and the outputs theirs.
#[test]
fn state_is_updated_after_its_last_read() {
    let mut rng = fastrand::Rng::with_seed(11);
    let (mut in_place, mut copied, mut saved, mut given_away) = (0, 0, 0, 0);
    for _ in 0..4000 {
        let (graph, mut clusters) = random(&mut rng, &[0, 8, 8, 40]);
        for _ in 0..rng.usize(0..5) {
            let first = clusters.clusters[0].output;
            let value = match rng.bool() {
                true => clusters.outputs[rng.usize(0..clusters.outputs.len())].value,
                false => NodeId(rng.u32(0..first.0)),
            };
            clusters.outputs.push(Operand { value, view: View::dense(&graph.node(value).dims) });
        }
        let aliases = random_aliases(&mut rng, &graph, &clusters);
        let tolerant = rng.bool();
        let allowed = |cluster: &Cluster, _: NodeId| tolerant && cluster.output.index().is_multiple_of(2);
        let plan = plan(&graph, &clusters, 64, &aliases, &allowed);
        let arguments = graph.ids().filter_map(|id| match graph.node(id).op {
            Op::Argument(at) => Some((at, Some(id))),
            _ => None,
        });
        let mut memory = Memory {
            plan: &plan,
            block: vec![None; plan.block],
            arguments: arguments.collect(),
            outputs: vec![None; plan.outputs.len()],
        };
        for cluster in &clusters.clusters {
            let to = memory.plan.allocations[&cluster.output];
            for read in cluster.reads() {
                let from = memory.plan.allocations[&read];
                assert!(
                    memory.holds(&graph, read, from),
                    "{read:?} is gone when {:?} reads it",
                    cluster.output
                );
                let empty = graph.node(read).is_empty() || graph.node(cluster.output).is_empty();
                let overwritten = from == to && !empty;
                assert!(
                    !overwritten || allowed(cluster, read),
                    "{:?} overwrites what it reads",
                    cluster.output
                );
            }
            memory.write(to, graph.node(cluster.output).bytes(), Some(cluster.output));
            in_place += usize::from(matches!(to, Allocation::Argument(_)));
        }
        for copy in &plan.copies {
            let value = memory.read(copy.from, copy.bytes);
            assert!(value.is_some(), "{copy:?} reads no whole value");
            memory.write(copy.to, copy.bytes, value);
            copied += usize::from(matches!(copy.to, Allocation::Argument(_)));
            saved += usize::from(matches!(copy.to, Allocation::Block(_)));
            given_away += usize::from(matches!(copy.to, Allocation::Output(_)));
        }
        for (at, output) in clusters.outputs.iter().enumerate() {
            let alias = aliases.iter().find(|alias| alias.output == at);
            let place = match alias {
                Some(alias) => Allocation::Argument(alias.argument),
                None => plan.output(output.value).unwrap(),
            };
            assert!(memory.holds(&graph, output.value, place), "output {at} is not at {place:?}");
            let state = |argument: usize| aliases.iter().any(|alias| alias.argument == argument);
            let shared = matches!(place, Allocation::Argument(argument) if state(argument));
            assert!(alias.is_some() || !shared, "output {at} shares the memory of state");
        }
    }
    for (what, count) in
        [("in place", in_place), ("copied", copied), ("saved", saved), ("given away", given_away)]
    {
        assert!(count > 50, "{what}: {count}");
    }
}
