//! Weights that are quotients by a number of their row: rows of the result have fewer columns to divide than the weights.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Epilogue};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Tensor};

/// A loop over rows whose result would be the quotient of two of its steps.
#[derive(Debug)]
pub(in super::super) struct Quotient {
    /// The loop, with all steps that the two need.
    pub(in super::super) body: Body,
    /// The step that is divided.
    pub(in super::super) dividend: usize,
    /// The step that it is divided by, which is the same for all columns.
    pub(in super::super) divisor: usize,
}

impl Quotient {
    /// The type of the quotient.
    pub(super) fn element(&self) -> ElementType {
        self.body.steps[self.dividend].element
    }
}

/// A loop as a quotient, if it ends in a division by a number of the row, or in zero for some rows and such a division for
/// the others.
pub(super) fn quotient(weights: &Epilogue) -> Option<Quotient> {
    let varies = varying(weights);
    let mut body = weights.body.clone();
    let last = body.steps.len().checked_sub(1)?;
    let element = body.steps[last].element;
    let division = |at: usize| match (&body.steps[at].op, &body.steps[at].inputs[..]) {
        (BodyOp::Elementwise(Function::Divide), &[dividend, divisor])
            if varies[dividend] && !varies[divisor] =>
        {
            Some([dividend, divisor])
        }
        _ => None,
    };
    if let Some([dividend, divisor]) = division(last) {
        return Some(needed(body, dividend, divisor));
    }
    let (&BodyOp::Elementwise(Function::Select), &[chosen, then, otherwise]) =
        (&body.steps[last].op, &body.steps[last].inputs[..])
    else {
        return None;
    };
    let zero_first = is_zero(&body, then);
    let zero = if zero_first { then } else { otherwise };
    let [dividend, divisor] = division(if zero_first { otherwise } else { then })?;
    if varies[chosen] || !is_zero(&body, zero) {
        return None;
    }
    // Rows of zeros are divided by one.
    let one = Tensor::scalar(element, Scalar::Float(1.0)).ok()?;
    body.steps.push(BodyStep { op: BodyOp::Constant(one), inputs: Vec::new(), element });
    let one = last + 1;
    let mut select = |number: usize, other: usize| {
        let inputs = if zero_first { vec![chosen, other, number] } else { vec![chosen, number, other] };
        body.steps.push(BodyStep { op: BodyOp::Elementwise(Function::Select), inputs, element });
        body.steps.len() - 1
    };
    let (dividend, divisor) = (select(dividend, zero), select(divisor, one));
    Some(needed(body, dividend, divisor))
}

/// The quotient of two steps, without those that neither needs.
fn needed(mut body: Body, dividend: usize, divisor: usize) -> Quotient {
    let mut needed = vec![false; body.steps.len()];
    (needed[dividend], needed[divisor]) = (true, true);
    for (at, step) in body.steps.iter().enumerate().rev() {
        if needed[at] {
            step.inputs.iter().for_each(|&input| needed[input] = true);
        }
    }
    let mut places = Vec::with_capacity(needed.len());
    let mut kept = Vec::new();
    for (mut step, needed) in body.steps.into_iter().zip(needed) {
        places.push(kept.len());
        if needed {
            step.inputs.iter_mut().for_each(|input| *input = places[*input]);
            kept.push(step);
        }
    }
    body.steps = kept;
    Quotient { body, dividend: places[dividend], divisor: places[divisor] }
}

/// Which steps differ from column to column.
fn varying(weights: &Epilogue) -> Vec<bool> {
    let Epilogue { body, tile, rows } = weights;
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

fn is_zero(body: &Body, step: usize) -> bool {
    matches!(&body.steps[step].op, BodyOp::Constant(tensor) if !tensor.is_empty() && tensor.get(0).to_f64() == 0.0)
}
