//! Recognises the gradient of a softmax in a loop over rows.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_fusion::graph::ReduceKind;
use warpforge_ir::OpKind;
use warpforge_tensor::ElementType;

/// A loop that sums weights times something over a row, and then computes each element from that sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slope {
    /// The step that the weights are multiplied by before they are summed.
    pub(super) factor: usize,
    /// The steps that this one needs.
    pub(super) of_factor: Vec<usize>,
    /// The sum.
    pub(super) sum: usize,
    /// The steps that the last one needs, the sum and what only it needs not among them.
    pub(super) of_last: Vec<usize>,
}

/// What a body is, where `shares` is its load of the weights. The sum is one of f32 and linear in the weights, so that it
/// may be taken of weights that are not divided by their own sum yet.
pub(super) fn slope(body: &Body, shares: usize) -> Option<Slope> {
    let reduces = |at: &usize| matches!(body.steps[*at].op, BodyOp::Reduce(_));
    let mut sums = (0..body.steps.len()).filter(reduces);
    let sum = sums.next().filter(|_| sums.next().is_none())?;
    let &[product] = body.steps[sum].inputs.as_slice() else { return None };
    let times = matches!(body.steps[product].op, BodyOp::Elementwise(OpKind::Multiply));
    let added = matches!(body.steps[sum].op, BodyOp::Reduce(ReduceKind::Add));
    let in_f32 = [sum, product].iter().all(|&at| body.steps[at].element == ElementType::F32);
    let &[one, other] = body.steps[product].inputs.as_slice() else { return None };
    let factor = match (is_load(body, one, shares), is_load(body, other, shares)) {
        (true, false) => other,
        (false, true) => one,
        _ => return None,
    };
    let of_factor = needed(body, factor, sum);
    let alone =
        !of_factor.iter().any(|&at| matches!(body.steps[at].op, BodyOp::Load(load) if load == shares));
    let last = body.steps.len().checked_sub(1).filter(|&last| last != sum)?;
    (times && added && in_f32 && alone && !of_factor.contains(&sum)).then(|| Slope {
        factor,
        of_factor,
        sum,
        of_last: needed(body, last, sum).into_iter().filter(|&at| at != sum).collect(),
    })
}

/// Whether a step is a load, perhaps as another type of floats.
fn is_load(body: &Body, mut at: usize, load: usize) -> bool {
    while let (BodyOp::Elementwise(OpKind::Convert), &[input]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
    {
        if !body.steps[at].element.is_float() {
            return false;
        }
        at = input;
    }
    matches!(body.steps[at].op, BodyOp::Load(known) if known == load)
}

/// The steps that a step needs, itself among them, in order; what is below `stop` is not looked at.
fn needed(body: &Body, step: usize, stop: usize) -> Vec<usize> {
    let mut wanted = vec![false; body.steps.len()];
    wanted[step] = true;
    for at in (0..=step).rev().filter(|&at| at != stop) {
        if wanted[at] {
            body.steps[at].inputs.iter().for_each(|&input| wanted[input] = true);
        }
    }
    (0..body.steps.len()).filter(|&at| wanted[at]).collect()
}
