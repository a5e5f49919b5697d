//! A random program: one function per operation, and a `@main` that calls them and returns every value.
//!
//! With each value at hand, an operation is judged on the operands that the other side really had, so that a difference
//! in the last place of one operation does not grow into a false alarm in a later one.

use std::fmt::{self, Write as _};

pub(crate) use warpforge_golden::op_tolerance::OpTolerance;
use warpforge_tensor::{ElementType, Tensor};

/// A static tensor type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ty {
    pub(crate) dims: Vec<usize>,
    pub(crate) element: ElementType,
}

impl Ty {
    pub(crate) fn new(dims: impl Into<Vec<usize>>, element: ElementType) -> Self {
        Self { dims: dims.into(), element }
    }

    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// The same shape of other elements.
    pub(crate) fn of(&self, element: ElementType) -> Self {
        Self::new(self.dims.clone(), element)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dim in &self.dims {
            write!(f, "{dim}x")?;
        }
        write!(f, "{}>", self.element)
    }
}

/// One operation as a function of its own.
#[derive(Clone)]
pub(crate) struct Step {
    /// The name of the operation.
    pub(crate) op: &'static str,
    /// Positions of the operands among the values.
    pub(crate) operands: Vec<usize>,
    /// The lines of the body: operands are `%a0`, `%a1`, …; the results that it returns `%r0`, …, or `%r#0`, ….
    pub(crate) body: String,
    /// Names of what the body returns.
    pub(crate) returned: Vec<String>,
    /// Types of the results.
    pub(crate) results: Vec<Ty>,
    pub(crate) tolerance: OpTolerance,
}

/// Inputs and operations in order. Values are numbered: inputs first, then the results of each step.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) steps: Vec<Step>,
    types: Vec<Ty>,
    /// For each value, which input or which result it is.
    origins: Vec<Origin>,
}

#[derive(Clone, Copy)]
enum Origin {
    Input(usize),
    Result { step: usize, index: usize },
}

impl Program {
    /// A program of one operation alone, on given operands.
    pub(crate) fn alone(step: &Step, operands: &[&Tensor]) -> Self {
        let mut program = Self::default();
        let operands = operands.iter().map(|&operand| program.input(operand.clone())).collect();
        program.push(Step { operands, ..step.clone() });
        program
    }

    /// The types of all values so far.
    pub(crate) fn types(&self) -> &[Ty] {
        &self.types
    }

    /// Adds an input and returns its value.
    pub(crate) fn input(&mut self, tensor: Tensor) -> usize {
        self.types.push(Ty::new(tensor.dims(), tensor.element_type()));
        self.origins.push(Origin::Input(self.inputs.len()));
        self.inputs.push(tensor);
        self.types.len() - 1
    }

    /// Adds an operation.
    pub(crate) fn push(&mut self, step: Step) {
        for (index, ty) in step.results.iter().enumerate() {
            self.types.push(ty.clone());
            self.origins.push(Origin::Result { step: self.steps.len(), index });
        }
        self.steps.push(step);
    }

    /// The types of the results of all steps, in the order in which `@main` returns them.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Ty> {
        self.steps.iter().flat_map(|step| &step.results)
    }

    /// The tensor of a value, given what `@main` returned.
    pub(crate) fn tensor<'a>(&'a self, value: usize, outputs: &'a [Vec<Tensor>]) -> &'a Tensor {
        match self.origins[value] {
            Origin::Input(input) => &self.inputs[input],
            Origin::Result { step, index } => &outputs[step][index],
        }
    }

    /// The module.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("module @random {\n");
        let list =
            |types: &mut dyn Iterator<Item = &Ty>| types.map(Ty::to_string).collect::<Vec<_>>().join(", ");
        let mut main = String::new();
        for (number, step) in self.steps.iter().enumerate() {
            let parameters: Vec<String> = step
                .operands
                .iter()
                .enumerate()
                .map(|(at, &value)| format!("%a{at}: {}", self.types[value]))
                .collect();
            let results = list(&mut step.results.iter());
            let _ = write!(
                text,
                "  func.func private @op{number}({}) -> ({results}) {{\n{}    return {} : {results}\n  }}\n",
                parameters.join(", "),
                step.body,
                step.returned.join(", "),
            );
            let operands: Vec<String> = step.operands.iter().map(|&value| self.name(value)).collect();
            let operand_types = list(&mut step.operands.iter().map(|&value| &self.types[value]));
            let _ = writeln!(
                main,
                "    %s{number}:{} = call @op{number}({}) : ({operand_types}) -> ({results})",
                step.results.len(),
                operands.join(", "),
            );
        }
        let parameters: Vec<String> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(at, input)| format!("%i{at}: {}", Ty::new(input.dims(), input.element_type())))
            .collect();
        let returned: Vec<String> = (0..self.types.len())
            .filter(|&value| matches!(self.origins[value], Origin::Result { .. }))
            .map(|value| self.name(value))
            .collect();
        let types = list(&mut self.outputs());
        let _ = write!(
            text,
            "  func.func public @main({}) -> ({types}) {{\n{main}    return {} : {types}\n  }}\n}}\n",
            parameters.join(", "),
            returned.join(", "),
        );
        text
    }

    fn name(&self, value: usize) -> String {
        match self.origins[value] {
            Origin::Input(input) => format!("%i{input}"),
            Origin::Result { step, index } => format!("%s{step}#{index}"),
        }
    }
}
