//! Dot products: GEMMs and batched GEMMs.

use std::ops::Range;

use warpforge_fusion::cluster::{Contraction, single_stride};
use warpforge_fusion::precision::quantize::QuantizedWeights;
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_kernels::gemm::{
    BatchItem, ComputeType, Gemm, GroupedRhs, Operand, PackedRhs, Rhs, Shape, WeightType,
};
use warpforge_kernels::output_block::OutputBlock;
use warpforge_kernels::shared_ptr::SharedPtr;
use warpforge_tensor::{ElementType, FloatType, IntType};

use super::epilogue::{EpilogueLoop, only_rounds, store};
use super::interface::{CompileContext, Kernel, KernelError, Result, ValueBuffers, aligned};
use super::shared_weights::{Reading, Shared};

/// The layout of one operand of a GEMM.
pub(super) struct MatrixOperand {
    pub(super) value: NodeId,
    pub(super) element: ElementType,
    offset: usize,
    row_stride: usize,
    column_stride: usize,
    /// Offset of each batch element, in elements.
    batches: Vec<usize>,
}

impl MatrixOperand {
    /// The operand of one GEMM of a batch.
    ///
    /// # Safety
    ///
    /// The address of the value is valid.
    pub(super) unsafe fn at(&self, buffers: &ValueBuffers<'_>, batch: usize) -> Operand {
        // SAFETY: guaranteed by the caller; the offset is inside the value.
        let data = unsafe { buffers.read(self.value).add(self.offset_of(batch)) };
        self.operand(data)
    }

    /// The layout of the operand, without data.
    pub(super) fn layout(&self) -> Operand {
        self.operand(std::ptr::null())
    }

    fn offset_of(&self, batch: usize) -> usize {
        (self.offset + self.batches[batch]) * self.element.byte_width()
    }

    /// What a GEMM of a batch reads of a constant.
    fn reading(&self, batch: usize, shape: Shape) -> Reading {
        Reading {
            value: self.value,
            offset: (self.offset + self.batches[batch]) as isize,
            sizes: vec![shape.k, shape.n],
            strides: vec![self.row_stride as isize, self.column_stride as isize],
        }
    }

    fn operand(&self, data: *const u8) -> Operand {
        Operand {
            data,
            element: self.element,
            row_stride: self.row_stride,
            column_stride: self.column_stride,
        }
    }
}

/// Sizes and operands of a (batched) GEMM.
pub(super) struct DotGeometry {
    pub(super) batch: usize,
    pub(super) shape: Shape,
    pub(super) lhs: MatrixOperand,
    pub(super) rhs: MatrixOperand,
    /// The type of the elements that are multiplied.
    pub(super) element: ElementType,
}

impl DotGeometry {
    pub(super) fn new(graph: &Graph, product: &Contraction) -> Result<Self> {
        let Op::Dot(dot) = &graph.node(product.node).op else {
            return Err(KernelError::Unsupported("not a dot product".to_owned()));
        };
        let [lhs, rhs] = &product.operands;
        let free = |view: &View, batch: &[usize], contract: &[usize]| -> Vec<usize> {
            (0..view.dims.len()).filter(|at| !batch.contains(at) && !contract.contains(at)).collect()
        };
        let (rows, columns) = (
            free(&lhs.view, &dot.lhs_batch, &dot.lhs_contract),
            free(&rhs.view, &dot.rhs_batch, &dot.rhs_contract),
        );
        let size = |view: &View, dims: &[usize]| -> usize { dims.iter().map(|&at| view.dims[at]).product() };
        let shape = Shape {
            m: size(&lhs.view, &rows),
            n: size(&rhs.view, &columns),
            k: size(&lhs.view, &dot.lhs_contract),
        };
        let batch = size(&lhs.view, &dot.lhs_batch);
        let element = graph.node(graph.node(product.node).inputs[0]).element;
        Ok(Self {
            element,
            batch,
            shape,
            lhs: matrix_operand(graph, lhs, &dot.lhs_batch, &rows, &dot.lhs_contract)?,
            rhs: matrix_operand(graph, rhs, &dot.rhs_batch, &dot.rhs_contract, &columns)?,
        })
    }

    /// Whether each `count` products in a row have the same right-hand operand.
    pub(super) fn shares_rhs(&self, count: usize) -> bool {
        self.rhs.batches.chunks(count).all(|offsets| offsets.iter().all(|offset| *offset == offsets[0]))
    }

    /// The stride of the rows of each `count` products in a row, if those rows are one after the other.
    pub(super) fn row_stride_across(&self, count: usize) -> Option<usize> {
        let (rows, offsets) = (self.shape.m, &self.lhs.batches);
        let stride = match rows {
            1 => offsets.get(1)?.checked_sub(offsets[0])?,
            _ => self.lhs.row_stride,
        };
        let in_place = |offsets: &[usize]| {
            offsets.iter().enumerate().all(|(at, offset)| *offset == offsets[0] + at * rows * stride)
        };
        offsets.chunks(count).all(in_place).then_some(stride)
    }

    /// Makes each `count` products in a row one product with all their rows, which lie `row_stride` apart.
    pub(super) fn join_rows(&mut self, count: usize, row_stride: usize) {
        self.batch /= count;
        self.shape.m *= count;
        self.lhs.row_stride = row_stride;
        for operand in [&mut self.lhs, &mut self.rhs] {
            operand.batches = operand.batches.iter().copied().step_by(count).collect();
        }
    }
}

fn matrix_operand(
    graph: &Graph,
    operand: &warpforge_fusion::cluster::Operand,
    batch: &[usize],
    rows: &[usize],
    columns: &[usize],
) -> Result<MatrixOperand> {
    let view = &operand.view;
    let stride = |dims: &[usize]| {
        let stride = single_stride(view, dims).and_then(|stride| usize::try_from(stride).ok());
        stride.ok_or_else(|| KernelError::Unsupported("an operand has no single stride".to_owned()))
    };
    let mut batches = vec![0usize];
    for &at in batch {
        let step = usize::try_from(view.strides[at]).unwrap_or(0);
        batches = batches
            .iter()
            .flat_map(|from| (0..view.dims[at]).map(move |index| from + index * step))
            .collect();
    }
    Ok(MatrixOperand {
        value: operand.value,
        element: graph.node(operand.value).element,
        offset: usize::try_from(view.offset).unwrap_or(0),
        row_stride: stride(rows)?,
        column_stride: stride(columns)?,
        batches,
    })
}

/// The compute type of GEMMs on an element type. Operands that lie in memory in a wider type are converted while they are packed.
pub(super) fn compute_type(element: ElementType) -> Result<ComputeType> {
    match element {
        ElementType::Float(FloatType::F64) => Ok(ComputeType::F64),
        ElementType::Float(FloatType::Bf16) => Ok(ComputeType::Bf16),
        ElementType::Float(FloatType::F32 | FloatType::F16) => Ok(ComputeType::F32),
        _ => Err(KernelError::Unsupported(format!("there is no GEMM on {element}"))),
    }
}

/// The compute type of a matrix product. Integers are multiplied modulo a power of two that the result's type divides.
pub(super) fn gemm_type(graph: &Graph, product: NodeId) -> Result<ComputeType> {
    let node = graph.node(product);
    let operands: Vec<ElementType> = node.inputs.iter().map(|&id| graph.node(id).element).collect();
    let Some(widest) = integer_bytes(operands.iter().chain([&node.element])) else {
        return compute_type(operands[0]);
    };
    Ok(match widest {
        _ if node.element.byte_width() <= 4 && operands == [ElementType::I8; 2] => ComputeType::I8,
        ..=4 => ComputeType::I32,
        _ => ComputeType::I64,
    })
}

/// Bytes of the widest of some integers; none where others are among them.
fn integer_bytes<'e>(elements: impl Iterator<Item = &'e ElementType>) -> Option<usize> {
    let bytes = |element: &ElementType| match element {
        ElementType::Int(IntType::I8 | IntType::U8) => Some(1),
        ElementType::Int(IntType::I16 | IntType::U16) => Some(2),
        ElementType::Int(IntType::I32 | IntType::U32) => Some(4),
        ElementType::Int(IntType::I64 | IntType::U64) => Some(8),
        _ => None,
    };
    elements.map(bytes).try_fold(0, |most, bytes| Some(most.max(bytes?)))
}

/// A constant right-hand operand, packed: one for each GEMM of the batch. None where most of what is packed would be padding.
fn packed(
    context: &CompileContext<'_>,
    gemm: &Gemm,
    matrix_operand: &MatrixOperand,
    shape: Shape,
) -> Result<Option<Vec<Shared<PackedRhs>>>> {
    let Some(tensor) = context.graph.constant(matrix_operand.value) else { return Ok(None) };
    let count = matrix_operand.batches.len();
    let dense = shape.k.saturating_mul(shape.n).saturating_mul(size_of::<f32>());
    if count != 1 && gemm.packed_len(shape.k, shape.n)? > 2 * dense {
        return Ok(None);
    }
    let pack = |at: usize| -> Result<PackedRhs> {
        let aligned = aligned(tensor)?;
        // SAFETY: the operand's strides were made from the sizes of the tensor.
        unsafe {
            let operand = matrix_operand.operand(aligned.bytes().as_ptr().add(matrix_operand.offset_of(at)));
            Ok(gemm.pack_rhs(&operand, shape.k, shape.n, Some(context.pool))?)
        }
    };
    let fits = |packed: &PackedRhs| gemm.packs_as(packed);
    let weights = &context.weights.matrices;
    let all = (0..count).map(|at| weights.get(matrix_operand.reading(at, shape), fits, || pack(at)));
    all.collect::<Result<Vec<_>>>().map(Some)
}

/// The GEMM on quantized weights, and these, packed in the type that they are stored in.
fn quantized(
    context: &CompileContext<'_>,
    weights: &QuantizedWeights,
    geometry: &DotGeometry,
) -> Result<(Gemm, PackedRhs)> {
    let unsupported = || KernelError::Unsupported("quantized weights are not constants".to_owned());
    let constant = |id: NodeId| aligned(context.graph.constant(id).ok_or_else(unsupported)?);
    let codes = constant(weights.codes)?;
    let Shape { n, k, .. } = geometry.shape;
    let rows = match geometry.lhs.element {
        ElementType::BF16 => ComputeType::Bf16,
        _ => ComputeType::F32,
    };
    let Some(groups) = weights.groups else {
        let kind = match codes.element_type() {
            ElementType::I8 => WeightType::I8,
            _ => WeightType::F8E4M3Fn,
        };
        let gemm = Gemm::for_weights(kind, rows);
        // SAFETY: the operand's strides were made from the sizes of the tensor.
        let packed = unsafe {
            let operand = geometry.rhs.operand(codes.bytes().as_ptr());
            gemm.pack_rhs(&operand, k, n, Some(context.pool))?
        };
        return Ok((gemm, packed));
    };
    let gemm = Gemm::for_weights(WeightType::Int4 { group: groups.size }, rows);
    let (scales, offsets) = (constant(groups.scales)?, constant(groups.offsets)?);
    let grouped =
        GroupedRhs { codes: codes.bytes(), scales: scales.as_slice()?, offsets: offsets.as_slice()? };
    let packed = gemm.pack_groups(grouped, k, n)?;
    Ok((gemm, packed))
}

/// A GEMM with its epilogue.
pub(super) struct DotKernel {
    gemm: Gemm,
    geometry: DotGeometry,
    /// Packed weights, one for each GEMM of the batch.
    weights: Option<Vec<Shared<PackedRhs>>>,
    epilogue: Option<EpilogueLoop>,
    /// Whether the epilogue only rounds to bf16, which the GEMM does itself.
    rounded: bool,
    node: NodeId,
    output: NodeId,
}

impl DotKernel {
    pub(super) fn new(context: &CompileContext<'_>, product: &Contraction, output: NodeId) -> Result<Self> {
        let geometry = DotGeometry::new(context.graph, product)?;
        let element = context.graph.node(product.node).element;
        let (gemm, weights) = match &product.weights {
            Some(weights) => {
                let (gemm, packed) = quantized(context, weights, &geometry)?;
                (gemm, Some(vec![Shared::own(packed)]))
            }
            None => {
                let gemm = Gemm::for_rows(gemm_type(context.graph, product.node)?, geometry.shape.m);
                let packed = packed(context, &gemm, &geometry.rhs, geometry.shape)?;
                (gemm, packed)
            }
        };
        let sum = gemm.compute_type().accumulator();
        let rounded = product.epilogue.as_ref().is_none_or(only_rounds)
            && context.graph.node(output).element == ElementType::BF16
            && geometry.batch == 1
            && gemm.writes_bf16();
        let epilogue = match &product.epilogue {
            _ if rounded => None,
            Some(epilogue) => Some(EpilogueLoop::new(context.graph, epilogue, sum, output)?),
            None if sum != element => {
                let epilogue = store(context.graph, product.node, geometry.shape.n);
                Some(EpilogueLoop::new(context.graph, &epilogue, sum, output)?)
            }
            None => None,
        };
        Ok(Self { gemm, geometry, weights, epilogue, rounded, node: product.node, output })
    }
}

impl Kernel for DotKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let DotGeometry { batch, shape, lhs, rhs, .. } = &self.geometry;
        let sum = self.gemm.compute_type().accumulator().byte_width();
        let sink = |at: usize, block: &OutputBlock| {
            if let Some(epilogue) = &self.epilogue {
                let rows = block.rows.start + at * shape.m..block.rows.end + at * shape.m;
                let block = OutputBlock { rows, columns: block.columns.clone(), ..*block };
                // SAFETY: guaranteed by the caller; blocks do not overlap.
                unsafe { epilogue.run(buffers, &block) };
            }
        };
        let direct = self.epilogue.is_none();
        // SAFETY: guaranteed by the caller; strides and offsets were made from the sizes of the values.
        unsafe {
            let right = |at: usize| match &self.weights {
                Some(packed) => Rhs::Packed(&packed[at]),
                None => Rhs::Strided(rhs.at(buffers, at)),
            };
            if self.rounded {
                let out = buffers.write(self.output);
                let lhs = lhs.at(buffers, 0);
                self.gemm.multiply_to_bf16(buffers.pool, *shape, &lhs, right(0), out, shape.n)?;
                return Ok(());
            }
            if *batch == 1 {
                let out = direct.then(|| buffers.write(self.output));
                let each = |block: &OutputBlock| sink(0, block);
                let each: Option<&warpforge_kernels::output_block::BlockSink<'_>> =
                    if direct { None } else { Some(&each) };
                self.gemm.multiply(
                    buffers.pool,
                    *shape,
                    &lhs.at(buffers, 0),
                    right(0),
                    out,
                    shape.n,
                    each,
                )?;
                return Ok(());
            }
            let out = direct.then(|| SharedPtr::new(buffers.write(self.output)));
            let item = |at: usize| BatchItem {
                lhs: lhs.at(buffers, at),
                rhs: right(at),
                out: out.as_ref().map(|out| out.get().add(at * shape.m * shape.n * sum)),
            };
            let each: Option<&warpforge_kernels::gemm::BatchSink<'_>> =
                if direct { None } else { Some(&sink) };
            self.gemm.batched(buffers.pool, *shape, *batch, &item, shape.n, each)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.weights.iter().flatten().map(|weights| weights.bytes(PackedRhs::bytes)).sum()
    }

    fn first_reads(&self, workers: usize) -> Vec<Range<usize>> {
        let of =
            |packed: &Shared<PackedRhs>| self.gemm.first_reads(self.geometry.shape.m, packed.view(), workers);
        match self.weights.as_deref() {
            Some([packed]) => of(packed),
            _ => Vec::new(),
        }
    }

    fn replaces(&self) -> Option<NodeId> {
        self.weights.is_some().then_some(self.geometry.rhs.value)
    }

    fn name(&self) -> String {
        let Shape { m, n, k } = self.geometry.shape;
        let batch =
            if self.geometry.batch == 1 { String::new() } else { format!("{}x", self.geometry.batch) };
        let epilogue = if self.output == self.node { "" } else { " + epilogue" };
        format!("dot {batch}{m}x{n}x{k}{epilogue}")
    }
}
