//! Whether a program makes sense, and the types of its values.

use warpforge_tensor::ElementType;

use super::domain::{Access, Domain, Input, Output, Sink, Source};
use super::error::ProgramError;
use super::step::{Register, Step, UnaryOp};

/// The type of each step's value.
pub(super) fn types(inputs: &[Input], steps: &[Step]) -> Result<Vec<ElementType>, ProgramError> {
    let mut types: Vec<ElementType> = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        if let Some(Register(register)) = step.operands().find(|register| register.0 >= at) {
            return Err(ProgramError::Register { step: at, register });
        }
        let of = |register: &Register| types[register.0];
        let same = |a: &Register, b: &Register| match (of(a), of(b)) {
            (left, right) if left == right => Ok(left),
            (left, right) => Err(ProgramError::Types { step: at, left, right }),
        };
        types.push(match step {
            Step::Load(input) => {
                let missing = ProgramError::Input { step: at, input: *input, count: inputs.len() };
                inputs.get(*input).ok_or(missing)?.element
            }
            Step::Constant(element, _) | Step::Iota { element, .. } | Step::Convert(_, element) => *element,
            Step::Unary(UnaryOp::IsFinite, _) => ElementType::Bool,
            Step::Unary(_, a) | Step::Reduce(_, a) => of(a),
            Step::Binary(_, a, b) => same(a, b)?,
            Step::Compare(_, _, a, b) => {
                same(a, b)?;
                ElementType::Bool
            }
            Step::Select(which, yes, no) => match of(which) {
                ElementType::Bool => same(yes, no)?,
                left => return Err(ProgramError::Types { step: at, left, right: ElementType::Bool }),
            },
        });
    }
    Ok(types)
}

/// Checks that accesses have the dimensions of the domain, that outputs name values and that the tile has one width.
pub(super) fn places(
    domain: &Domain,
    inputs: &[Input],
    steps: &[Step],
    outputs: &[Output],
    types: &[ElementType],
) -> Result<(), ProgramError> {
    let ranks = |what: String, rows: usize, columns: usize| {
        let (of_rows, of_columns) = (domain.rows.len(), domain.columns.len());
        match (rows, columns) == (of_rows, of_columns) {
            true => Ok(()),
            false => Err(ProgramError::Rank { what, rows, columns, of_rows, of_columns }),
        }
    };
    let access = |what: String, access: &Access| ranks(what, access.rows.len(), access.columns.len());
    let mut in_tile = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        match &input.source {
            Source::Memory(place) => access(format!("input {at}"), place)?,
            Source::Tile => in_tile.push(input.element),
        }
    }
    for (at, step) in steps.iter().enumerate() {
        if let Step::Iota { rows, columns, .. } = step {
            ranks(format!("step {at}"), rows.len(), columns.len())?;
        }
    }
    for (at, output) in outputs.iter().enumerate() {
        let register = output.value.0;
        let &element = types.get(register).ok_or(ProgramError::Register { step: steps.len(), register })?;
        match &output.sink {
            Sink::Memory(place) => access(format!("output {at}"), place)?,
            Sink::Tile => in_tile.push(element),
        }
    }
    match in_tile.windows(2).find(|pair| pair[0].byte_width() != pair[1].byte_width()) {
        Some(&[left, right]) => Err(ProgramError::Tile { left, right }),
        _ => Ok(()),
    }
}
