//! Operations on tensors, joined into one graph.

use std::sync::Arc;

use warpforge_tensor::{ElementType, FloatType};

use super::Networks;
use super::descriptor::{Descriptor, kind};
use super::plan::{EXACT, Plan};
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};

/// The numbers of data types.
const FLOAT: i32 = 0;
const INT32: i32 = 4;
const BOOLEAN: i32 = 11;

/// The numbers of reductions.
const SUM: i32 = 0;
const MOST: i32 = 3;

/// Operations on each element that only attention has.
const DIVIDE: i32 = 6;
const EXPONENTIAL: i32 = 13;
const LOGARITHM: i32 = 15;
const AT_LEAST: i32 = 303;
const INDEX: i32 = 501;
const SELECT: i32 = 601;

/// Operations on each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pointwise {
    Add = 0,
    Multiply = 1,
    Subtract = 9,
    Relu = 100,
}

/// Where the elements of a tensor are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// In memory of the device.
    Memory(Address),
    /// Nowhere: one operation gives it, others take it.
    Between,
    /// One number, known when compiling.
    Number(f32),
}

/// A tensor of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value(usize);

/// A graph that grows.
pub(crate) struct Network {
    library: Arc<Networks>,
    tensors: Vec<Descriptor>,
    operations: Vec<Descriptor>,
    /// What belongs to operations.
    parts: Vec<Descriptor>,
    places: Vec<(i64, Place)>,
    /// All that makes it another graph than others, but for where its tensors are.
    name: String,
}

/// How windows go over an input.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    pub(crate) strides: Vec<i64>,
    pub(crate) before: Vec<i64>,
    pub(crate) after: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
}

impl Network {
    pub(crate) fn new(library: &Arc<Networks>) -> Self {
        Self {
            library: Arc::clone(library),
            tensors: Vec::new(),
            operations: Vec::new(),
            parts: Vec::new(),
            places: Vec::new(),
            name: String::new(),
        }
    }

    /// A tensor.
    pub(crate) fn tensor(
        &mut self,
        element: ElementType,
        dims: &[i64],
        strides: &[i64],
        place: Place,
    ) -> Result<Value> {
        self.typed(data_type(element)?, dims, strides, place)
    }

    /// A tensor whose elements have a type of cuDNN's.
    fn typed(&mut self, ty: i32, dims: &[i64], strides: &[i64], place: Place) -> Result<Value> {
        let number = self.tensors.len() as i64 + 1;
        let kept = match place {
            Place::Memory(_) => "memory",
            Place::Between => "between",
            Place::Number(_) => "number",
        };
        self.name += &format!("tensor {ty} {dims:?} {strides:?} {kept};");
        let tensor = Descriptor::new(&self.library, kind::TENSOR)?;
        tensor.numbers(900, &[16])?;
        tensor.data_type(901, ty)?;
        tensor.numbers(902, dims)?;
        tensor.numbers(903, strides)?;
        tensor.numbers(906, &[number])?;
        tensor.flag(907, place == Place::Between)?;
        tensor.flag(908, matches!(place, Place::Number(_)))?;
        self.tensors.push(tensor.finalise()?);
        if place != Place::Between {
            self.places.push((number, place));
        }
        Ok(Value(self.tensors.len() - 1))
    }

    /// One number as a tensor.
    pub(crate) fn number(&mut self, value: f32, rank: usize) -> Result<Value> {
        self.tensor(ElementType::F32, &vec![1; rank], &vec![1; rank], Place::Number(value))
    }

    fn handle(&self, value: Value) -> Result<crate::driver::Handle> {
        let tensor = self.tensors.get(value.0).map(Descriptor::handle);
        tensor.ok_or_else(|| GpuError::Other("a tensor of another graph".to_owned()))
    }

    /// A convolution.
    pub(crate) fn convolution(
        &mut self,
        input: Value,
        weights: Value,
        output: Value,
        windows: &Windows,
    ) -> Result<()> {
        self.name += &format!("convolution {input:?} {weights:?} {output:?} {windows:?};");
        let description = Descriptor::new(&self.library, kind::CONVOLUTION)?;
        description.data_type(100, FLOAT)?;
        description.choice(101, 7, 1)?;
        description.numbers(102, &windows.dilations)?;
        description.numbers(103, &windows.strides)?;
        description.numbers(104, &windows.after)?;
        description.numbers(105, &windows.before)?;
        description.numbers(106, &[windows.strides.len() as i64])?;
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind::RUN_CONVOLUTION)?;
        operation.float(700, 1.0)?;
        operation.float(701, 0.0)?;
        operation.descriptors(702, &[description.handle()])?;
        operation.descriptors(703, &[self.handle(weights)?])?;
        operation.descriptors(704, &[self.handle(input)?])?;
        operation.descriptors(705, &[self.handle(output)?])?;
        self.add(description, operation)
    }

    /// An operation on each element of one tensor or two.
    pub(crate) fn pointwise(
        &mut self,
        op: Pointwise,
        input: Value,
        other: Option<Value>,
        output: Value,
    ) -> Result<()> {
        let inputs: Vec<Value> = std::iter::once(input).chain(other).collect();
        self.elementwise(op as i32, FLOAT, None, &inputs, output)
    }

    /// An operation by its number, computed in a type, along an axis where it has one.
    fn elementwise(
        &mut self,
        op: i32,
        computed: i32,
        axis: Option<i64>,
        inputs: &[Value],
        output: Value,
    ) -> Result<()> {
        self.name += &format!("pointwise {op} {computed} {axis:?} {inputs:?} {output:?};");
        let description = Descriptor::new(&self.library, kind::POINTWISE)?;
        description.choice(0, 14, op)?;
        description.data_type(1, computed)?;
        if let Some(axis) = axis {
            description.numbers(9, &[axis])?;
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

    /// A product of the matrices in the last two dimensions.
    fn product(&mut self, left: Value, right: Value, output: Value) -> Result<()> {
        self.name += &format!("product {left:?} {right:?} {output:?};");
        let description = Descriptor::new(&self.library, kind::PRODUCT)?;
        description.data_type(1500, FLOAT)?;
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind::RUN_PRODUCT)?;
        operation.descriptors(1520, &[self.handle(left)?])?;
        operation.descriptors(1521, &[self.handle(right)?])?;
        operation.descriptors(1522, &[self.handle(output)?])?;
        operation.descriptors(1523, &[description.handle()])?;
        self.add(description, operation)
    }

    /// A reduction over the dimensions that the output has not.
    fn reduction(&mut self, op: i32, input: Value, output: Value) -> Result<()> {
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

    /// Attention written out, as cuDNN knows it again: batch, head, row and column each, but keys with their columns
    /// before their rows. With `causal` a query sees the keys up to its own number.
    pub(crate) fn attention_in_steps(
        &mut self,
        [queries, keys, values]: [Value; 3],
        (scale, causal): (f32, bool),
        (element, scores): (ElementType, [i64; 4]),
        output: Value,
    ) -> Result<()> {
        let strides = row_major(scores);
        let across = |network: &mut Self, ty: i32| network.typed(ty, &scores, &strides, Place::Between);
        let [batch, heads, rows, _] = scores;
        let down = |network: &mut Self| {
            let (dims, strides) = ([batch, heads, rows, 1], [heads * rows, rows, 1, 1]);
            network.typed(FLOAT, &dims, &strides, Place::Between)
        };
        let score = across(self, FLOAT)?;
        self.product(queries, keys, score)?;
        let by = self.number(scale, 4)?;
        let mut seen = across(self, FLOAT)?;
        self.elementwise(Pointwise::Multiply as i32, FLOAT, None, &[score, by], seen)?;
        if causal {
            let (row, column) = (across(self, INT32)?, across(self, INT32)?);
            self.elementwise(INDEX, INT32, Some(2), &[seen], row)?;
            self.elementwise(INDEX, INT32, Some(3), &[seen], column)?;
            let visible = across(self, BOOLEAN)?;
            self.elementwise(AT_LEAST, BOOLEAN, None, &[row, column], visible)?;
            let nothing = self.number(f32::MIN, 4)?;
            let masked = across(self, FLOAT)?;
            self.elementwise(SELECT, FLOAT, None, &[seen, nothing, visible], masked)?;
            seen = masked;
        }
        let most = down(self)?;
        self.reduction(MOST, seen, most)?;
        let (below, power) = (across(self, FLOAT)?, across(self, FLOAT)?);
        self.elementwise(Pointwise::Subtract as i32, FLOAT, None, &[seen, most], below)?;
        self.elementwise(EXPONENTIAL, FLOAT, None, &[below], power)?;
        let sum = down(self)?;
        self.reduction(SUM, power, sum)?;
        // Nobody reads these two here, but without them it is not the attention that cuDNN knows.
        let (logarithm, statistics) = (down(self)?, down(self)?);
        self.elementwise(LOGARITHM, FLOAT, None, &[sum], logarithm)?;
        self.elementwise(Pointwise::Add as i32, FLOAT, None, &[most, logarithm], statistics)?;
        let weight = across(self, data_type(element)?)?;
        self.elementwise(DIVIDE, FLOAT, None, &[power, sum], weight)?;
        self.product(weight, values, output)
    }

    /// Attention of scaled scores: batch, head, row and column each.
    pub(crate) fn attention(
        &mut self,
        [queries, keys, values]: [Value; 3],
        scale: Value,
        output: Value,
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
        self.parts.push(description);
        Ok(())
    }

    /// The fastest plan for the graph; `exact` leaves out those that round operands further than their type does.
    ///
    /// # Errors
    ///
    /// When cuDNN has none.
    pub(crate) fn plan(self, exact: bool, workspace: (Address, usize), stream: &Stream) -> Result<Plan> {
        let Self { library, tensors, operations, parts, places, name } = self;
        let name = if exact { format!("{EXACT}{name}") } else { name };
        let plan = Plan::new(&library, &operations, name, &places, workspace, stream);
        drop((operations, parts, tensors));
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
