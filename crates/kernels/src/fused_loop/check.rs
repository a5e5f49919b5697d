//! Validation, and the element types of registers.

use warpforge_tensor::ElementType;

use super::domain::{Access, Domain, Input, Output, Sink, Source};
use super::error::FusedLoopError;
use super::inst::{Inst, Register};
use warpforge_tensor::elementwise::Function;

/// The element type of each register.
pub(super) fn types(inputs: &[Input], insts: &[Inst]) -> Result<Vec<ElementType>, FusedLoopError> {
    let mut types: Vec<ElementType> = Vec::with_capacity(insts.len());
    for (at, inst) in insts.iter().enumerate() {
        if let Some(Register(register)) = inst.operands().find(|register| register.0 >= at) {
            return Err(FusedLoopError::Register { inst: at, register });
        }
        let of = |register: &Register| types[register.0];
        let same = |a: &Register, b: &Register| match (of(a), of(b)) {
            (left, right) if left == right => Ok(left),
            (left, right) => Err(FusedLoopError::Types { inst: at, left, right }),
        };
        types.push(match inst {
            Inst::Load(input) => {
                let missing = FusedLoopError::Input { inst: at, input: *input, count: inputs.len() };
                inputs.get(*input).ok_or(missing)?.element
            }
            Inst::Constant(element, _) | Inst::Iota { element, .. } | Inst::Convert(_, element) => *element,
            Inst::Unary(Function::IsFinite, _) => ElementType::Bool,
            Inst::Unary(_, a) | Inst::Reduce(_, a) => of(a),
            Inst::Binary(_, a, b) => same(a, b)?,
            Inst::Compare(_, _, a, b) => {
                same(a, b)?;
                ElementType::Bool
            }
            Inst::Select(which, yes, no) => match of(which) {
                ElementType::Bool => same(yes, no)?,
                left => return Err(FusedLoopError::Types { inst: at, left, right: ElementType::Bool }),
            },
        });
    }
    Ok(types)
}

/// Checks that accesses have the dimensions of the domain, that outputs name registers and that the tile has one
/// element size.
pub(super) fn accesses(
    domain: &Domain,
    inputs: &[Input],
    insts: &[Inst],
    outputs: &[Output],
    types: &[ElementType],
) -> Result<(), FusedLoopError> {
    let ranks = |what: String, rows: usize, columns: usize| {
        let (of_rows, of_columns) = (domain.rows.len(), domain.columns.len());
        match (rows, columns) == (of_rows, of_columns) {
            true => Ok(()),
            false => Err(FusedLoopError::Rank { what, rows, columns, of_rows, of_columns }),
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
    for (at, inst) in insts.iter().enumerate() {
        if let Inst::Iota { rows, columns, .. } = inst {
            ranks(format!("instruction {at}"), rows.len(), columns.len())?;
        }
    }
    for (at, output) in outputs.iter().enumerate() {
        let register = output.value.0;
        let &element = types.get(register).ok_or(FusedLoopError::Register { inst: insts.len(), register })?;
        match &output.sink {
            Sink::Memory(place) => access(format!("output {at}"), place)?,
            Sink::Tile => in_tile.push(element),
        }
    }
    match in_tile.windows(2).find(|pair| pair[0].byte_width() != pair[1].byte_width()) {
        Some(&[left, right]) => Err(FusedLoopError::Tile { left, right }),
        _ => Ok(()),
    }
}
