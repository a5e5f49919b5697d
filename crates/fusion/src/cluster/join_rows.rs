//! Joins a loop that finds one number of each row with the loop that uses it on the row's elements, where others use the number as well: a
//! scale that values are rounded by and that their product is multiplied by, or a statistic that the backward pass takes. The row is then read
//! once.

use std::collections::HashMap;

use super::body::Body;
use super::join_loops::{Appended, appended, is_joinable, nodes_of};
use super::kind::{Cluster, Clusters, Kind};
use super::operand::single_stride;
use crate::graph::{Graph, NodeId};

/// The longest row that is worth it however few rows there are, and how many rows make longer ones worth it.
const SHORT_ROW: usize = 1 << 14;
const MANY_ROWS: usize = 256;

/// Joins loops with those after them, which take the place of both.
pub(crate) fn join_rows(graph: &Graph, Clusters { clusters, .. }: &mut Clusters) {
    let mut givers: HashMap<NodeId, usize> = HashMap::new();
    for at in 0..clusters.len() {
        for id in clusters[at].reads() {
            // The first loop that reads a number: it is not needed before.
            let Some(first) = givers.remove(&id) else { continue };
            if let Some(joined) = joined(graph, &clusters[first], &clusters[at]) {
                clusters[first].nodes.clear();
                clusters[at] = joined;
                break;
            }
        }
        if is_of_rows(graph, &clusters[at]) {
            givers.insert(clusters[at].output, at);
        }
    }
    clusters.retain(|cluster| !cluster.nodes.is_empty());
}

/// Whether a loop gives one number of each of its rows, in their order.
fn is_of_rows(graph: &Graph, cluster: &Cluster) -> bool {
    let Kind::Loop(body) = &cluster.kind else { return false };
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..body.dims.len()).partition(|&at| body.reduced[at]);
    let rows: usize = kept.iter().map(|&at| body.dims[at]).product();
    let length: usize = reduced.iter().map(|&at| body.dims[at]).product();
    let gives_rows = reduced.iter().all(|&at| body.output.strides[at] == 0)
        && body.output.offset == 0
        && (rows == 1 || single_stride(&body.output, &kept) == Some(1))
        && graph.node(cluster.output).len() == rows;
    // Columns are reduced in another order than they are used in.
    let last = (0..body.dims.len()).rev().find(|&at| body.dims[at] > 1);
    let along_rows = last.is_some_and(|at| body.reduced[at]);
    let pays = length <= SHORT_ROW || rows >= MANY_ROWS;
    body.has_reductions() && body.also.is_empty() && gives_rows && along_rows && pays
}

fn joined(graph: &Graph, first: &Cluster, second: &Cluster) -> Option<Cluster> {
    let (Kind::Loop(one), Kind::Loop(other)) = (&first.kind, &second.kind) else { return None };
    if !is_joinable(graph, second) || !other.also.is_empty() {
        return None;
    }
    let other: Body = if one.dims == other.dims { other.clone() } else { other.reshaped(&one.dims)? };
    let Appended { body, saves, shares } = appended(first, one, &other)?;
    let nodes = nodes_of(first, second);
    (saves && shares).then(|| Cluster { kind: Kind::Loop(body), output: second.output, nodes })
}
