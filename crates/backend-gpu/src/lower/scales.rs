//! Scales of operands of 8 bits, where what is done to a product is to multiply it by them.

use warpforge_fusion::cluster::{Body, BodyOp, Epilogue, single_stride};
use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use super::epilogue::{LibraryEpilogue, OperandScales};
use super::operands::Operands;
use crate::blas::ScaleMode;

/// What a product is multiplied by.
#[derive(Debug, Clone)]
enum Factor {
    Value(NodeId),
    Number(Tensor),
}

/// What a factor has an element for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    row: bool,
    column: bool,
}

/// The scales of both operands as the epilogue of a library: one of each, for all elements or for the rows of the left and the columns of the
/// right operand. `fast` says whether sums may keep fewer bits.
pub(super) fn of_library(
    operands: &mut Operands,
    epilogue: &Epilogue,
    output: NodeId,
    fast: bool,
) -> Result<Option<LibraryEpilogue>, String> {
    let Some((values, mode)) = scales(&operands.graph, epilogue, output) else { return Ok(None) };
    let [left, right] = values;
    let mut value = |factor| match factor {
        Factor::Value(id) => Ok(id),
        Factor::Number(tensor) => operands.constant(tensor),
    };
    let scales = OperandScales { values: [value(left)?, value(right)?], mode, fast };
    Ok(Some(LibraryEpilogue { scales: Some(scales), ..LibraryEpilogue::none(output) }))
}

fn scales(graph: &Graph, epilogue: &Epilogue, output: NodeId) -> Option<([Factor; 2], ScaleMode)> {
    let body = &epilogue.body;
    let float =
        |element| matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16));
    if !body.is_whole(graph, output) || !float(graph.node(output).element) {
        return None;
    }
    let mut at = body.before_conversions(body.steps.len().checked_sub(1)?)?;
    let mut factors = Vec::new();
    loop {
        let step = &body.steps[at];
        match (&step.op, step.inputs.as_slice()) {
            (BodyOp::Load(load), _) if *load == epilogue.tile => break,
            (BodyOp::Elementwise(Function::Multiply), &[a, b]) if step.element == ElementType::F32 => {
                let (factor, rest) = match factor(body, epilogue, a) {
                    Some(factor) => (factor, b),
                    None => (factor(body, epilogue, b)?, a),
                };
                factors.push(factor);
                at = rest;
            }
            _ => return None,
        }
    }
    let [first, second]: [(Factor, Extent); 2] = factors.try_into().ok()?;
    let of_rows = |extent: Extent| extent.row && !extent.column;
    let of_columns = |extent: Extent| extent.column && !extent.row;
    let scalar = |extent: Extent| !extent.row && !extent.column;
    let rows: usize = body.dims[..epilogue.rows].iter().product();
    let columns: usize = body.dims[epilogue.rows..].iter().product();
    if scalar(first.1) && scalar(second.1) {
        return Some(([first.0, second.0], ScaleMode::Tensor));
    }
    let is_left = |extent: Extent| of_rows(extent) || (scalar(extent) && rows == 1);
    let is_right = |extent: Extent| of_columns(extent) || (scalar(extent) && columns == 1);
    if is_left(first.1) && is_right(second.1) {
        Some(([first.0, second.0], ScaleMode::Row))
    } else if is_left(second.1) && is_right(first.1) {
        Some(([second.0, first.0], ScaleMode::Row))
    } else {
        None
    }
}

/// A factor of a product that lies in memory as libraries read it.
fn factor(body: &Body, epilogue: &Epilogue, at: usize) -> Option<(Factor, Extent)> {
    let step = &body.steps[at];
    if step.element != ElementType::F32 {
        return None;
    }
    match &step.op {
        BodyOp::Constant(tensor) => {
            Some((Factor::Number(tensor.clone()), Extent { row: false, column: false }))
        }
        BodyOp::Load(load) if *load != epilogue.tile => {
            let load = &body.loads[*load];
            let dims: Vec<usize> = (0..body.dims.len()).collect();
            let (rows, columns) = dims.split_at(epilogue.rows);
            let varies =
                |part: &[usize]| part.iter().any(|&at| load.view.strides[at] != 0 && body.dims[at] != 1);
            let extent = Extent { row: varies(rows), column: varies(columns) };
            let dense = |part: &[usize], varies: bool| !varies || single_stride(&load.view, part) == Some(1);
            let reads = load.view.offset == 0 && dense(rows, extent.row) && dense(columns, extent.column);
            (reads && !(extent.row && extent.column)).then_some((Factor::Value(load.value), extent))
        }
        _ => None,
    }
}
