//! Kernels of windows: pooling, cumulative reductions, and the gradient of pooling.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::{Combiner, ReduceKind, ScalarFunction, Window};
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::window::{Cumulative, ReduceWindow, SelectAndScatter, WindowAxis};
use warpforge_tensor::Tensor;

use super::indexing::update;
use super::interface::{Kernel, KernelError, Result, ValueBuffers};
use super::lane_function::lane_function;
use super::loop_lowering::reduce_op;

/// The windows along each dimension.
fn window_axes(window: &Window) -> Vec<WindowAxis> {
    (0..window.dims.len())
        .map(|at| WindowAxis {
            size: window.dims[at],
            stride: window.strides[at],
            low: window.padding[at].0 as i64,
            high: window.padding[at].1 as i64,
            dilation: window.window_dilation[at],
            base_dilation: window.base_dilation[at],
        })
        .collect()
}

/// The kernel of a reduction of windows.
pub(super) fn reduce_window(
    graph: &Graph,
    kind: ReduceKind,
    window: &Window,
    init: &Tensor,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let (element, input) = (graph.node(output).element, operands[0].value);
    let axes = window_axes(window);
    let dims = &operands[0].view.dims;
    if let Some((axis, reverse)) = cumulative_axis(dims, window)
        && let Ok(cumulative) = Cumulative::new(element, reduce_op(kind), dims, axis, init.bytes(), reverse)
    {
        return Ok(Box::new(CumulativeKernel { cumulative, input, output }));
    }
    let windows = ReduceWindow::new(element, reduce_op(kind), dims, &axes, init.bytes())?;
    Ok(Box::new(ReduceWindowKernel { windows, input, output }))
}

/// The axis and direction of a cumulative reduction, if the windows are those of one.
fn cumulative_axis(dims: &[usize], window: &Window) -> Option<(usize, bool)> {
    let plain = |values: &[usize]| values.iter().all(|&value| value == 1);
    if !plain(&window.strides) || !plain(&window.base_dilation) || !plain(&window.window_dilation) {
        return None;
    }
    let axis = window.dims.iter().position(|&size| size != 1)?;
    let others = (0..dims.len()).filter(|&at| at != axis);
    let size = dims[axis];
    let alone = others.into_iter().all(|at| window.dims[at] == 1 && window.padding[at] == (0, 0));
    let beyond = size.checked_sub(1)? as isize;
    match window.padding[axis] {
        (low, 0) if alone && window.dims[axis] == size && low == beyond => Some((axis, false)),
        (0, high) if alone && window.dims[axis] == size && high == beyond => Some((axis, true)),
        _ => None,
    }
}

struct CumulativeKernel {
    cumulative: Cumulative,
    input: NodeId,
    output: NodeId,
}

impl Kernel for CumulativeKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe { self.cumulative.run(buffers.pool, buffers.read(self.input), buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "cumulative reduction".to_owned()
    }
}

struct ReduceWindowKernel {
    windows: ReduceWindow,
    input: NodeId,
    output: NodeId,
}

impl Kernel for ReduceWindowKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe { self.windows.run(buffers.pool, buffers.read(self.input), buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "reduce_window".to_owned()
    }
}

/// The kernel of the gradient of pooling.
pub(super) fn select_and_scatter(
    graph: &Graph,
    select: &ScalarFunction,
    window: &Window,
    scatter: &Combiner,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let [operand, source, init] = operands else {
        return Err(KernelError::Unsupported("an operand is missing".to_owned()));
    };
    let result = graph.node(output).element;
    if operands.iter().any(|operand| graph.node(operand.value).element != result) {
        return Err(KernelError::Unsupported("a select_and_scatter of several types".to_owned()));
    }
    let (dims, counts) = (&operand.view.dims, &source.view.dims);
    let (axes, select) = (window_axes(window), lane_function(select)?);
    Ok(Box::new(SelectAndScatterKernel {
        plan: SelectAndScatter::new(result, dims, counts, &axes, &select, update(scatter)?)?,
        values: [operand.value, source.value, init.value],
        output,
    }))
}

struct SelectAndScatterKernel {
    plan: SelectAndScatter,
    /// Operand, source, initial value.
    values: [NodeId; 3],
    output: NodeId,
}

impl Kernel for SelectAndScatterKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let [operand, source, init] = self.values.map(|id| buffers.read(id));
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe { self.plan.run(buffers.pool, operand, source, init, buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "select_and_scatter".to_owned()
    }
}
