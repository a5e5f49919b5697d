//! Joins elementwise loops over the same elements into one that gives several values, where one reads what the other gives or both read
//! the same, as an optimizer's updates of a parameter and its moments do.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::body::{Body, BodyOp, BodyStep, Stored};
use super::kind::{Cluster, Clusters, Kind};
use crate::graph::{Graph, NodeId, Op};
use crate::view::View;

/// Most values that a joined loop gives.
const MOST_RESULTS: usize = 4;

/// Most values that a joined loop reads.
const MOST_LOADS: usize = 12;

/// Most steps of a joined loop.
const MOST_STEPS: usize = 128;

/// Most clusters before which a value is computed by being joined, unless the function gives it: until it is read it takes memory.
const MOST_EARLIER: usize = 64;

/// Joins loops, the later one in the place of the earlier one. What depends on constants only is left alone: it is computed once.
pub(crate) fn join_loops(graph: &Graph, Clusters { clusters, outputs }: &mut Clusters) {
    let constant = of_constants(graph, clusters);
    let mut givers: HashMap<NodeId, usize> = HashMap::new();
    // The loops so far that read a value, with as many elements as they give.
    let mut readers: HashMap<NodeId, BTreeSet<usize>> = HashMap::new();
    for at in 0..clusters.len() {
        let reads: Vec<NodeId> = clusters[at].reads().into_iter().map(|id| giver(graph, id)).collect();
        let mut place = at;
        if !constant[at] && is_joinable(graph, &clusters[at]) {
            let ready = reads.iter().filter_map(|id| givers.get(id)).copied().max().unwrap_or(0);
            let is_output = outputs.iter().any(|output| output.value == clusters[at].output);
            let first = if is_output { ready } else { ready.max(at.saturating_sub(MOST_EARLIER)) };
            let elements = graph.node(clusters[at].output).len();
            let whole: Vec<NodeId> =
                clusters[at].reads().into_iter().filter(|&id| graph.node(id).len() == elements).collect();
            let others = whole.iter().filter_map(|id| readers.get(id)).flatten().copied();
            let partners: BTreeSet<usize> =
                others.chain([ready]).filter(|&partner| partner >= first && partner < at).collect();
            for partner in partners.into_iter().rev() {
                if constant[partner] || !is_joinable(graph, &clusters[partner]) {
                    continue;
                }
                if let Some(joined) = joined(&clusters[partner], &clusters[at]) {
                    clusters[partner] = joined;
                    clusters[at].nodes.clear();
                    place = partner;
                    break;
                }
            }
            for id in whole {
                readers.entry(id).or_default().insert(place);
            }
        }
        givers.extend(clusters[place].results().into_iter().map(|id| (id, place)));
    }
    clusters.retain(|cluster| !cluster.nodes.is_empty());
}

/// The node whose cluster gives a value.
fn giver(graph: &Graph, id: NodeId) -> NodeId {
    match graph.node(id).op {
        Op::Result(_) => graph.node(id).inputs.first().copied().unwrap_or(id),
        _ => id,
    }
}

/// For each cluster, whether it depends on constants only.
fn of_constants(graph: &Graph, clusters: &[Cluster]) -> Vec<bool> {
    let mut known: HashSet<NodeId> = HashSet::new();
    let mut constant = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        let is_known = |id: &NodeId| graph.constant(*id).is_some() || known.contains(&giver(graph, *id));
        let own = cluster.reads().iter().all(is_known);
        if own {
            known.extend(cluster.results());
        }
        constant.push(own);
    }
    constant
}

/// Whether a cluster is a loop over the elements of its result, in their order, that reads in that order too.
pub(super) fn is_joinable(graph: &Graph, cluster: &Cluster) -> bool {
    let Kind::Loop(body) = &cluster.kind else { return false };
    let in_order = |view: &View| {
        let last = view.dims.iter().zip(&view.strides).rev().find(|(dim, _)| **dim > 1);
        last.is_none_or(|(_, &stride)| stride == 0 || stride == 1)
    };
    !body.has_reductions()
        && !body.output.is_empty()
        && body.is_whole(graph, cluster.output)
        && body.loads.iter().all(|load| in_order(&load.view))
}

/// Both loops as one, where that saves reading a value.
fn joined(first: &Cluster, second: &Cluster) -> Option<Cluster> {
    let (Kind::Loop(one), Kind::Loop(other)) = (&first.kind, &second.kind) else { return None };
    let other = match one.dims == other.dims {
        true => other.clone(),
        false if one.output.len() == other.output.len() => other.reshaped(&one.dims)?,
        false => return None,
    };
    if one.output != other.output {
        return None;
    }
    let Appended { body, saves, shares } = appended(first, one, &other)?;
    (saves || shares).then(|| Cluster {
        kind: Kind::Loop(body),
        output: second.output,
        nodes: nodes_of(first, second),
    })
}

/// The nodes of two clusters, in order.
pub(super) fn nodes_of(first: &Cluster, second: &Cluster) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = first.nodes.iter().chain(&second.nodes).copied().collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// A loop with the steps of another after its own.
pub(super) struct Appended {
    pub(super) body: Body,
    /// Whether the second loop reads what the first one gives.
    pub(super) saves: bool,
    /// Whether both read a value whole.
    pub(super) shares: bool,
}

/// The loop of a cluster with the steps of another over the same domain; the first loop's result is one of those that it gives. None where it
/// would be too large.
pub(super) fn appended(first: &Cluster, one: &Body, other: &Body) -> Option<Appended> {
    let mut stored = one.also.clone();
    stored.push(Stored { value: first.output, step: one.steps.len().checked_sub(1)? });
    let mut body = one.clone();
    let (mut saves, mut shares) = (false, false);
    // The step that already has a load of the second loop, or the load's new number.
    let mut loads = Vec::with_capacity(other.loads.len());
    for load in &other.loads {
        if let Some(given) = stored.iter().find(|given| given.value == load.value) {
            // Elements at other places are not known yet.
            if load.view != one.output {
                return None;
            }
            saves = true;
            loads.push(Source::Step(given.step));
            continue;
        }
        let known = body.loads.iter().position(|known| known.value == load.value && known.view == load.view);
        shares |= known.is_some() && is_whole(&load.view);
        loads.push(Source::Load(known.unwrap_or(body.loads.len())));
        if known.is_none() {
            body.loads.push(load.clone());
        }
    }
    let mut moved = Vec::with_capacity(other.steps.len());
    for step in &other.steps {
        let op = match &step.op {
            BodyOp::Load(load) => match loads[*load] {
                Source::Step(step) => {
                    moved.push(step);
                    continue;
                }
                Source::Load(load) => {
                    let known =
                        body.steps.iter().position(|step| matches!(step.op, BodyOp::Load(at) if at == load));
                    if let Some(known) = known {
                        moved.push(known);
                        continue;
                    }
                    BodyOp::Load(load)
                }
            },
            op => op.clone(),
        };
        moved.push(body.steps.len());
        let inputs = step.inputs.iter().map(|&input| moved[input]).collect();
        body.steps.push(BodyStep { op, inputs, element: step.element });
    }
    // The result of the second loop is the last step's value, unless it is a value of the first as it is.
    let is_last = moved.last() == body.steps.len().checked_sub(1).as_ref();
    body.also = stored;
    body.output = other.output.clone();
    let fits =
        body.also.len() < MOST_RESULTS && body.loads.len() <= MOST_LOADS && body.steps.len() <= MOST_STEPS;
    (is_last && fits).then_some(Appended { body, saves, shares })
}

/// What a load becomes in a joined loop.
#[derive(Clone, Copy)]
enum Source {
    Load(usize),
    Step(usize),
}

/// Whether a view has another element at every index.
fn is_whole(view: &View) -> bool {
    view.dims.iter().zip(&view.strides).all(|(&dim, &stride)| dim == 1 || stride != 0)
}
