//! Kernels of scatters and dynamic slices.

use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_fusion::graph::Combiner;
use warpforge_fusion::{Graph, NodeId};
use warpforge_ir::attr::ScatterDims;
use warpforge_kernels::data_movement::{
    self, DynamicSlice, Indices, Layout, LayoutError, ScatterSpec, StridedCopy, Update,
};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::interface::{Kernel, KernelError, Result, ValueBuffers};
use super::loop_lowering::reduce_op;

fn missing() -> KernelError {
    KernelError::Unsupported("an operand is missing".to_owned())
}

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

/// What becomes of an element that is there and another.
pub(super) fn update(combiner: &Combiner) -> Result<Update> {
    match combiner {
        Combiner::Replace => Ok(Update::Set),
        Combiner::Reduce(kind) => Ok(Update::Reduce(reduce_op(*kind))),
        Combiner::Function(_) => {
            Err(KernelError::Unsupported("a scatter by a function of its own".to_owned()))
        }
    }
}

pub(super) fn scatter(
    graph: &Graph,
    dims: &ScatterDims,
    combiner: &Combiner,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let [operand, indices, updates] = operands else { return Err(missing()) };
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
        update: update(combiner)?,
    };
    Ok(Box::new(ScatterKernel {
        copy: dense_copy(spec.element, &spec.operand)?,
        scatter: data_movement::Scatter::new(&spec)?,
        values: [operand.value, indices.value, updates.value],
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
            if operand != target.cast_const() {
                self.copy.run(buffers.pool, operand, target);
            }
            self.scatter.run(buffers.pool, target, indices, updates);
        }
        Ok(())
    }

    fn updates_in_place(&self, _: &Graph, _: &Cluster, value: NodeId) -> bool {
        let [operand, indices, updates] = self.values;
        value == operand && value != indices && value != updates
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
    fn new(graph: &Graph, starts: &[Operand]) -> Self {
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

pub(super) fn dynamic_slice(graph: &Graph, operands: &[Operand], output: NodeId) -> Result<Box<dyn Kernel>> {
    let [operand, starts @ ..] = operands else { return Err(missing()) };
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

pub(super) fn dynamic_update_slice(
    graph: &Graph,
    operands: &[Operand],
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let [operand, update, starts @ ..] = operands else { return Err(missing()) };
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
            if operand != target.cast_const() {
                self.copy.run(buffers.pool, operand, target);
            }
            self.part.run(buffers.pool, &starts, update, target);
        }
        Ok(())
    }

    fn updates_in_place(&self, _: &Graph, _: &Cluster, value: NodeId) -> bool {
        let [operand, update] = self.values;
        value == operand && value != update && self.starts.values.iter().all(|&(start, _)| start != value)
    }

    fn name(&self) -> String {
        "dynamic update slice".to_owned()
    }
}
