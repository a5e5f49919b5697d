//! cuDNN operation graphs.

use std::sync::Arc;

use warpforge_tensor::{ElementType, FloatType};

use super::library::{Cudnn, Descriptor, kind};
use super::plan::{CudnnPlan, EXACT, Storage};
use crate::dnn::window::{ConvPass, ConvWindow};
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};

/// Data types.
const FLOAT: i32 = 0;
const INT32: i32 = 4;
const BOOLEAN: i32 = 11;

/// Reduction operators.
const SUM: i32 = 0;
const MAX: i32 = 3;

/// Pointwise modes that only attention uses.
const DIVIDE: i32 = 6;
const EXPONENTIAL: i32 = 13;
const LOGARITHM: i32 = 15;
const GREATER_EQUAL: i32 = 303;
const INDEX: i32 = 501;
const SELECT: i32 = 601;

/// Pointwise modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pointwise {
    Add = 0,
    Multiply = 1,
    Subtract = 9,
    Relu = 100,
}

/// A tensor of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TensorId(usize);

/// An operation graph under construction.
pub(crate) struct CudnnGraph {
    library: Arc<Cudnn>,
    tensors: Vec<Descriptor>,
    operations: Vec<Descriptor>,
    /// Descriptors that operations refer to.
    descriptors: Vec<Descriptor>,
    bindings: Vec<(i64, Storage)>,
    /// The graph's identity, without addresses.
    name: String,
}

impl CudnnGraph {
    pub(crate) fn new(library: &Arc<Cudnn>) -> Self {
        Self {
            library: Arc::clone(library),
            tensors: Vec::new(),
            operations: Vec::new(),
            descriptors: Vec::new(),
            bindings: Vec::new(),
            name: String::new(),
        }
    }

    /// A tensor.
    pub(crate) fn tensor(
        &mut self,
        element: ElementType,
        dims: &[i64],
        strides: &[i64],
        storage: Storage,
    ) -> Result<TensorId> {
        self.typed(data_type(element)?, dims, strides, storage)
    }

    /// A tensor of a cuDNN data type.
    fn typed(&mut self, ty: i32, dims: &[i64], strides: &[i64], storage: Storage) -> Result<TensorId> {
        let number = self.tensors.len() as i64 + 1;
        let kept = match storage {
            Storage::Memory(_) => "memory",
            Storage::Virtual => "between",
            Storage::Scalar(_) => "number",
        };
        self.name += &format!("tensor {ty} {dims:?} {strides:?} {kept};");
        let tensor = Descriptor::new(&self.library, kind::TENSOR)?;
        tensor.int64s(900, &[16])?;
        tensor.data_type(901, ty)?;
        tensor.int64s(902, dims)?;
        tensor.int64s(903, strides)?;
        tensor.int64s(906, &[number])?;
        tensor.flag(907, storage == Storage::Virtual)?;
        tensor.flag(908, matches!(storage, Storage::Scalar(_)))?;
        self.tensors.push(tensor.finalise()?);
        if storage != Storage::Virtual {
            self.bindings.push((number, storage));
        }
        Ok(TensorId(self.tensors.len() - 1))
    }

    /// A scalar tensor.
    pub(crate) fn scalar(&mut self, value: f32, rank: usize) -> Result<TensorId> {
        self.tensor(ElementType::F32, &vec![1; rank], &vec![1; rank], Storage::Scalar(value))
    }

    fn handle(&self, value: TensorId) -> Result<crate::driver::Handle> {
        let tensor = self.tensors.get(value.0).map(Descriptor::handle);
        tensor.ok_or_else(|| GpuError::Other("a tensor of another graph".to_owned()))
    }

    /// A pass of a convolution. The gradient that it computes takes the place of the tensor it is the gradient of.
    pub(crate) fn convolution(
        &mut self,
        pass: ConvPass,
        input: TensorId,
        weights: TensorId,
        output: TensorId,
        window: &ConvWindow,
    ) -> Result<()> {
        let (kind, named, first) = match pass {
            ConvPass::Forward => (kind::RUN_CONVOLUTION, "convolution", 700),
            ConvPass::DataGradient => (kind::RUN_DATA_GRADIENT, "data gradient", 706),
            ConvPass::WeightGradient => (kind::RUN_WEIGHT_GRADIENT, "weight gradient", 712),
        };
        self.name += &format!("{named} {input:?} {weights:?} {output:?} {window:?};");
        let description = Descriptor::new(&self.library, kind::CONVOLUTION)?;
        description.data_type(100, FLOAT)?;
        description.choice(101, 7, 1)?;
        description.int64s(102, &window.dilations)?;
        description.int64s(103, &window.strides)?;
        description.int64s(104, &window.after)?;
        description.int64s(105, &window.before)?;
        description.int64s(106, &[window.strides.len() as i64])?;
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind)?;
        operation.float(first, 1.0)?;
        operation.float(first + 1, 0.0)?;
        operation.descriptors(first + 2, &[description.handle()])?;
        operation.descriptors(first + 3, &[self.handle(weights)?])?;
        operation.descriptors(first + 4, &[self.handle(input)?])?;
        operation.descriptors(first + 5, &[self.handle(output)?])?;
        self.add(description, operation)
    }

    /// A unary or binary pointwise operation.
    pub(crate) fn pointwise(
        &mut self,
        op: Pointwise,
        input: TensorId,
        other: Option<TensorId>,
        output: TensorId,
    ) -> Result<()> {
        let inputs: Vec<TensorId> = std::iter::once(input).chain(other).collect();
        self.elementwise(op as i32, FLOAT, None, &inputs, output)
    }

    /// A pointwise operation in a compute type, along an axis where it has one.
    fn elementwise(
        &mut self,
        op: i32,
        computed: i32,
        axis: Option<i64>,
        inputs: &[TensorId],
        output: TensorId,
    ) -> Result<()> {
        self.name += &format!("pointwise {op} {computed} {axis:?} {inputs:?} {output:?};");
        let description = Descriptor::new(&self.library, kind::POINTWISE)?;
        description.choice(0, 14, op)?;
        description.data_type(1, computed)?;
        if let Some(axis) = axis {
            description.int64s(9, &[axis])?;
        }
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind::RUN_POINTWISE)?;
        operation.descriptors(750, &[description.handle()])?;
        for (&attribute, &input) in [751, 752, 758].iter().zip(inputs) {
            operation.descriptors(attribute, &[self.handle(input)?])?;
        }
        operation.descriptors(753, &[self.handle(output)?])?;
        self.add(description, operation)
    }

    /// A batched matmul.
    fn matmul(&mut self, left: TensorId, right: TensorId, output: TensorId) -> Result<()> {
        self.name += &format!("matmul {left:?} {right:?} {output:?};");
        let description = Descriptor::new(&self.library, kind::MATMUL)?;
        description.data_type(1500, FLOAT)?;
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind::RUN_MATMUL)?;
        operation.descriptors(1520, &[self.handle(left)?])?;
        operation.descriptors(1521, &[self.handle(right)?])?;
        operation.descriptors(1522, &[self.handle(output)?])?;
        operation.descriptors(1523, &[description.handle()])?;
        self.add(description, operation)
    }

    /// A reduction over the dimensions of size one in the output.
    fn reduction(&mut self, op: i32, input: TensorId, output: TensorId) -> Result<()> {
        self.name += &format!("reduction {op} {input:?} {output:?};");
        let description = Descriptor::new(&self.library, kind::REDUCTION)?;
        description.choice(1600, 18, op)?;
        description.data_type(1601, FLOAT)?;
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind::RUN_REDUCTION)?;
        operation.descriptors(1610, &[self.handle(input)?])?;
        operation.descriptors(1611, &[self.handle(output)?])?;
        operation.descriptors(1612, &[description.handle()])?;
        self.add(description, operation)
    }

    /// Attention composed of operations in the pattern that cuDNN fuses. Tensors are batch, head, row, column; keys
    /// are transposed. With `causal`, a query attends to the keys up to its own index.
    pub(crate) fn composed_attention(
        &mut self,
        [queries, keys, values]: [TensorId; 3],
        (scale, causal): (f32, bool),
        (element, scores): (ElementType, [i64; 4]),
        output: TensorId,
    ) -> Result<()> {
        let strides = row_major(scores);
        let across = |graph: &mut Self, ty: i32| graph.typed(ty, &scores, &strides, Storage::Virtual);
        let [batch, heads, rows, _] = scores;
        let down = |graph: &mut Self| {
            let (dims, strides) = ([batch, heads, rows, 1], [heads * rows, rows, 1, 1]);
            graph.typed(FLOAT, &dims, &strides, Storage::Virtual)
        };
        let score = across(self, FLOAT)?;
        self.matmul(queries, keys, score)?;
        let by = self.scalar(scale, 4)?;
        let mut seen = across(self, FLOAT)?;
        self.elementwise(Pointwise::Multiply as i32, FLOAT, None, &[score, by], seen)?;
        if causal {
            let (row, column) = (across(self, INT32)?, across(self, INT32)?);
            self.elementwise(INDEX, INT32, Some(2), &[seen], row)?;
            self.elementwise(INDEX, INT32, Some(3), &[seen], column)?;
            let visible = across(self, BOOLEAN)?;
            self.elementwise(GREATER_EQUAL, BOOLEAN, None, &[row, column], visible)?;
            let nothing = self.scalar(f32::MIN, 4)?;
            let masked = across(self, FLOAT)?;
            self.elementwise(SELECT, FLOAT, None, &[seen, nothing, visible], masked)?;
            seen = masked;
        }
        let most = down(self)?;
        self.reduction(MAX, seen, most)?;
        let (below, power) = (across(self, FLOAT)?, across(self, FLOAT)?);
        self.elementwise(Pointwise::Subtract as i32, FLOAT, None, &[seen, most], below)?;
        self.elementwise(EXPONENTIAL, FLOAT, None, &[below], power)?;
        let sum = down(self)?;
        self.reduction(SUM, power, sum)?;
        // These two are unused, but part of the pattern that cuDNN matches.
        let (logarithm, statistics) = (down(self)?, down(self)?);
        self.elementwise(LOGARITHM, FLOAT, None, &[sum], logarithm)?;
        self.elementwise(Pointwise::Add as i32, FLOAT, None, &[most, logarithm], statistics)?;
        let weight = across(self, data_type(element)?)?;
        self.elementwise(DIVIDE, FLOAT, None, &[power, sum], weight)?;
        self.matmul(weight, values, output)
    }

    /// The fused attention operation. Tensors are batch, head, row, column.
    pub(crate) fn attention(
        &mut self,
        [queries, keys, values]: [TensorId; 3],
        scale: TensorId,
        output: TensorId,
    ) -> Result<()> {
        self.name += &format!("attention {queries:?} {keys:?} {values:?} {output:?};");
        let operation = Descriptor::new(&self.library, kind::RUN_ATTENTION)?;
        operation.descriptors(2800, &[self.handle(queries)?])?;
        operation.descriptors(2801, &[self.handle(keys)?])?;
        operation.descriptors(2802, &[self.handle(values)?])?;
        operation.descriptors(2803, &[self.handle(output)?])?;
        operation.descriptors(2805, &[self.handle(scale)?])?;
        self.operations.push(operation.finalise()?);
        Ok(())
    }

    fn add(&mut self, description: Descriptor, operation: Descriptor) -> Result<()> {
        self.operations.push(operation.finalise()?);
        self.descriptors.push(description);
        Ok(())
    }

    /// The fastest plan of the graph. `exact` excludes engines that round operands below their type.
    ///
    /// # Errors
    ///
    /// When cuDNN supports none.
    pub(crate) fn plan(self, exact: bool, workspace: (Address, usize), stream: &Stream) -> Result<CudnnPlan> {
        let Self { library, tensors, operations, descriptors, bindings, name } = self;
        let name = if exact { format!("{EXACT}{name}") } else { name };
        let plan = CudnnPlan::new(&library, &operations, name, &bindings, workspace, stream);
        drop((operations, descriptors, tensors));
        plan
    }
}

fn row_major([_, heads, rows, columns]: [i64; 4]) -> [i64; 4] {
    [heads * rows * columns, rows * columns, columns, 1]
}

fn data_type(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F32) => FLOAT,
        ElementType::Float(FloatType::F16) => 2,
        ElementType::Float(FloatType::Bf16) => 9,
        _ => return Err(GpuError::Other(format!("cuDNN computes nothing here in {element}"))),
    })
}
