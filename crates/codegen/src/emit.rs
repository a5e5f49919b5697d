//! Emits the kernels of a cluster.

use warpforge_fusion::cluster::{Cluster, Kind};
use warpforge_fusion::{Graph, Op};

use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::Options;
use crate::{attention, gemm, loops, unfused};

/// The kernels of a cluster. An empty result has none.
///
/// # Errors
///
/// When an operation in it has no kernel; the backend then chooses another lowering or reports it.
pub fn emit(graph: &Graph, cluster: &Cluster, options: &Options) -> Result<Emitted, Unsupported> {
    let request = Request { graph, cluster, options };
    match &cluster.kind {
        Kind::Loop(body) => loops::emit(request, body),
        Kind::Dot(of) => gemm::dot(request, of),
        Kind::Conv(of) => gemm::conv(request, of),
        Kind::Attention(of) => attention::emit(request, of),
        Kind::AttentionGradient(of) => attention::emit_gradient(request, of),
        Kind::Unfused(operands) => unfused::emit(request, operands),
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
    let request = Request { graph, cluster, options };
    match (&cluster.kind, &graph.node(cluster.output).op) {
        (Kind::Unfused(operands), Op::DynamicUpdateSlice) => {
            crate::unfused::update_slice_in_place(request, operands)
        }
        _ => Err(Unsupported::new("an update in place")),
    }
}
