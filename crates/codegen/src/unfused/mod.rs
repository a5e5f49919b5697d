//! Operations that form a cluster of their own: mostly one thread per output element.

mod concat;
mod dynamic_slice;
mod element_kernel;
mod gather;
mod merge_sort;
mod pad;
mod reduce_window;
mod regions;
mod scalar_function;
mod scatter;
mod select_and_scatter;
mod sort;
mod variadic_reduce;

use warpforge_fusion::Op;
use warpforge_fusion::cluster::Operand;

use crate::kernel::{Emitted, Request, Unsupported};
use element_kernel::{ElementKernel, UnfusedKernel};

/// The kernel of an unfused operation.
pub(crate) fn emit(request: Request<'_>, operands: &[Operand]) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, .. } = request;
    let node = graph.node(cluster.output);
    if graph.results(cluster.output).iter().all(|&id| graph.node(id).is_empty()) {
        return Ok(Emitted::default());
    }
    let kernel = UnfusedKernel { request, operands };
    match &node.op {
        Op::DynamicSlice => return dynamic_slice::slice(&kernel),
        Op::DynamicUpdateSlice => return dynamic_slice::update(&kernel),
        Op::VariadicReduce(function, axes) => return variadic_reduce::emit(&kernel, function, axes),
        Op::Scatter(dims, combiner) => return scatter::emit(&kernel, dims, combiner),
        Op::SelectAndScatter { select, window, scatter } => {
            return select_and_scatter::emit(&kernel, select, window, scatter);
        }
        Op::Call(call) => return regions::emit(&kernel, *call),
        Op::Sort { axis, comparator } => return sort::emit(&kernel, *axis, comparator),
        _ => {}
    }
    let mut element = ElementKernel::new(request, cluster.output);
    let value = match &node.op {
        Op::Concat(axis) => concat::value(&mut element, operands, *axis)?,
        Op::Pad { low, interior, .. } => pad::value(&mut element, operands, low, interior)?,
        Op::Gather(numbers, window) => gather::value(&mut element, operands, numbers, window)?,
        Op::ReduceWindow(kind, window, init) => {
            reduce_window::value(&mut element, operands, *kind, window, init)?
        }
        op => return Err(Unsupported::new(op.name())),
    };
    Ok(Emitted { kernels: vec![element.finish(&value)?], scratch: Vec::new() })
}

/// The kernel of a `dynamic_update_slice` whose result lies over its first operand.
pub(crate) fn update_slice_in_place(
    request: Request<'_>,
    operands: &[Operand],
) -> Result<Emitted, Unsupported> {
    dynamic_slice::update_in_place(&UnfusedKernel { request, operands })
}
