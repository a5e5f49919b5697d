//! Kernels of sorts.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::Comparator;
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::data_movement::{Comparison, LayoutError, Sort, SortSpec};

use super::interface::{Kernel, KernelError, Result, ResultBuffers, ValueBuffers};

/// The kernel of a sort by the order of one operand.
pub(super) fn sort(
    graph: &Graph,
    axis: usize,
    comparator: &Comparator,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let &Comparator::Key { key, order } = comparator else {
        return Err(KernelError::Unsupported("a sort by a function of its own".to_owned()));
    };
    let comparison = Comparison {
        descending: order.descending,
        or_equal: false,
        total: order.total,
        nan_is_largest: order.nan_is_largest,
    };
    let element = |operand: &Operand| graph.node(operand.value).element;
    let results = (0..operands.len()).map(|at| graph.result(output, at));
    let by = operands.get(key).ok_or(LayoutError::Sizes("the key is not one of the operands"))?;
    let widths: Vec<usize> = operands.iter().map(|operand| element(operand).byte_width()).collect();
    let elements: usize = by.view.dims.iter().product();
    let spec = SortSpec {
        dims: by.view.dims.clone(),
        axis,
        key: (key, element(by)),
        comparison,
        keep: None,
        operands: widths.clone(),
    };
    Ok(Box::new(SortKernel {
        sort: Sort::new(spec)?,
        operands: operands.iter().map(|operand| operand.value).collect(),
        results: results.zip(widths.into_iter().map(|width| width * elements)).collect(),
    }))
}

struct SortKernel {
    sort: Sort,
    operands: Vec<NodeId>,
    /// The results that are read, and their sizes in bytes.
    results: Vec<(Option<NodeId>, usize)>,
}

impl Kernel for SortKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let sources: Vec<*const u8> = self.operands.iter().map(|&id| buffers.read(id)).collect();
        let results = ResultBuffers::new(buffers, &self.results)?;
        // SAFETY: guaranteed by the caller; the sort was made from the sizes of the values.
        unsafe { self.sort.run(buffers.pool, &sources, &results.targets) };
        Ok(())
    }

    fn name(&self) -> String {
        "sort".to_owned()
    }
}
