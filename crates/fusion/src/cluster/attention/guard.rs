//! Guards of softmax: the condition under which a row of weights is zeros.

use std::collections::HashMap;

use warpforge_interp::scalar;
use warpforge_ir::attr::ComparisonType;
use warpforge_tensor::{ElementType, Scalar};

use crate::cluster::{Body, BodyOp};

/// Rows that see a key, by their scores.
const SEEING: [[f64; 2]; 6] = [
    [0.0, f64::NEG_INFINITY],
    [f64::NEG_INFINITY, 1.5],
    [-1e30, f64::NEG_INFINITY],
    [f64::NEG_INFINITY, 3e38],
    [2.0, 3.0],
    [-3e38, -3e38],
];

/// The truth value that a condition has for rows of scores that are all minus infinity, where it has the other one for all other rows. The
/// condition is evaluated on rows of both kinds.
pub(super) fn is_of_empty_rows(body: &Body, scores: usize, condition: usize) -> Option<bool> {
    let empty = value(body, scores, condition, [f64::NEG_INFINITY; 2])?;
    SEEING.iter().all(|&row| value(body, scores, condition, row) == Some(!empty)).then_some(empty)
}

/// The condition for a row of two scores; none where it is not the same in both columns or depends on anything else.
fn value(body: &Body, scores: usize, condition: usize, row: [f64; 2]) -> Option<bool> {
    let mut known: HashMap<usize, [Scalar; 2]> = HashMap::new();
    let element = body.steps[scores].element;
    known.insert(scores, row.map(|score| Scalar::Float(score).rounded_to(element)));
    for at in body.needed(condition) {
        if known.contains_key(&at) {
            continue;
        }
        let step = &body.steps[at];
        let inputs: Option<Vec<[Scalar; 2]>> =
            step.inputs.iter().map(|input| known.get(input).copied()).collect();
        let elements: Vec<ElementType> = step.inputs.iter().map(|&input| body.steps[input].element).collect();
        // What does not depend on the scores alone is left out.
        let Some(inputs) = inputs else { continue };
        let column = |column: usize| inputs.iter().map(|input| input[column]).collect::<Vec<Scalar>>();
        let found = match &step.op {
            BodyOp::Constant(tensor) if !tensor.is_empty() => [tensor.get(0); 2],
            BodyOp::Elementwise(function) => {
                let Some(kernel) = scalar::of_function(*function, &elements, step.element) else { continue };
                [kernel(&column(0)), kernel(&column(1))]
            }
            BodyOp::Compare(direction, order) => {
                let total = *order == ComparisonType::TotalOrder;
                [0, 1].map(|at| {
                    let operands = column(at);
                    Scalar::Bool(scalar::compare(*direction, total, operands[0], operands[1]))
                })
            }
            BodyOp::Reduce(kind) => {
                let elements = [elements[0]; 2];
                let Some(kernel) = scalar::of_function(kind.function(), &elements, step.element) else {
                    continue;
                };
                [kernel(&inputs[0]); 2]
            }
            _ => continue,
        };
        known.insert(at, found);
    }
    match known.get(&condition)? {
        [Scalar::Bool(one), Scalar::Bool(other)] if one == other => Some(*one),
        _ => None,
    }
}
