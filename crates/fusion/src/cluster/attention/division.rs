//! The division of weights that may be done after the second product.

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::cluster::{BodyOp, Epilogue};

/// Weights that are a quotient by one value for each row: rows of the second product may be divided instead, which have
/// fewer columns. Steps are those of the loop over the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferredDivision {
    /// What is divided.
    pub dividend: usize,
    /// What by.
    pub divisor: usize,
    /// The rows that are zeros instead.
    pub zeros: Option<ZeroRows>,
    /// The type that the quotients are rounded to.
    pub rounded: Option<ElementType>,
}

/// Rows that are zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZeroRows {
    /// The condition, the same for a whole row.
    pub condition: usize,
    /// The truth value that it has for them.
    pub when: bool,
    /// The step that is zero.
    pub zero: usize,
}

/// The division that a loop ends in.
pub(super) fn of(weights: &Epilogue) -> Option<DeferredDivision> {
    let (steps, varies) = (&weights.body.steps, varying(weights));
    let mut at = steps.len().checked_sub(1)?;
    let mut rounded = None;
    if let (BodyOp::Elementwise(Function::Convert), &[input]) = (&steps[at].op, steps[at].inputs.as_slice()) {
        (rounded, at) = (Some(steps[at].element), input);
    }
    let is_zero = |at: usize| matches!(&steps[at].op, BodyOp::Constant(tensor) if !tensor.is_empty() && tensor.get(0).to_f64() == 0.0);
    let mut zeros = None;
    if let (BodyOp::Elementwise(Function::Select), &[condition, then, otherwise]) =
        (&steps[at].op, steps[at].inputs.as_slice())
    {
        let (when, zero) = if is_zero(then) { (true, then) } else { (false, otherwise) };
        if varies[condition] || !is_zero(zero) {
            return None;
        }
        at = if when { otherwise } else { then };
        zeros = Some(ZeroRows { condition, when, zero });
    }
    match (&steps[at].op, steps[at].inputs.as_slice()) {
        (BodyOp::Elementwise(Function::Divide), &[dividend, divisor])
            if varies[dividend] && !varies[divisor] =>
        {
            Some(DeferredDivision { dividend, divisor, zeros, rounded })
        }
        _ => None,
    }
}

/// Which steps vary with the column.
fn varying(weights: &Epilogue) -> Vec<bool> {
    let Epilogue { body, tile, rows, .. } = weights;
    let along_columns = |strides: &[isize]| strides[*rows..].iter().any(|&stride| stride != 0);
    let mut varies: Vec<bool> = Vec::with_capacity(body.steps.len());
    for step in &body.steps {
        let of_step = match &step.op {
            BodyOp::Load(load) => load == tile || along_columns(&body.loads[*load].view.strides),
            BodyOp::Iota(view) => along_columns(&view.strides),
            BodyOp::Constant(_) | BodyOp::Reduce(_) => false,
            BodyOp::Elementwise(_) | BodyOp::Compare(..) => step.inputs.iter().any(|&input| varies[input]),
        };
        varies.push(of_step);
    }
    varies
}
