//! The computation of a region on single elements.

use warpforge_ir::{BlockId, Element, OpRef};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::Machine;
use super::program::Program;
use crate::Value;
use crate::error::{Result, invalid};

/// A region that takes and gives scalar tensors.
pub(crate) struct Body {
    kind: Kind,
    results: Vec<Scalar>,
}

enum Kind {
    /// As a list of kernels.
    Program(Program),
    /// As a block that is run operation by operation.
    Block { block: BlockId, arguments: Vec<ElementType> },
}

impl Body {
    /// The computation of region `index` of an operation.
    pub(crate) fn new(machine: &Machine<'_, '_>, op: OpRef<'_>, index: usize) -> Result<Self> {
        let block = op.region_block(index).ok_or_else(|| invalid(format!("region {index} is empty")))?;
        let kind = match Program::compile(machine, block) {
            Some(program) => Kind::Program(program),
            None => {
                let arguments = machine.module.arguments(block).iter();
                let elements = arguments.map(|&argument| {
                    let element = machine.module.value_type(argument).element().and_then(Element::storage);
                    element.ok_or_else(|| invalid("a region takes something else than tensors"))
                });
                Kind::Block { block, arguments: elements.collect::<Result<_>>()? }
            }
        };
        Ok(Self { kind, results: Vec::new() })
    }

    /// Applies the computation. The results stay until the next application.
    pub(crate) fn apply(&mut self, machine: &mut Machine<'_, '_>, inputs: &[Scalar]) -> Result<&[Scalar]> {
        machine.count_steps(1)?;
        let expected = match &self.kind {
            Kind::Program(program) => program.argument_count(),
            Kind::Block { arguments, .. } => arguments.len(),
        };
        if expected != inputs.len() {
            return Err(invalid(format!("the region takes {expected} arguments, not {}", inputs.len())));
        }
        self.results.clear();
        match &mut self.kind {
            Kind::Program(program) => self.results.extend(program.run(inputs)),
            Kind::Block { block, arguments } => {
                let tensors = arguments
                    .iter()
                    .zip(inputs)
                    .map(|(&element, &input)| Ok(Value::Tensor(Tensor::scalar(element, input)?)))
                    .collect::<Result<_>>()?;
                for value in machine.block(*block, tensors)? {
                    let tensor = value.as_tensor()?;
                    if tensor.len() != 1 {
                        return Err(invalid("a region gives more than a scalar"));
                    }
                    self.results.push(tensor.get(0));
                }
            }
        }
        Ok(&self.results)
    }

    /// Applies a computation that gives one value.
    pub(crate) fn apply_one(&mut self, machine: &mut Machine<'_, '_>, inputs: &[Scalar]) -> Result<Scalar> {
        self.apply(machine, inputs)?.first().copied().ok_or_else(|| invalid("the region gives nothing"))
    }
}
