//! Operations with forms that kernels exist for: scatter, parts at computed places, sort.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::{Form, OpaqueOp, Update};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::attr::ScatterDims;
use warpforge_kernels::gemm::Memory as Block;
use warpforge_kernels::movement::{
    self, Comparison, Copy, DynamicSlice, Indices, Layout, LayoutError, ScatterSpec, SortSpec,
};
use warpforge_runtime::memory_plan::results;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::steps::fold_of;
use super::{Kernel, Memory, Result};

/// The kernel of an operation that the reference would evaluate otherwise; none where the kernels have no such case.
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
        (Form::DynamicSlice, [operand, starts @ ..]) => part_of(graph, operand, starts, result(0)?),
        (Form::DynamicUpdate, [operand, update, starts @ ..]) => {
            update_of(graph, [operand, update], starts, result(0)?)
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

type Made = std::result::Result<Box<dyn Kernel>, LayoutError>;

fn element(graph: &Graph, operand: &Operand) -> ElementType {
    graph.node(operand.value).element
}

fn sizes(values: &[i64]) -> Vec<usize> {
    values.iter().map(|&value| value as usize).collect()
}

/// The copy of a whole value.
fn whole(element: ElementType, dims: &[usize]) -> std::result::Result<Copy, LayoutError> {
    let layout = Layout::row_major(dims)?;
    Copy::new(element.byte_width(), dims, &layout, &layout)
}

fn scatter(
    graph: &Graph,
    dims: &ScatterDims,
    update: Update,
    operands: [&Operand; 3],
    output: NodeId,
) -> Made {
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
            Update::Set => movement::Update::Set,
            Update::Reduce(fold) => movement::Update::Fold(fold_of(fold)),
        },
    };
    Ok(Box::new(Scattered {
        copy: whole(spec.element, &spec.operand)?,
        scatter: movement::Scatter::new(&spec)?,
        values: operands.map(|operand| operand.value),
        output,
    }))
}

struct Scattered {
    copy: Copy,
    scatter: movement::Scatter,
    /// Operand, indices, updates.
    values: [NodeId; 3],
    output: NodeId,
}

impl Kernel for Scattered {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let [operand, indices, updates] = self.values.map(|id| memory.read(id));
        let target = memory.write(self.output);
        // SAFETY: as the caller promises; both were made from the sizes of the values.
        unsafe {
            self.copy.run(memory.pool, operand, target);
            self.scatter.run(memory.pool, target, indices, updates);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "scatter".to_owned()
    }
}

/// Scalars that say where something begins.
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
    unsafe fn read(&self, memory: &Memory<'_>) -> Result<Vec<i64>> {
        let read = |&(id, element): &(NodeId, ElementType)| {
            // SAFETY: as the caller promises.
            let bytes = unsafe { std::slice::from_raw_parts(memory.read(id), element.byte_width()) };
            let scalar = Tensor::from_bytes(element, Shape::scalar(), bytes)?;
            // What is too large for a place is beyond every array.
            Ok(i64::try_from(scalar.get(0).to_i128()).unwrap_or(i64::MAX))
        };
        self.values.iter().map(read).collect()
    }
}

fn part_of(graph: &Graph, operand: &Operand, starts: &[&Operand], output: NodeId) -> Made {
    let node = graph.node(output);
    let part = DynamicSlice::read(node.element.byte_width(), &operand.view.dims, &node.dims)?;
    let starts = Starts::new(graph, starts);
    Ok(Box::new(Cut { part, starts, from: operand.value, output }))
}

struct Cut {
    part: DynamicSlice,
    starts: Starts,
    from: NodeId,
    output: NodeId,
}

impl Kernel for Cut {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        // SAFETY: as the caller promises; the part was made from the sizes of the values.
        unsafe {
            let starts = self.starts.read(memory)?;
            self.part.run(memory.pool, &starts, memory.read(self.from), memory.write(self.output));
        }
        Ok(())
    }

    fn name(&self) -> String {
        "dynamic slice".to_owned()
    }
}

fn update_of(graph: &Graph, [operand, update]: [&Operand; 2], starts: &[&Operand], output: NodeId) -> Made {
    let element = element(graph, operand);
    let (dims, sizes) = (&operand.view.dims, &update.view.dims);
    Ok(Box::new(Updated {
        copy: whole(element, dims)?,
        part: DynamicSlice::update(element.byte_width(), dims, sizes)?,
        starts: Starts::new(graph, starts),
        values: [operand.value, update.value],
        output,
    }))
}

struct Updated {
    copy: Copy,
    part: DynamicSlice,
    starts: Starts,
    /// Operand and update.
    values: [NodeId; 2],
    output: NodeId,
}

impl Kernel for Updated {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let [operand, update] = self.values.map(|id| memory.read(id));
        let target = memory.write(self.output);
        // SAFETY: as the caller promises; both were made from the sizes of the values.
        unsafe {
            let starts = self.starts.read(memory)?;
            self.copy.run(memory.pool, operand, target);
            self.part.run(memory.pool, &starts, update, target);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "dynamic update".to_owned()
    }
}

fn sort(
    graph: &Graph,
    axis: usize,
    key: usize,
    comparison: Comparison,
    operands: &[&Operand],
    results: Vec<Option<NodeId>>,
) -> Made {
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
    Ok(Box::new(Sorted {
        sort: movement::Sort::new(spec)?,
        operands: operands.iter().map(|operand| operand.value).collect(),
        results: results.into_iter().zip(widths.into_iter().map(|width| width * elements)).collect(),
    }))
}

struct Sorted {
    sort: movement::Sort,
    operands: Vec<NodeId>,
    /// What is wanted of the results, and their bytes.
    results: Vec<(Option<NodeId>, usize)>,
}

impl Kernel for Sorted {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let sources: Vec<*const u8> = self.operands.iter().map(|&id| memory.read(id)).collect();
        // A result that nobody reads has no place in the plan.
        let mut unread: Vec<Block> = Vec::new();
        let mut targets: Vec<*mut u8> = Vec::new();
        for &(id, bytes) in &self.results {
            targets.push(match id {
                Some(id) => memory.write(id),
                None => {
                    let block = Block::new(bytes)?;
                    let target = block.as_ptr();
                    unread.push(block);
                    target
                }
            });
        }
        // SAFETY: as the caller promises; the sort was made from the sizes of the values.
        unsafe { self.sort.run(memory.pool, &sources, &targets) };
        Ok(())
    }

    fn name(&self) -> String {
        "sort".to_owned()
    }
}
