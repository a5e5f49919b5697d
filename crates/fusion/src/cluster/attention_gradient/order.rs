//! An order of clusters in which each comes after those whose results it reads.

use std::collections::{BTreeSet, HashMap};

use crate::cluster::Cluster;
use crate::graph::{Graph, NodeId, Op};

/// The clusters so that each comes after those that it reads from, otherwise as they were; nothing where there is no such
/// order.
pub(super) fn by_use(graph: &Graph, clusters: Vec<Cluster>) -> Option<Vec<Cluster>> {
    let mut givers: HashMap<NodeId, usize> = HashMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        givers.extend(cluster.results().into_iter().map(|id| (id, at)));
    }
    let giver = |id: NodeId| match graph.node(id).op {
        Op::Result(_) => graph.node(id).inputs.first().copied().unwrap_or(id),
        _ => id,
    };
    let mut waits = vec![0usize; clusters.len()];
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); clusters.len()];
    for (at, cluster) in clusters.iter().enumerate() {
        let before: BTreeSet<usize> =
            cluster.reads().into_iter().filter_map(|id| givers.get(&giver(id)).copied()).collect();
        waits[at] = before.len();
        before.into_iter().for_each(|first| followers[first].push(at));
    }
    let mut ready: BTreeSet<usize> = (0..clusters.len()).filter(|&at| waits[at] == 0).collect();
    let mut clusters: Vec<Option<Cluster>> = clusters.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(clusters.len());
    while let Some(at) = ready.pop_first() {
        ordered.extend(clusters[at].take());
        for &follower in &followers[at] {
            waits[follower] -= 1;
            if waits[follower] == 0 {
                ready.insert(follower);
            }
        }
    }
    (ordered.len() == clusters.len()).then_some(ordered)
}
