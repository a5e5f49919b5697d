//! Kernels of unfused operations: concatenate, pad and gather; those of windows, scatters, dynamic slices, sorts and reductions by a
//! function of their own are beside.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_kernels::data_movement::{AxisPadding, Concat, Gather, GatherSpec, Indices, Layout, Pad};

use super::interface::{Kernel, KernelError, Result, ValueBuffers};
use super::{indexing, lane_function, regions, resample, sort, window};

/// The kernel of an unfused node.
pub(super) fn kernel(graph: &Graph, operands: &[Operand], output: NodeId) -> Result<Box<dyn Kernel>> {
    let node = graph.node(output);
    let values: Vec<NodeId> = operands.iter().map(|operand| operand.value).collect();
    let size = node.element.byte_width();
    Ok(match &node.op {
        Op::Concat(axis) => {
            let inputs: Vec<(&[usize], Layout)> = operands
                .iter()
                .map(|operand| Ok((operand.view.dims.as_slice(), layout(operand)?)))
                .collect::<Result<_>>()?;
            Box::new(ConcatKernel { concat: Concat::new(size, &inputs, *axis)?, values, output })
        }
        Op::Pad { low, high, interior } => {
            let edges: Vec<AxisPadding> = low
                .iter()
                .zip(high)
                .zip(interior)
                .map(|((&low, &high), &interior)| AxisPadding {
                    low: low as i64,
                    high: high as i64,
                    interior,
                })
                .collect();
            let [source, _] = operands else {
                return Err(KernelError::Unsupported("a pad has two operands".to_owned()));
            };
            let pad = Pad::new(size, &source.view.dims, &layout(source)?, &edges)?;
            Box::new(PadKernel { pad, source: values[0], value: values[1], output })
        }
        Op::Gather(numbers, window) => {
            let dims = |at: usize| operands[at].view.dims.clone();
            let sizes = |values: &[i64]| values.iter().map(|&value| value as usize).collect::<Vec<usize>>();
            let batching = sizes(&numbers.operand_batching_dims);
            let spec = GatherSpec {
                element_size: size,
                operand: dims(0),
                indices: Indices {
                    element: graph.node(values[1]).element,
                    dims: dims(1),
                    vector_dim: numbers.index_vector_dim as usize,
                    map: sizes(&numbers.start_index_map),
                    batching: batching.into_iter().zip(sizes(&numbers.start_indices_batching_dims)).collect(),
                },
                window: window.clone(),
                collapsed: sizes(&numbers.collapsed_slice_dims),
                offset_dims: sizes(&numbers.offset_dims),
            };
            Box::new(GatherKernel {
                gather: Gather::new(&spec)?,
                operand: values[0],
                indices: values[1],
                output,
            })
        }
        Op::Resample(axis) => resample::kernel(graph, *axis, operands, output)?,
        Op::ReduceWindow(kind, window, init) => {
            window::reduce_window(graph, *kind, window, init, operands, output)?
        }
        Op::Scatter(dims, combiner) => indexing::scatter(graph, dims, combiner, operands, output)?,
        Op::DynamicSlice => indexing::dynamic_slice(graph, operands, output)?,
        Op::DynamicUpdateSlice => indexing::dynamic_update_slice(graph, operands, output)?,
        Op::Sort { axis, comparator } => sort::sort(graph, *axis, comparator, operands, output)?,
        Op::VariadicReduce(function, axes) => {
            lane_function::variadic_reduce(graph, function, axes, operands, output)?
        }
        Op::SelectAndScatter { select, window, scatter } => {
            window::select_and_scatter(graph, select, window, scatter, operands, output)?
        }
        Op::Call(call) => regions::call(graph, *call, operands, output)?,
        op => return Err(KernelError::Unsupported(format!("there is no kernel for {}", op.name()))),
    })
}

fn layout(operand: &Operand) -> Result<Layout> {
    let offset = usize::try_from(operand.view.offset);
    let offset = offset.map_err(|_| KernelError::Unsupported("a view begins before its value".to_owned()))?;
    Ok(Layout { offset, strides: operand.view.strides.clone() })
}

struct ConcatKernel {
    concat: Concat,
    values: Vec<NodeId>,
    output: NodeId,
}

impl Kernel for ConcatKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let sources: Vec<*const u8> = self.values.iter().map(|&id| buffers.read(id)).collect();
        // SAFETY: guaranteed by the caller; the layouts were made from the sizes of the values.
        unsafe { self.concat.run(buffers.pool, &sources, buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "concatenate".to_owned()
    }
}

struct PadKernel {
    pad: Pad,
    source: NodeId,
    value: NodeId,
    output: NodeId,
}

impl Kernel for PadKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let (source, value) = (buffers.read(self.source), buffers.read(self.value));
        // SAFETY: guaranteed by the caller; the layouts were made from the sizes of the values.
        unsafe { self.pad.run(buffers.pool, source, value, buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "pad".to_owned()
    }
}

struct GatherKernel {
    gather: Gather,
    operand: NodeId,
    indices: NodeId,
    output: NodeId,
}

impl Kernel for GatherKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let (operand, indices) = (buffers.read(self.operand), buffers.read(self.indices));
        // SAFETY: guaranteed by the caller; the plan was made from the sizes of the values.
        unsafe { self.gather.run(buffers.pool, operand, indices, buffers.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "gather".to_owned()
    }
}
