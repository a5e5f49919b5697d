//! Kernels of clusters: created once per compilation, run many times.

// Kernels read and write memory that the memory plan has assigned to their values.
#![allow(unsafe_code)]

mod attention;
mod control_flow;
mod conv;
mod deferred_division;
mod dot;
mod epilogue;
mod fused_loop;
mod gelu;
mod indexing;
mod interface;
mod lane_function;
mod loop_lowering;
mod reference;
mod regions;
mod resample;
mod shared_weights;
mod sort;
mod unfused;
mod window;

use warpforge_fusion::cluster::{Cluster, Kind, Operand};
use warpforge_fusion::pipeline::Device;
use warpforge_fusion::{Graph, NodeId, Op};

use reference::ReferenceKernel;

pub(crate) use interface::{CompileContext, Kernel, KernelError, Result, Subprogram, ValueBuffers, aligned};
pub(crate) use shared_weights::SharedWeights;

/// Creates the kernel of a cluster.
pub(crate) fn kernel(context: &CompileContext<'_>, cluster: &Cluster) -> Result<Box<dyn Kernel>> {
    Ok(match &cluster.kind {
        Kind::Loop(body) => fused_loop::kernel(context.graph, body, cluster.output)?,
        Kind::Dot(product) => Box::new(dot::DotKernel::new(context, product, cluster.output)?),
        Kind::Conv(product) => conv::kernel(context, product, cluster.output)?,
        Kind::Attention(attention) => {
            Box::new(attention::AttentionKernel::new(context, attention, cluster.output)?)
        }
        Kind::AttentionGradient(_) | Kind::Library(..) => {
            return Err(KernelError::Unsupported(
                "the CPU has no kernel for this kind of cluster".to_owned(),
            ));
        }
        Kind::Unfused(operands) => match unfused_kernel(context, operands, cluster.output) {
            Err(error) if error.is_unsupported() => {
                let reference = ReferenceKernel::new(context, operands, cluster.output);
                Box::new(reference.ok_or(error)?)
            }
            kernel => kernel?,
        },
    })
}

/// Creates the kernel of a single operation.
fn unfused_kernel(
    context: &CompileContext<'_>,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    match &context.graph.node(output).op {
        Op::Opaque(_) => Ok(Box::new(control_flow::kernel(context, operands, output)?)),
        _ => unfused::kernel(context.graph, operands, output),
    }
}

/// Whether the image of a convolution is read with any strides.
pub(crate) fn reads_strided_image(graph: &Graph, cluster: &Cluster) -> bool {
    matches!(&cluster.kind, Kind::Conv(product) if conv::reads_strided_image(graph, product))
}

/// Whether there is a kernel for a matrix product, or for a single operation. The regions of branches and loops are planned for the
/// device.
pub(crate) fn has_kernel(graph: &Graph, cluster: &Cluster, device: &dyn Device) -> bool {
    match &cluster.kind {
        Kind::Dot(product) => dot::gemm_type(graph, product.node).is_ok(),
        Kind::Unfused(operands) => match &graph.node(cluster.output).op {
            Op::Opaque(part) => control_flow::has_kernel(part, device),
            _ => unfused::kernel(graph, operands, cluster.output).is_ok(),
        },
        _ => true,
    }
}
