//! Kernels of fused loops: elementwise chains, reductions, copies.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Cluster, Load};
use warpforge_fusion::view::dense_strides;
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::data_movement::{Layout, StridedCopy};
use warpforge_kernels::fused_loop::{ColumnReduction, FusedLoop};

use super::interface::{Kernel, Result, ValueBuffers};
use super::loop_lowering::{RowColumnSplit, TileBinding, column_reduction, fused_loop};

/// The kernel of a loop.
pub(super) fn kernel(graph: &Graph, body: &Body, output: NodeId) -> Result<Box<dyn Kernel>> {
    if let Some(copy) = copy(graph, body, output)? {
        return Ok(Box::new(copy));
    }
    let (reduced, mut order): (Vec<usize>, Vec<usize>) =
        (0..body.dims.len()).partition(|&at| body.reduced[at]);
    let inputs = body.loads.iter().map(|load| load.value).collect();
    let stored = graph.node(output).element;
    if reduces_rows(body) && body.steps.last().is_some_and(|step| step.element == stored) {
        let across = [reduced.as_slice(), &order].concat();
        // Element types without a column reduction are reduced along rows.
        if let Ok(reduction) =
            column_reduction(graph, body, RowColumnSplit { order: &across, rows: reduced.len() })
        {
            return Ok(Box::new(ColumnReductionKernel {
                reduction,
                inputs,
                output,
                name: name("column reduction", body),
            }));
        }
    }
    let rows = if reduced.is_empty() { order.len().saturating_sub(1) } else { order.len() };
    order.extend(&reduced);
    let fused_loop =
        fused_loop(graph, body, RowColumnSplit { order: &order, rows }, TileBinding::default(), stored)?;
    let kind = if body.has_reductions() { "row reduction" } else { "elementwise loop" };
    let outputs = [output].into_iter().chain(body.also.iter().map(|also| also.value)).collect();
    Ok(Box::new(FusedLoopKernel { fused_loop, inputs, outputs, name: name(kind, body) }))
}

/// Whether a loop ends in its only reduction and its inputs are contiguous across the reduction, not along it.
fn reduces_rows(body: &Body) -> bool {
    let is_reduction = |step: &BodyStep| matches!(step.op, BodyOp::Reduce(_));
    let only = body.steps.iter().filter(|step| is_reduction(step)).count() == 1;
    let contiguous = |load: &Load, reduced: bool| {
        let mut strides = load.view.strides.iter().zip(&body.dims).zip(&body.reduced);
        strides.any(|((&stride, &size), &own)| own == reduced && size > 1 && stride.abs() == 1)
    };
    let empty = body.dims.contains(&0);
    !empty
        && only
        && body.steps.last().is_some_and(is_reduction)
        && body.loads.iter().any(|load| contiguous(load, false))
        && !body.loads.iter().any(|load| contiguous(load, true))
}

/// The name in profiles: the kind of loop and its number of operations.
fn name(kind: &str, body: &Body) -> String {
    let is_op = |step: &&BodyStep| !matches!(step.op, BodyOp::Load(_) | BodyOp::Constant(_));
    format!("{kind} of {} ops", body.steps.iter().filter(is_op).count())
}

struct ColumnReductionKernel {
    reduction: ColumnReduction,
    inputs: Vec<NodeId>,
    output: NodeId,
    name: String,
}

impl Kernel for ColumnReductionKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let inputs: Vec<*const u8> = self.inputs.iter().map(|&id| buffers.read(id)).collect();
        // SAFETY: guaranteed by the caller; the accesses were made from the sizes of the values.
        unsafe { self.reduction.run(buffers.pool, &inputs, &[buffers.write(self.output)]) };
        Ok(())
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

struct FusedLoopKernel {
    fused_loop: FusedLoop,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
    name: String,
}

impl Kernel for FusedLoopKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let inputs: Vec<*const u8> = self.inputs.iter().map(|&id| buffers.read(id)).collect();
        let outputs: Vec<*mut u8> = self.outputs.iter().map(|&id| buffers.write(id)).collect();
        // SAFETY: guaranteed by the caller; the accesses were made from the sizes of the values.
        unsafe { self.fused_loop.run(buffers.pool, &inputs, &outputs) };
        Ok(())
    }

    /// A tile is loaded before it is stored.
    fn updates_in_place(&self, graph: &Graph, cluster: &Cluster, value: NodeId) -> bool {
        cluster.is_elementwise_update(graph, value)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// The copy kernel of a loop that only moves elements.
fn copy(graph: &Graph, body: &Body, output: NodeId) -> Result<Option<CopyKernel>> {
    let ([step], [load]) = (body.steps.as_slice(), body.loads.as_slice()) else { return Ok(None) };
    if !matches!(step.op, BodyOp::Load(_)) || !body.output.is_dense() || load.view.offset < 0 {
        return Ok(None);
    }
    let element = graph.node(output).element;
    if graph.node(load.value).element != element {
        return Ok(None);
    }
    let size = element.byte_width();
    let source = Layout { offset: load.view.offset as usize, strides: load.view.strides.clone() };
    let target = Layout { offset: 0, strides: dense_strides(&body.dims) };
    let copy = StridedCopy::new(size, &body.dims, &source, &target)?;
    Ok(Some(CopyKernel { copy, from: load.value, to: output }))
}

struct CopyKernel {
    copy: StridedCopy,
    from: NodeId,
    to: NodeId,
}

impl Kernel for CopyKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        // SAFETY: guaranteed by the caller; the layouts were made from the sizes of the values.
        unsafe { self.copy.run(buffers.pool, buffers.read(self.from), buffers.write(self.to)) };
        Ok(())
    }

    fn name(&self) -> String {
        "copy".to_owned()
    }
}
