//! Deferred softmax division: weights that are a quotient by a per-row scalar are divided after the second GEMM, whose
//! rows have fewer columns.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, DeferredDivision, Epilogue, ZeroRows};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{Scalar, Tensor};

/// A loop over rows that ends in a dividend and a divisor instead of their quotient.
#[derive(Debug)]
pub(super) struct DividendLoop {
    /// The loop, with the steps that dividend and divisor need.
    pub(super) body: Body,
    /// The step that is divided.
    pub(super) dividend: usize,
    /// The step of the divisor, which is the same for all columns.
    pub(super) divisor: usize,
}

impl DividendLoop {
    /// The loop of weights without their division.
    pub(super) fn new(weights: &Epilogue, division: &DeferredDivision) -> Option<Self> {
        let mut body = weights.body.clone();
        let &DeferredDivision { mut dividend, mut divisor, zeros, .. } = division;
        if let Some(ZeroRows { condition, when, zero }) = zeros {
            // Rows of zeros are divided by one.
            let element = body.steps[dividend].element;
            let one = Tensor::scalar(element, Scalar::Float(1.0)).ok()?;
            body.steps.push(BodyStep { op: BodyOp::Constant(one), inputs: Vec::new(), element });
            let one = body.steps.len() - 1;
            let mut select = |of_zeros: usize, of_others: usize| {
                let [then, otherwise] = if when { [of_zeros, of_others] } else { [of_others, of_zeros] };
                let inputs = vec![condition, then, otherwise];
                body.steps.push(BodyStep { op: BodyOp::Elementwise(Function::Select), inputs, element });
                body.steps.len() - 1
            };
            (dividend, divisor) = (select(zero, dividend), select(one, divisor));
        }
        Some(needed(body, dividend, divisor))
    }
}

/// A loop without the steps that neither of two needs.
fn needed(mut body: Body, dividend: usize, divisor: usize) -> DividendLoop {
    let mut needed = vec![false; body.steps.len()];
    [dividend, divisor].iter().flat_map(|&step| body.needed(step)).for_each(|at| needed[at] = true);
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
    DividendLoop { body, dividend: positions[dividend], divisor: positions[divisor] }
}
