//! The kernel of resampling along a dimension.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::resample::{Resample, Tap};
use warpforge_tensor::ElementType;

use super::interface::{Kernel, KernelError, Result, ValueBuffers};

/// The kernel that resamples dimension `axis` of the first operand.
pub(super) fn kernel(
    graph: &Graph,
    axis: usize,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let Some((source, vectors)) = operands.split_first() else {
        return Err(KernelError::Unsupported("an operand is missing".to_owned()));
    };
    let taps: Vec<(NodeId, NodeId)> =
        vectors.chunks_exact(2).map(|tap| (tap[0].value, tap[1].value)).collect();
    let indices: Vec<ElementType> = taps.iter().map(|&(indices, _)| graph.node(indices).element).collect();
    let node = graph.node(output);
    let plan = Resample::new(node.element, &source.view.dims, axis, node.dims[axis], &indices)?;
    Ok(Box::new(ResampleKernel { plan, source: source.value, taps, output }))
}

struct ResampleKernel {
    plan: Resample,
    source: NodeId,
    /// Indices and weights.
    taps: Vec<(NodeId, NodeId)>,
    output: NodeId,
}

impl Kernel for ResampleKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let taps: Vec<Tap> = self
            .taps
            .iter()
            .map(|&(indices, weights)| Tap { indices: buffers.read(indices), weights: buffers.read(weights) })
            .collect();
        let (source, target) = (buffers.read(self.source), buffers.write(self.output));
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe { self.plan.run(buffers.pool, source, &taps, target) };
        Ok(())
    }

    fn name(&self) -> String {
        "resample".to_owned()
    }
}
