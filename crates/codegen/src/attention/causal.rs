//! Recognises causal masks: a query attends to the keys up to an offset from its own index.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::attr::ComparisonDirection;
use warpforge_tensor::elementwise::Function;

/// row · r + column · c + k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    row: isize,
    column: isize,
    constant: isize,
}

/// The offset between a row and the last column that it attends to, where a step is minus infinity for all later
/// columns. `rows` is the number of row dimensions of the body; the last of them indexes the rows of the GEMM.
pub(super) fn causal_offset(body: &Body, rows: usize, step: usize) -> Option<isize> {
    if rows == 0 || body.dims.len() != rows + 1 {
        return None;
    }
    let step = &body.steps[step];
    let (BodyOp::Elementwise(Function::Select), &[visible, _, other]) = (&step.op, step.inputs.as_slice())
    else {
        return None;
    };
    let BodyOp::Constant(nothing) = &body.steps[other].op else { return None };
    if nothing.get(0).to_f64() != f64::NEG_INFINITY {
        return None;
    }
    let visible = &body.steps[visible];
    let (BodyOp::Compare(direction, _), &[a, b]) = (&visible.op, visible.inputs.as_slice()) else {
        return None;
    };
    let (a, b) = (line(body, rows, a)?, line(body, rows, b)?);
    let difference =
        Line { row: a.row - b.row, column: a.column - b.column, constant: a.constant - b.constant };
    let upwards = (difference.row, difference.column) == (-1, 1);
    let downwards = (difference.row, difference.column) == (1, -1);
    match direction {
        ComparisonDirection::Le if upwards => Some(-difference.constant),
        ComparisonDirection::Lt if upwards => Some(-difference.constant - 1),
        ComparisonDirection::Ge if downwards => Some(difference.constant),
        ComparisonDirection::Gt if downwards => Some(difference.constant - 1),
        _ => None,
    }
}

/// A step as an affine function of row and column. Bodies are small, so shared steps are visited again.
fn line(body: &Body, rows: usize, step: usize) -> Option<Line> {
    let of = &body.steps[step];
    match (&of.op, of.inputs.as_slice()) {
        (BodyOp::Iota(view), _) => {
            let still = |at: usize| body.dims[at] == 1 || view.strides[at] == 0;
            (0..rows - 1).all(still).then_some(Line {
                row: view.strides[rows - 1],
                column: view.strides[rows],
                constant: view.offset,
            })
        }
        (BodyOp::Constant(tensor), _) if of.element.is_int() => {
            Some(Line { row: 0, column: 0, constant: isize::try_from(tensor.get(0).to_i128()).ok()? })
        }
        (BodyOp::Elementwise(Function::Convert), &[input]) if of.element.is_int() => line(body, rows, input),
        (BodyOp::Elementwise(kind @ (Function::Add | Function::Subtract)), &[a, b])
            if of.element.is_int() =>
        {
            let (a, b) = (line(body, rows, a)?, line(body, rows, b)?);
            let sign = if *kind == Function::Add { 1 } else { -1 };
            Some(Line {
                row: a.row + sign * b.row,
                column: a.column + sign * b.column,
                constant: a.constant + sign * b.constant,
            })
        }
        _ => None,
    }
}
