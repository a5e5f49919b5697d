//! Where the new contents of state go: into the memory of the old ones where nobody reads those any more, or through a copy at the
//! end of the run.

use std::collections::{HashMap, HashSet};

use warpforge_fusion::cluster::{Cluster, Clusters};
use warpforge_fusion::{Graph, NodeId, Op};

use super::{Allocation, Copy};

/// An argument that is state, by its number in the graph, and the output that is its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// The number of the argument.
    pub argument: usize,
    /// The position of the output.
    pub output: usize,
}

/// Whether the kernel of a cluster may write its result over a value that it reads: each element is read before it is written, and
/// by nobody else.
pub type InPlace<'a> = dyn Fn(&Cluster, NodeId) -> bool + 'a;

/// What becomes of the new contents.
#[derive(Default)]
pub(super) struct Updates {
    /// Values that are computed in the memory of an argument.
    pub(super) in_place: HashMap<NodeId, usize>,
    /// Values that are copied to an argument when all is computed.
    pub(super) copied: Vec<(NodeId, usize)>,
}

/// Decides for every alias. `written` has the cluster of each value, `last_read` the last cluster that reads it.
pub(super) fn decide(
    graph: &Graph,
    clusters: &Clusters,
    aliases: &[Alias],
    written: &HashMap<NodeId, usize>,
    last_read: &HashMap<NodeId, usize>,
    in_place: &InPlace<'_>,
) -> Updates {
    let new_content: HashMap<usize, usize> =
        aliases.iter().map(|alias| (alias.output, alias.argument)).collect();
    let argument_of = |id: NodeId| match graph.node(id).op {
        Op::Argument(at) => Some(at),
        _ => None,
    };
    // Arguments whose old content somebody wants when all is computed, and values that the run gives away.
    let (mut kept, mut given) = (HashSet::new(), HashSet::new());
    for (at, output) in clusters.outputs.iter().enumerate() {
        let own = new_content.get(&at);
        if own.is_none() {
            given.insert(output.value);
        }
        kept.extend(argument_of(output.value).filter(|argument| own != Some(argument)));
    }
    let nodes: HashMap<usize, NodeId> =
        graph.ids().filter_map(|id| argument_of(id).map(|argument| (argument, id))).collect();
    let mut updates = Updates::default();
    for alias in aliases {
        let Some(output) = clusters.outputs.get(alias.output) else { continue };
        let value = output.value;
        if argument_of(value) == Some(alias.argument) {
            continue;
        }
        let fits = |time: usize| {
            let Some(&old) = nodes.get(&alias.argument) else { return true };
            match last_read.get(&old) {
                Some(&last) if last == time => in_place(&clusters.clusters[time], old),
                Some(&last) => last < time,
                None => true,
            }
        };
        let free = !kept.contains(&alias.argument)
            && !given.contains(&value)
            && !updates.in_place.contains_key(&value);
        match written.get(&value) {
            Some(&time) if free && fits(time) => {
                updates.in_place.insert(value, alias.argument);
            }
            _ => updates.copied.push((value, alias.argument)),
        }
    }
    updates
}

/// Copies in an order in which none overwrites what a later one reads; `spare` gives memory for a cycle.
pub(super) fn ordered(mut copies: Vec<Copy>, mut spare: impl FnMut(usize) -> Allocation) -> Vec<Copy> {
    let mut ordered = Vec::new();
    while !copies.is_empty() {
        let harmless = copies.iter().position(|copy| copies.iter().all(|other| other.from != copy.to));
        match harmless {
            Some(at) => ordered.push(copies.swap_remove(at)),
            None => {
                let Copy { from, bytes, .. } = copies[0];
                let saved = spare(bytes);
                ordered.push(Copy { from, to: saved, bytes });
                copies.iter_mut().filter(|copy| copy.from == from).for_each(|copy| copy.from = saved);
            }
        }
    }
    ordered
}
