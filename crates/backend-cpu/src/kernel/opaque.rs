//! Kernels of opaque operations: scatter, dynamic slices and sort.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::{Form, OpaqueOp, Update};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::attr::ScatterDims;
use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_kernels::data_movement::{
    self, Comparison, DynamicSlice, Indices, Layout, LayoutError, ScatterSpec, SortSpec, StridedCopy,
};
use warpforge_runtime::memory_plan::results;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::interface::{Kernel, Result, ValueBuffers};
use super::loop_lowering::reduce_op;

/// The kernel of an opaque operation; none where the operation falls back to the reference.
pub(super) fn kernel(
    graph: &Graph,
    part: &OpaqueOp,
    inputs: &[Operand],
    node: NodeId,
) -> Option<Box<dyn Kernel>> {
    let operands: Vec<&Operand> = part.operands.iter().map(|&at| inputs.get(at)).collect::<Option<_>>()?;
    let given = results(graph, node);
    let result = |wanted: usize| {
        given.iter().copied().find(|id| matches!(graph.node(*id).op, Op::Result(at) if at == wanted))
    };
    let made = match (part.form.as_ref()?, operands.as_slice()) {
        (Form::Scatter(dims, update), &[operand, indices, updates]) => {
            scatter(graph, dims, *update, [operand, indices, updates], result(0)?)
        }
        (Form::DynamicSlice, [operand, starts @ ..]) => dynamic_slice(graph, operand, starts, result(0)?),
        (Form::DynamicUpdate, [operand, update, starts @ ..]) => {
            dynamic_update_slice(graph, [operand, update], starts, result(0)?)
        }
        (Form::Sort { axis, key, order }, operands) => {
            let comparison = Comparison {
                descending: order.descending,
                or_equal: false,
                total: order.total,
                nan_is_largest: order.nan_is_largest,
            };
            let results = (0..operands.len()).map(result).collect();
            sort(graph, *axis, *key, comparison, operands, results)
        }
        _ => return None,
    };
    made.ok()
}

type KernelResult = std::result::Result<Box<dyn Kernel>, LayoutError>;

fn element(graph: &Graph, operand: &Operand) -> ElementType {
    graph.node(operand.value).element
}

fn sizes(values: &[i64]) -> Vec<usize> {
    values.iter().map(|&value| value as usize).collect()
}

/// The copy of a dense value.
fn dense_copy(element: ElementType, dims: &[usize]) -> std::result::Result<StridedCopy, LayoutError> {
    let layout = Layout::row_major(dims)?;
    StridedCopy::new(element.byte_width(), dims, &layout, &layout)
}

fn scatter(
    graph: &Graph,
    dims: &ScatterDims,
    update: Update,
    operands: [&Operand; 3],
    output: NodeId,
) -> KernelResult {
    let [operand, indices, updates] = operands;
    let batching = sizes(&dims.input_batching_dims);
    let spec = ScatterSpec {
        element: element(graph, operand),
        operand: operand.view.dims.clone(),
        indices: Indices {
            element: element(graph, indices),
            dims: indices.view.dims.clone(),
            vector_dim: dims.index_vector_dim as usize,
            map: sizes(&dims.scatter_dims_to_operand_dims),
            batching: batching.into_iter().zip(sizes(&dims.scatter_indices_batching_dims)).collect(),
        },
        updates: updates.view.dims.clone(),
        update_window_dims: sizes(&dims.update_window_dims),
        inserted: sizes(&dims.inserted_window_dims),
        update: match update {
            Update::Set => data_movement::Update::Set,
            Update::Reduce(fold) => data_movement::Update::Reduce(reduce_op(fold)),
        },
    };
    Ok(Box::new(ScatterKernel {
        copy: dense_copy(spec.element, &spec.operand)?,
        scatter: data_movement::Scatter::new(&spec)?,
        values: operands.map(|operand| operand.value),
        output,
    }))
}

struct ScatterKernel {
    copy: StridedCopy,
    scatter: data_movement::Scatter,
    /// Operand, indices, updates.
    values: [NodeId; 3],
    output: NodeId,
}

impl Kernel for ScatterKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let [operand, indices, updates] = self.values.map(|id| buffers.read(id));
        let target = buffers.write(self.output);
        // SAFETY: guaranteed by the caller; both were made from the sizes of the values.
        unsafe {
            self.copy.run(buffers.pool, operand, target);
            self.scatter.run(buffers.pool, target, indices, updates);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "scatter".to_owned()
    }
}

/// Scalar start indices.
struct Starts {
    values: Vec<(NodeId, ElementType)>,
}

impl Starts {
    fn new(graph: &Graph, starts: &[&Operand]) -> Self {
        Self { values: starts.iter().map(|start| (start.value, element(graph, start))).collect() }
    }

    /// # Safety
    ///
    /// The values may be read.
    unsafe fn read(&self, buffers: &ValueBuffers<'_>) -> Result<Vec<i64>> {
        let read = |&(id, element): &(NodeId, ElementType)| {
            // SAFETY: guaranteed by the caller.
            let bytes = unsafe { std::slice::from_raw_parts(buffers.read(id), element.byte_width()) };
            let scalar = Tensor::from_bytes(element, Shape::scalar(), bytes)?;
            // Indices that overflow are beyond every array.
            Ok(i64::try_from(scalar.get(0).to_i128()).unwrap_or(i64::MAX))
        };
        self.values.iter().map(read).collect()
    }
}

fn dynamic_slice(graph: &Graph, operand: &Operand, starts: &[&Operand], output: NodeId) -> KernelResult {
    let node = graph.node(output);
    let part = DynamicSlice::read(node.element.byte_width(), &operand.view.dims, &node.dims)?;
    let starts = Starts::new(graph, starts);
    Ok(Box::new(DynamicSliceKernel { part, starts, from: operand.value, output }))
}

struct DynamicSliceKernel {
    part: DynamicSlice,
    starts: Starts,
    from: NodeId,
    output: NodeId,
}

impl Kernel for DynamicSliceKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        // SAFETY: guaranteed by the caller; the part was made from the sizes of the values.
        unsafe {
            let starts = self.starts.read(buffers)?;
            self.part.run(buffers.pool, &starts, buffers.read(self.from), buffers.write(self.output));
        }
        Ok(())
    }

    fn name(&self) -> String {
        "dynamic slice".to_owned()
    }
}

fn dynamic_update_slice(
    graph: &Graph,
    [operand, update]: [&Operand; 2],
    starts: &[&Operand],
    output: NodeId,
) -> KernelResult {
    let element = element(graph, operand);
    let (dims, sizes) = (&operand.view.dims, &update.view.dims);
    Ok(Box::new(DynamicUpdateSliceKernel {
        copy: dense_copy(element, dims)?,
        part: DynamicSlice::update(element.byte_width(), dims, sizes)?,
        starts: Starts::new(graph, starts),
        values: [operand.value, update.value],
        output,
    }))
}

struct DynamicUpdateSliceKernel {
    copy: StridedCopy,
    part: DynamicSlice,
    starts: Starts,
    /// Operand and update.
    values: [NodeId; 2],
    output: NodeId,
}

impl Kernel for DynamicUpdateSliceKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let [operand, update] = self.values.map(|id| buffers.read(id));
        let target = buffers.write(self.output);
        // SAFETY: guaranteed by the caller; both were made from the sizes of the values.
        unsafe {
            let starts = self.starts.read(buffers)?;
            self.copy.run(buffers.pool, operand, target);
            self.part.run(buffers.pool, &starts, update, target);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "dynamic update slice".to_owned()
    }
}

fn sort(
    graph: &Graph,
    axis: usize,
    key: usize,
    comparison: Comparison,
    operands: &[&Operand],
    results: Vec<Option<NodeId>>,
) -> KernelResult {
    let by = operands.get(key).ok_or(LayoutError::Sizes("the key is not one of the operands"))?;
    let widths: Vec<usize> = operands.iter().map(|operand| element(graph, operand).byte_width()).collect();
    let elements: usize = by.view.dims.iter().product();
    let spec = SortSpec {
        dims: by.view.dims.clone(),
        axis,
        key: (key, element(graph, by)),
        comparison,
        keep: None,
        operands: widths.clone(),
    };
    Ok(Box::new(SortKernel {
        sort: data_movement::Sort::new(spec)?,
        operands: operands.iter().map(|operand| operand.value).collect(),
        results: results.into_iter().zip(widths.into_iter().map(|width| width * elements)).collect(),
    }))
}

struct SortKernel {
    sort: data_movement::Sort,
    operands: Vec<NodeId>,
    /// The results that are read, and their sizes in bytes.
    results: Vec<(Option<NodeId>, usize)>,
}

impl Kernel for SortKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let sources: Vec<*const u8> = self.operands.iter().map(|&id| buffers.read(id)).collect();
        // A result that is not read has no allocation in the memory plan.
        let mut unread: Vec<AlignedBuffer> = Vec::new();
        let mut targets: Vec<*mut u8> = Vec::new();
        for &(id, bytes) in &self.results {
            targets.push(match id {
                Some(id) => buffers.write(id),
                None => {
                    let buffer = AlignedBuffer::new(bytes)?;
                    let target = buffer.as_ptr();
                    unread.push(buffer);
                    target
                }
            });
        }
        // SAFETY: guaranteed by the caller; the sort was made from the sizes of the values.
        unsafe { self.sort.run(buffers.pool, &sources, &targets) };
        Ok(())
    }

    fn name(&self) -> String {
        "sort".to_owned()
    }
}
