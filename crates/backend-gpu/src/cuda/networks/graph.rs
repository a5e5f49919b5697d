//! Operations on tensors, joined into one graph.

use std::sync::Arc;

use warpforge_tensor::{ElementType, FloatType};

use super::Networks;
use super::descriptor::{Descriptor, kind};
use super::plan::Plan;
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};

/// The numbers of data types.
const FLOAT: i32 = 0;

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
        let number = self.tensors.len() as i64 + 1;
        let tensor = Descriptor::new(&self.library, kind::TENSOR)?;
        tensor.numbers(900, &[16])?;
        tensor.data_type(901, data_type(element)?)?;
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
        let description = Descriptor::new(&self.library, kind::POINTWISE)?;
        description.choice(0, 14, op as i32)?;
        description.data_type(1, FLOAT)?;
        let description = description.finalise()?;
        let operation = Descriptor::new(&self.library, kind::RUN_POINTWISE)?;
        operation.descriptors(750, &[description.handle()])?;
        operation.descriptors(751, &[self.handle(input)?])?;
        if let Some(other) = other {
            operation.descriptors(752, &[self.handle(other)?])?;
        }
        operation.descriptors(753, &[self.handle(output)?])?;
        self.add(description, operation)
    }

    /// Attention of scaled scores: batch, head, row and column each.
    pub(crate) fn attention(
        &mut self,
        [queries, keys, values]: [Value; 3],
        scale: Value,
        output: Value,
    ) -> Result<()> {
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
        let Self { library, tensors, operations, parts, places } = self;
        let plan = Plan::new(&library, &operations, &places, exact, workspace, stream);
        drop((operations, parts, tensors));
        plan
    }
}

fn data_type(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F32) => FLOAT,
        ElementType::Float(FloatType::F16) => 2,
        ElementType::Float(FloatType::Bf16) => 9,
        _ => return Err(GpuError::Other(format!("cuDNN computes nothing here in {element}"))),
    })
}
