//! Deferred softmax division: weights that end in a division by a per-row scalar are divided after the second GEMM,
//! whose rows have fewer columns.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Epilogue};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Tensor};

/// A loop over rows whose result is the quotient of two of its values.
#[derive(Debug)]
pub(super) struct DeferredDivision {
    /// The loop, with the steps that dividend and divisor need.
    pub(super) body: Body,
    /// The step that is divided.
    pub(super) dividend: usize,
    /// The step of the divisor, which is the same for all columns.
    pub(super) divisor: usize,
}

impl DeferredDivision {
    /// The type of the quotient.
    pub(super) fn element(&self) -> ElementType {
        self.body.steps[self.dividend].element
    }
}

/// Splits a loop that ends in a division by a per-row scalar, or in a select between zero and such a division by a
/// per-row condition.
pub(super) fn deferred_division(weights: &Epilogue) -> Option<DeferredDivision> {
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
fn needed(mut body: Body, dividend: usize, divisor: usize) -> DeferredDivision {
    let mut needed = vec![false; body.steps.len()];
    (needed[dividend], needed[divisor]) = (true, true);
    for (at, step) in body.steps.iter().enumerate().rev() {
        if needed[at] {
            step.inputs.iter().for_each(|&input| needed[input] = true);
        }
    }
    let mut positions = Vec::with_capacity(needed.len());
    let mut kept = Vec::new();
    for (mut step, needed) in body.steps.into_iter().zip(needed) {
        positions.push(kept.len());
        if needed {
            step.inputs.iter_mut().for_each(|input| *input = positions[*input]);
            kept.push(step);
        }
    }
    body.steps = kept;
    DeferredDivision { body, dividend: positions[dividend], divisor: positions[divisor] }
}

/// Which steps vary with the column.
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
