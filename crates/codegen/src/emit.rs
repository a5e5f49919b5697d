//! From a cluster to its kernels.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Kind};

use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::{attention, loops, product, single};

/// The kernels of a cluster. A cluster whose result has no elements has none.
///
/// # Errors
///
/// When something in it has no kernel; the backend then has another way, or says so.
pub fn emit(graph: &Graph, cluster: &Cluster, options: &Options) -> Result<Emitted, Unsupported> {
    match &cluster.kind {
        Kind::Loop(body) => loops::emit(graph, cluster, body, options),
        Kind::Dot(of) => product::dot(graph, cluster, of, options),
        Kind::Conv(of) => product::conv(graph, cluster, of, options),
        Kind::Attention(of) => attention::emit(graph, cluster, of, options),
        Kind::AttentionGradient(of) => attention::emit_backward(graph, cluster, of, options),
        Kind::Unfused(operands) => single::emit(graph, cluster, operands, options),
        Kind::Library(..) => Err(Unsupported::new("what a library computes")),
    }
}
