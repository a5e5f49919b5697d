//! Matrix products.

use warpforge_fusion::cluster::{Contraction, single_stride};
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_kernels::block::Block;
use warpforge_kernels::gemm::{BatchItem, Gemm, Kind, Operand, PackedRhs, Rhs, Shape};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::{Blocks, only_rounds, store};
use super::{Kernel, KernelError, Memory, Result, Setting};

/// How the operand of a product lies in memory.
pub(super) struct Side {
    pub(super) value: NodeId,
    pub(super) element: ElementType,
    offset: usize,
    row_stride: usize,
    column_stride: usize,
    /// Where each product of a batch begins, in elements.
    batches: Vec<usize>,
}

impl Side {
    /// The operand of one product of a batch.
    ///
    /// # Safety
    ///
    /// The address of the value is good.
    pub(super) unsafe fn at(&self, memory: &Memory<'_>, batch: usize) -> Operand {
        // SAFETY: as the caller promises; the offset is inside the value.
        let data = unsafe { memory.read(self.value).add(self.offset_of(batch)) };
        self.operand(data)
    }

    fn offset_of(&self, batch: usize) -> usize {
        (self.offset + self.batches[batch]) * self.element.byte_width()
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

/// Sizes and operands of a product.
pub(super) struct Geometry {
    pub(super) batch: usize,
    pub(super) shape: Shape,
    pub(super) lhs: Side,
    pub(super) rhs: Side,
    /// The type of the elements that are multiplied.
    pub(super) element: ElementType,
}

impl Geometry {
    pub(super) fn new(graph: &Graph, product: &Contraction) -> Result<Self> {
        let Op::Dot(dot) = &graph.node(product.node).op else {
            return Err(KernelError::Unsupported("no product".to_owned()));
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
            lhs: side(graph, lhs, &dot.lhs_batch, &rows, &dot.lhs_contract)?,
            rhs: side(graph, rhs, &dot.rhs_batch, &dot.rhs_contract, &columns)?,
        })
    }
}

fn side(
    graph: &Graph,
    operand: &warpforge_fusion::cluster::Operand,
    batch: &[usize],
    rows: &[usize],
    columns: &[usize],
) -> Result<Side> {
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
    Ok(Side {
        value: operand.value,
        element: graph.node(operand.value).element,
        offset: usize::try_from(view.offset).unwrap_or(0),
        row_stride: stride(rows)?,
        column_stride: stride(columns)?,
        batches,
    })
}

/// The kind of GEMM that multiplies elements of a type. Operands that lie in memory in a wider type are converted while they are packed.
pub(super) fn kind(element: ElementType) -> Result<Kind> {
    match element {
        ElementType::Float(FloatType::F64) => Ok(Kind::F64),
        ElementType::Float(FloatType::Bf16) => Ok(Kind::Bf16),
        ElementType::Float(FloatType::F32 | FloatType::F16) => Ok(Kind::F32),
        _ => Err(KernelError::Unsupported(format!("there is no product of {element}"))),
    }
}

/// Packs a right operand that is a constant.
pub(super) fn packed(
    setting: &Setting<'_>,
    gemm: &Gemm,
    side: &Side,
    shape: Shape,
) -> Result<Option<PackedRhs>> {
    let Some(tensor) = setting.graph.constant(side.value) else { return Ok(None) };
    if side.batches.len() != 1 {
        return Ok(None);
    }
    let aligned = super::aligned(tensor)?;
    // SAFETY: the operand's strides were made from the sizes of the tensor.
    let packed = unsafe {
        let operand = side.operand(aligned.bytes().as_ptr().add(side.offset_of(0)));
        gemm.pack_rhs(&operand, shape.k, shape.n, Some(setting.pool))?
    };
    Ok(Some(packed))
}

/// A matrix product with its epilogue.
pub(super) struct Dot {
    gemm: Gemm,
    geometry: Geometry,
    weights: Option<PackedRhs>,
    epilogue: Option<Blocks>,
    /// Whether nothing but rounding to bf16 is done to the sums, by the product itself.
    rounded: bool,
    node: NodeId,
    output: NodeId,
}

impl Dot {
    pub(super) fn new(setting: &Setting<'_>, product: &Contraction, output: NodeId) -> Result<Self> {
        let geometry = Geometry::new(setting.graph, product)?;
        let element = setting.graph.node(product.node).element;
        let gemm = Gemm::new(kind(geometry.element)?);
        let sum = gemm.kind().sum();
        let weights = packed(setting, &gemm, &geometry.rhs, geometry.shape)?;
        let rounded = product.epilogue.as_ref().is_none_or(only_rounds)
            && setting.graph.node(output).element == ElementType::BF16
            && geometry.batch == 1
            && gemm.rounds();
        let epilogue = match &product.epilogue {
            _ if rounded => None,
            Some(epilogue) => Some(Blocks::new(setting.graph, epilogue, sum, output)?),
            None if sum != element => {
                let epilogue = store(setting.graph, product.node, geometry.shape.n);
                Some(Blocks::new(setting.graph, &epilogue, sum, output)?)
            }
            None => None,
        };
        Ok(Self { gemm, geometry, weights, epilogue, rounded, node: product.node, output })
    }
}

impl Kernel for Dot {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let Geometry { batch, shape, lhs, rhs, .. } = &self.geometry;
        let sum = self.gemm.kind().sum().byte_width();
        let sink = |at: usize, block: &Block| {
            if let Some(epilogue) = &self.epilogue {
                let rows = block.rows.start + at * shape.m..block.rows.end + at * shape.m;
                let block = Block { rows, columns: block.columns.clone(), ..*block };
                // SAFETY: as the caller promises; blocks do not overlap.
                unsafe { epilogue.run(memory, &block) };
            }
        };
        let direct = self.epilogue.is_none();
        // SAFETY: as the caller promises; strides and offsets were made from the sizes of the values.
        unsafe {
            let right = |at: usize| match &self.weights {
                Some(packed) => Rhs::Packed(packed),
                None => Rhs::Strided(rhs.at(memory, at)),
            };
            if self.rounded {
                let out = memory.write(self.output);
                let lhs = lhs.at(memory, 0);
                self.gemm.rounded_product(memory.pool, *shape, &lhs, right(0), out, shape.n)?;
                return Ok(());
            }
            if *batch == 1 {
                let out = direct.then(|| memory.write(self.output));
                let each = |block: &Block| sink(0, block);
                let each: Option<&warpforge_kernels::block::Sink<'_>> =
                    if direct { None } else { Some(&each) };
                self.gemm.product(memory.pool, *shape, &lhs.at(memory, 0), right(0), out, shape.n, each)?;
                return Ok(());
            }
            if direct {
                let out = Shared(memory.write(self.output));
                let item = |at: usize| BatchItem {
                    lhs: lhs.at(memory, at),
                    rhs: right(at),
                    out: out.get().add(at * shape.m * shape.n * sum),
                };
                self.gemm.batched(memory.pool, *shape, *batch, &item, shape.n, None)?;
                return Ok(());
            }
            for at in 0..*batch {
                let each = |block: &Block| sink(at, block);
                self.gemm.product(
                    memory.pool,
                    *shape,
                    &lhs.at(memory, at),
                    right(at),
                    None,
                    shape.n,
                    Some(&each),
                )?;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.weights.as_ref().map_or(0, PackedRhs::bytes)
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

/// An address that several threads compute with.
pub(super) struct Shared(pub(super) *mut u8);

// SAFETY: who writes through it writes his own part.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn get(&self) -> *mut u8 {
        self.0
    }
}
