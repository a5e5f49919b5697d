//! The gradient of a softmax: which steps of the loop over the gradient by the weights it is.

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::cluster::{Body, BodyOp};
use crate::graph::ReduceKind;

/// A loop that sums weights times a factor over each row and computes each element from that sum. Steps are those of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftmaxGradient {
    /// The step that the weights are multiplied by.
    pub factor: usize,
    /// The steps that the factor depends on.
    pub factor_steps: Vec<usize>,
    /// The sum.
    pub sum: usize,
    /// The steps that the output depends on, without the sum and the steps only it depends on.
    pub output_steps: Vec<usize>,
}

/// Matches a body whose load `shares` are the weights. The sum is in f32 and linear in the weights, so it can be
/// taken of weights that are not normalised yet.
pub(super) fn softmax_gradient(body: &Body, shares: usize) -> Option<SoftmaxGradient> {
    let reduces = |at: &usize| matches!(body.steps[*at].op, BodyOp::Reduce(_));
    let mut sums = (0..body.steps.len()).filter(reduces);
    let sum = sums.next().filter(|_| sums.next().is_none())?;
    let &[contraction] = body.steps[sum].inputs.as_slice() else { return None };
    let times = matches!(body.steps[contraction].op, BodyOp::Elementwise(Function::Multiply));
    let added = matches!(body.steps[sum].op, BodyOp::Reduce(ReduceKind::Add));
    let in_f32 = [sum, contraction].iter().all(|&at| body.steps[at].element == ElementType::F32);
    let &[one, other] = body.steps[contraction].inputs.as_slice() else { return None };
    let factor = match (is_load(body, one, shares), is_load(body, other, shares)) {
        (true, false) => other,
        (false, true) => one,
        _ => return None,
    };
    let factor_steps = body.needed_above(factor, Some(sum));
    let alone =
        !factor_steps.iter().any(|&at| matches!(body.steps[at].op, BodyOp::Load(load) if load == shares));
    let last = body.steps.len().checked_sub(1).filter(|&last| last != sum)?;
    (times && added && in_f32 && alone && !factor_steps.contains(&sum)).then(|| SoftmaxGradient {
        factor,
        factor_steps,
        sum,
        output_steps: {
            let needed = body.needed_above(last, Some(sum));
            needed.into_iter().filter(|&at| at != sum).collect()
        },
    })
}

/// Whether a step is this load, or a float conversion of it.
fn is_load(body: &Body, mut at: usize, load: usize) -> bool {
    while let (BodyOp::Elementwise(Function::Convert), &[input]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
    {
        if !body.steps[at].element.is_float() {
            return false;
        }
        at = input;
    }
    matches!(body.steps[at].op, BodyOp::Load(known) if known == load)
}
