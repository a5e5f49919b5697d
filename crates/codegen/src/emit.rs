//! Emits the kernels of a cluster.

use warpforge_fusion::cluster::{Cluster, Kind};
use warpforge_fusion::{Graph, Op};

use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::{attention, gemm, loops, unfused};

/// The kernels of a cluster. An empty result has none.
///
/// # Errors
///
/// When an operation in it has no kernel; the backend then chooses another lowering or reports it.
pub fn emit(graph: &Graph, cluster: &Cluster, options: &Options) -> Result<Emitted, Unsupported> {
    match &cluster.kind {
        Kind::Loop(body) => loops::emit(graph, cluster, body, options),
        Kind::Dot(of) => gemm::dot(graph, cluster, of, options),
        Kind::Conv(of) => gemm::conv(graph, cluster, of, options),
        Kind::Attention(of) => attention::emit(graph, cluster, of, options),
        Kind::AttentionGradient(of) => attention::emit_gradient(graph, cluster, of, options),
        Kind::Unfused(operands) => unfused::emit(graph, cluster, operands, options),
        Kind::Library(..) => Err(Unsupported::new("what a library computes")),
    }
}

/// The kernels of a cluster whose result lies over one of the values that it reads, where they differ from those of [`emit`]: an update of
/// a slice writes the slice alone.
///
/// # Errors
///
/// When there are no such kernels.
pub fn emit_in_place(graph: &Graph, cluster: &Cluster, options: &Options) -> Result<Emitted, Unsupported> {
    match (&cluster.kind, &graph.node(cluster.output).op) {
        (Kind::Unfused(operands), Op::DynamicUpdateSlice) => {
            crate::unfused::update_slice_in_place(graph, cluster, operands, options)
        }
        _ => Err(Unsupported::new("an update in place")),
    }
}
