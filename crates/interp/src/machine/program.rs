//! Regions of scalar computations as straight-line programs.
//!
//! The computations of reductions, scatters and sorts run once per element. Nearly all are a few element-wise operations
//! on scalars; those are turned into a list of kernels once, and only the rest is run operation by operation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use warpforge_ir::{BlockId, Element, OpKind, ValueId};
use warpforge_tensor::{ElementType, Scalar};

use super::Machine;
use crate::Value;
use crate::ops::constant_tensor;
use crate::scalar::{Kernel, kernel};

/// A list of kernels on numbered slots: first the arguments, then the results of the steps and the constants.
pub(crate) struct Program {
    arguments: Vec<ElementType>,
    /// Constants are there from the start; the others are overwritten by each run.
    slots: Vec<Scalar>,
    steps: Vec<Step>,
    results: Vec<usize>,
}

struct Step {
    kernel: Kernel,
    inputs: Vec<usize>,
    output: usize,
}

/// The plain element type of a value that is a scalar tensor.
fn scalar_element(machine: &Machine<'_, '_>, value: ValueId) -> Option<ElementType> {
    let tensor = machine.module.value_type(value).as_tensor()?;
    match tensor.element() {
        Element::Plain(element) if tensor.rank() == 0 => Some(*element),
        _ => None,
    }
}

impl Program {
    /// The program of a block, or `None` when it has anything but element-wise operations on scalars.
    pub(super) fn compile(machine: &Machine<'_, '_>, block: BlockId) -> Option<Self> {
        let module = machine.module;
        let mut slots: HashMap<ValueId, usize> = HashMap::new();
        let mut initial = Vec::new();
        let mut arguments = Vec::new();
        for &argument in module.arguments(block) {
            let element = scalar_element(machine, argument)?;
            slots.insert(argument, initial.len());
            initial.push(Scalar::zero(element));
            arguments.push(element);
        }
        let mut steps = Vec::new();
        for op in module.ops_in(block) {
            // What is computed outside is a constant here.
            for &operand in op.operands() {
                if let Entry::Vacant(slot) = slots.entry(operand) {
                    let Value::Tensor(outer) = machine.get(operand).ok()? else { return None };
                    scalar_element(machine, operand)?;
                    slot.insert(initial.len());
                    initial.push(outer.get(0));
                }
            }
            let inputs: Vec<usize> = op.operands().iter().map(|operand| slots[operand]).collect();
            if op.def()?.is_terminator() {
                return Some(Self { arguments, slots: initial, steps, results: inputs });
            }
            let result = op.result(0).filter(|_| op.result_count() == 1)?;
            let element = scalar_element(machine, result)?;
            slots.insert(result, initial.len());
            if op.is(OpKind::Constant) {
                initial.push(constant_tensor(op.attr_elements("value")?).ok()?.get(0));
                continue;
            }
            let types: Option<Vec<ElementType>> =
                op.operands().iter().map(|&operand| scalar_element(machine, operand)).collect();
            let kernel = kernel(op, &types?, element)?;
            steps.push(Step { kernel, inputs, output: initial.len() });
            initial.push(Scalar::zero(element));
        }
        None
    }

    pub(super) fn run(&mut self, arguments: &[Scalar]) -> impl Iterator<Item = Scalar> + '_ {
        let slots = &mut self.slots;
        for ((slot, &argument), &element) in slots.iter_mut().zip(arguments).zip(&self.arguments) {
            *slot = argument.rounded_to(element);
        }
        let mut inputs = [Scalar::Bool(false); 3];
        for step in &self.steps {
            for (input, &slot) in inputs.iter_mut().zip(&step.inputs) {
                *input = slots[slot];
            }
            slots[step.output] = (step.kernel)(&inputs[..step.inputs.len()]);
        }
        self.results.iter().map(|&slot| self.slots[slot])
    }

    pub(super) fn argument_count(&self) -> usize {
        self.arguments.len()
    }
}
