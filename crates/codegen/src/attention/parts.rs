//! Attention as three clusters: a product, a loop over rows, a product.

use warpforge_fusion::cluster::{Cluster, Kind};
use warpforge_fusion::{Graph, Id};

use crate::kernel::{Argument, Emitted, Unsupported};
use crate::options::Options;

/// The clusters that an attention is made of. The first two give values that lie in no plan: the scores, and the weights
/// made of them.
#[must_use]
pub fn parts(cluster: &Cluster) -> Option<[Cluster; 3]> {
    let Kind::Attention(attention) = &cluster.kind else { return None };
    let (scores, weights) = (attention.scores.node, attention.values.operands[0].value);
    let nodes =
        |wanted: &dyn Fn(Id) -> bool| cluster.nodes.iter().copied().filter(|&id| wanted(id)).collect();
    Some([
        Cluster { kind: Kind::Dot(attention.scores.clone()), output: scores, nodes: vec![scores] },
        Cluster {
            kind: Kind::Loop(attention.weights.body.clone()),
            output: weights,
            nodes: nodes(&|id| id != scores && id <= weights),
        },
        Cluster {
            kind: Kind::Dot(attention.values.clone()),
            output: cluster.output,
            nodes: nodes(&|id| id > weights),
        },
    ])
}

/// Their kernels, with memory between them.
pub(super) fn emit(graph: &Graph, cluster: &Cluster, options: &Options) -> Result<Emitted, Unsupported> {
    let parts = parts(cluster).ok_or_else(|| Unsupported::new("attention that is none"))?;
    let between = [parts[0].output, parts[1].output];
    let mut all =
        Emitted { kernels: Vec::new(), scratch: between.map(|id| graph.node(id).bytes() as u64).to_vec() };
    for part in &parts {
        let emitted = crate::emit(graph, part, options)?;
        let first = all.scratch.len();
        all.scratch.extend(emitted.scratch);
        for mut kernel in emitted.kernels {
            for argument in &mut kernel.arguments {
                *argument = match *argument {
                    Argument::Scratch(at) => Argument::Scratch(first + at),
                    Argument::Value(id) | Argument::Output(id) if id == between[0] => Argument::Scratch(0),
                    Argument::Value(id) | Argument::Output(id) if id == between[1] => Argument::Scratch(1),
                    other => other,
                };
            }
            all.kernels.push(kernel);
        }
    }
    Ok(all)
}
