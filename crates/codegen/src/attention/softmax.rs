//! Recognises a softmax in a loop over rows.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_fusion::graph::ReduceKind;
use warpforge_ir::attr::ComparisonDirection;
use warpforge_tensor::elementwise::Function;

/// A softmax over rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Softmax {
    /// The step whose softmax is taken.
    pub(super) scores: usize,
    /// The steps that it depends on.
    pub(super) needed: Vec<usize>,
    /// Whether rows of minus infinity give zeros.
    pub(super) safe: bool,
}

/// Matches a body that is a softmax of a value that depends on no reduction.
pub(super) fn softmax(body: &Body) -> Option<Softmax> {
    let elementwise =
        |at: usize, kind: Function| matches!(body.steps[at].op, BodyOp::Elementwise(known) if known == kind);
    let input = |at: usize, number: usize| body.steps[at].inputs.get(number).copied();
    let reduces =
        |at: usize, kind: ReduceKind| matches!(body.steps[at].op, BodyOp::Reduce(known) if known == kind);
    let number = |at: usize| match &body.steps[at].op {
        BodyOp::Constant(tensor) => Some(tensor.get(0).to_f64()),
        _ => None,
    };
    let mut at = body.steps.len().checked_sub(1)?;
    let mut guard = None;
    while !elementwise(at, Function::Divide) {
        if elementwise(at, Function::Convert) && body.steps[at].element.is_float() {
            at = input(at, 0)?;
        } else if elementwise(at, Function::Select) && guard.is_none() && number(input(at, 1)?) == Some(0.0) {
            guard = Some(input(at, 0)?);
            at = input(at, 2)?;
        } else {
            return None;
        }
    }
    let (part, total) = (input(at, 0)?, input(at, 1)?);
    let shifted = input(part, 0).filter(|_| elementwise(part, Function::Exponential))?;
    if !reduces(total, ReduceKind::Add)
        || input(total, 0)? != part
        || !elementwise(shifted, Function::Subtract)
    {
        return None;
    }
    let (scores, top) = (input(shifted, 0)?, input(shifted, 1)?);
    if !reduces(top, ReduceKind::Max) || input(top, 0)? != scores {
        return None;
    }
    if let Some(guard) = guard {
        let equal = matches!(body.steps[guard].op, BodyOp::Compare(ComparisonDirection::Eq, _));
        let of = [input(guard, 0)?, input(guard, 1)?];
        let nothing = of.contains(&top) && of.iter().any(|&side| number(side) == Some(f64::NEG_INFINITY));
        if !equal || !nothing {
            return None;
        }
    }
    let mut wanted = vec![false; body.steps.len()];
    wanted[scores] = true;
    for at in (0..=scores).rev() {
        if wanted[at] {
            if matches!(body.steps[at].op, BodyOp::Reduce(_)) {
                return None;
            }
            body.steps[at].inputs.iter().for_each(|&input| wanted[input] = true);
        }
    }
    let needed = (0..body.steps.len()).filter(|&at| wanted[at]).collect();
    Some(Softmax { scores, needed, safe: guard.is_some() })
}
