//! Kernels of detectors' operations on regions.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId};
use warpforge_ir::calls::{self, KnownCall};
use warpforge_kernels::regions::{Nms, RoiAlign, RoiAlignSpec};

use super::interface::{Kernel, KernelError, Result, ValueBuffers};

/// The kernel of a known custom call.
pub(super) fn call(
    graph: &Graph,
    call: KnownCall,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let [first, second] = operands else {
        return Err(KernelError::Unsupported("a call without its two operands".to_owned()));
    };
    let values = [first.value, second.value];
    let (given, made) = (graph.node(values[0]), graph.node(output));
    Ok(match call {
        KnownCall::RoiAlign(align) => {
            let align = plan(graph, align, &given.dims, &made.dims, values[1])?;
            Box::new(AlignKernel { align, backward: false, values, output })
        }
        KnownCall::RoiAlignBackward(align) => {
            let align = plan(graph, align, &made.dims, &given.dims, values[1])?;
            Box::new(AlignKernel { align, backward: true, values, output })
        }
        KnownCall::Nms { iou_threshold } => {
            let nms = Nms::new(given.element, made.len(), iou_threshold)?;
            Box::new(NmsKernel { nms, values, output })
        }
    })
}

fn plan(
    graph: &Graph,
    align: calls::RoiAlign,
    features: &[usize],
    pooled: &[usize],
    regions: NodeId,
) -> Result<RoiAlign> {
    let (&[images, channels, height, width], &[count, _, rows, columns]) = (features, pooled) else {
        return Err(KernelError::Unsupported("features that are no images".to_owned()));
    };
    Ok(RoiAlign::new(RoiAlignSpec {
        element: graph.node(regions).element,
        features: [images, channels, height, width],
        regions: count,
        bins: [rows, columns],
        spatial_scale: align.spatial_scale,
        sampling_ratio: align.sampling_ratio,
        aligned: align.aligned,
    })?)
}

struct AlignKernel {
    align: RoiAlign,
    backward: bool,
    /// Features or the gradient of bins, and regions.
    values: [NodeId; 2],
    output: NodeId,
}

impl Kernel for AlignKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let [first, regions] = self.values.map(|id| buffers.read(id));
        let target = buffers.write(self.output);
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe {
            match self.backward {
                false => self.align.run(buffers.pool, first, regions, target),
                true => self.align.run_backward(buffers.pool, first, regions, target),
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        if self.backward { "roi_align_backward" } else { "roi_align" }.to_owned()
    }
}

struct NmsKernel {
    nms: Nms,
    /// Boxes and scores.
    values: [NodeId; 2],
    output: NodeId,
}

impl Kernel for NmsKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let [boxes, scores] = self.values.map(|id| buffers.read(id));
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe { self.nms.run(boxes, scores, buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "nms".to_owned()
    }
}
