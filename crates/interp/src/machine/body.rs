//! The computation of a region on single elements.

use warpforge_ir::{BlockId, Element, OpRef};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::Machine;
use super::program::Program;
use crate::Value;
use crate::error::{Result, invalid};

/// A region that takes and gives scalar tensors.
pub(crate) enum Body {
    /// As a list of kernels.
    Program(Program),
    /// As a block that is run operation by operation.
    Block { block: BlockId, arguments: Vec<ElementType> },
}

impl Body {
    /// The computation of region `index` of an operation.
    pub(crate) fn new(machine: &Machine<'_, '_>, op: OpRef<'_>, index: usize) -> Result<Self> {
        let block = op.region_block(index).ok_or_else(|| invalid(format!("region {index} is empty")))?;
        if let Some(program) = Program::compile(machine, block) {
            return Ok(Self::Program(program));
        }
        let element = |&argument| {
            let element = machine.module.value_type(argument).element();
            element
                .and_then(Element::storage)
                .ok_or_else(|| invalid("a region takes something else than tensors"))
        };
        let arguments = machine.module.arguments(block).iter().map(element).collect::<Result<_>>()?;
        Ok(Self::Block { block, arguments })
    }

    /// Applies the computation.
    pub(crate) fn apply(&self, machine: &mut Machine<'_, '_>, inputs: &[Scalar]) -> Result<Vec<Scalar>> {
        machine.count_step()?;
        let expected = match self {
            Self::Program(program) => program.argument_count(),
            Self::Block { arguments, .. } => arguments.len(),
        };
        if expected != inputs.len() {
            return Err(invalid(format!("the region takes {expected} arguments, not {}", inputs.len())));
        }
        match self {
            Self::Program(program) => Ok(program.run(inputs)),
            Self::Block { block, arguments } => {
                let tensors = arguments
                    .iter()
                    .zip(inputs)
                    .map(|(&element, &input)| Ok(Value::Tensor(Tensor::scalar(element, input)?)))
                    .collect::<Result<_>>()?;
                let scalar = |value: &Value| {
                    let tensor = value.as_tensor()?;
                    if tensor.len() == 1 {
                        Ok(tensor.get(0))
                    } else {
                        Err(invalid("a region gives more than a scalar"))
                    }
                };
                machine.block(*block, tensors)?.iter().map(scalar).collect()
            }
        }
    }

    /// Applies a computation that gives one value.
    pub(crate) fn apply_one(&self, machine: &mut Machine<'_, '_>, inputs: &[Scalar]) -> Result<Scalar> {
        self.apply(machine, inputs)?.first().copied().ok_or_else(|| invalid("the region gives nothing"))
    }
}
