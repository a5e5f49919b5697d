//! The softmax of attention: which steps of the loop over the scores it is, and what its scores are.

use std::fmt;

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

use super::expression::{ScoreLoop, Source};
use super::guard::is_of_empty_rows;
use super::mask::{Change, Mask, mask};
use crate::cluster::{Body, BodyOp};
use crate::graph::ReduceKind;
use crate::pattern::softmax::{Dataflow, SoftmaxValues, softmax};

/// The softmax that makes scores weights. Steps are those of the loop over the scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Softmax {
    /// The step whose softmax is taken: the product of queries and keys, scaled and masked.
    pub scores: usize,
    /// The steps that it depends on, itself included, in order.
    pub score_steps: Vec<usize>,
    /// The row maximum.
    pub max: usize,
    /// The sum of a row's exponentials.
    pub sum: usize,
    /// Whether the weights of a query that sees no key are zeros instead of NaN.
    pub safe: bool,
    /// What the product of queries and keys is multiplied by, where nothing but that and the mask makes it the scores.
    pub scale: Option<f64>,
    /// Which keys queries see.
    pub mask: Mask,
}

impl fmt::Display for Softmax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = self.mask.to_string();
        let mask = if mask.is_empty() { mask } else { format!("{mask} ") };
        write!(f, "{}{mask}softmax", if self.safe { "safe " } else { "" })
    }
}

/// The softmax that a loop over scores is. `by_queries` says whether the loop has dimensions for queries and for keys.
pub(super) fn of(score_loop: ScoreLoop<'_>, by_queries: bool) -> Option<Softmax> {
    let body = &score_loop.weights.body;
    let steps = Steps { body };
    let last = steps.through(body.steps.len().checked_sub(1)?);
    let chosen = match (steps.function(last), steps.operands(last)) {
        (Some(Function::Select), &[condition, then, otherwise]) => {
            if steps.number(then) == Some(0.0) {
                Some((condition, true, otherwise))
            } else {
                (steps.number(otherwise) == Some(0.0)).then_some((condition, false, then))
            }
        }
        _ => None,
    };
    let quotient = chosen.map_or(last, |(_, _, quotient)| quotient);
    let SoftmaxValues { scores, max, sum } = softmax(&steps, quotient)?;
    if let Some((condition, when, _)) = chosen
        && is_of_empty_rows(body, scores, condition) != Some(when)
    {
        return None;
    }
    let score_steps = body.needed(scores);
    if score_steps.iter().any(|&at| matches!(body.steps[at].op, BodyOp::Reduce(_))) {
        return None;
    }
    let (scale, changes) = changes(&steps, score_loop.weights.tile, scores);
    let mask = if by_queries { mask(score_loop, &changes) } else { Mask::of_unknown_queries(&changes) };
    Some(Softmax { scores, score_steps, max, sum, safe: chosen.is_some(), scale, mask })
}

/// What is done to the product of queries and keys before its softmax is taken, the first first; and what it is multiplied
/// by, where that and the mask are all.
fn changes(steps: &Steps<'_>, tile: usize, scores: usize) -> (Option<f64>, Vec<Change>) {
    let mut of_product: Vec<bool> = Vec::with_capacity(steps.body.steps.len());
    for step in &steps.body.steps {
        let of_tile = matches!(step.op, BodyOp::Load(load) if load == tile);
        of_product.push(of_tile || step.inputs.iter().any(|&input| of_product[input]));
    }
    let mut found = Vec::new();
    let mut scale = 1.0;
    let mut at = steps.through(scores);
    let is_product = loop {
        let (next, change) = match (steps.function(at), steps.operands(at)) {
            (None, _) => break matches!(steps.body.steps[at].op, BodyOp::Load(load) if load == tile),
            (Some(Function::Multiply), &[a, b]) => match (steps.number(a), steps.number(b)) {
                (Some(by), None) if by > 0.0 => (b, Change::Scale(by)),
                (None, Some(by)) if by > 0.0 => (a, Change::Scale(by)),
                _ => break false,
            },
            (Some(Function::Divide), &[a, b]) => match steps.number(b) {
                Some(by) if by > 0.0 => (a, Change::Scale(1.0 / by)),
                _ => break false,
            },
            (Some(Function::Add), &[a, b]) => match (of_product[a], of_product[b]) {
                (true, false) => (a, Change::Add(Source::Step(b))),
                (false, true) => (b, Change::Add(Source::Step(a))),
                _ => break false,
            },
            (Some(Function::Select), &[condition, then, otherwise]) => {
                let condition = Source::Step(condition);
                match (of_product[then], of_product[otherwise]) {
                    (true, false) => {
                        let fill = Source::Step(otherwise);
                        (then, Change::Replace { condition, when: false, fill })
                    }
                    (false, true) => {
                        (otherwise, Change::Replace { condition, when: true, fill: Source::Step(then) })
                    }
                    _ => break false,
                }
            }
            _ => break false,
        };
        if let Change::Scale(by) = change {
            scale *= by;
        }
        found.push(change);
        at = steps.through(next);
    };
    found.reverse();
    (is_product.then_some(scale), found)
}

/// The steps of a loop.
struct Steps<'b> {
    body: &'b Body,
}

impl Steps<'_> {
    /// The number that a step is.
    fn number(&self, step: usize) -> Option<f64> {
        match &self.body.steps[self.through(step)].op {
            BodyOp::Constant(tensor) if !tensor.is_empty() => Some(tensor.get(0).to_f64()),
            _ => None,
        }
    }
}

impl Dataflow for Steps<'_> {
    type Value = usize;

    /// The step before conversions between floats of up to 32 bits: kernels of attention compute in f32.
    fn through(&self, mut value: usize) -> usize {
        let float = |at: usize| {
            let element = self.body.steps[at].element;
            matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16))
        };
        while let (Some(Function::Convert), &[input]) = (self.function(value), self.operands(value))
            && float(value)
            && float(input)
        {
            value = input;
        }
        value
    }

    fn function(&self, value: usize) -> Option<Function> {
        match self.body.steps[value].op {
            BodyOp::Elementwise(function) => Some(function),
            _ => None,
        }
    }

    fn is_elementwise(&self, value: usize) -> bool {
        matches!(self.body.steps[value].op, BodyOp::Elementwise(_) | BodyOp::Compare(..))
    }

    fn reduction(&self, value: usize) -> Option<ReduceKind> {
        match self.body.steps[value].op {
            BodyOp::Reduce(kind) => Some(kind),
            _ => None,
        }
    }

    fn is_number(&self, value: usize) -> bool {
        matches!(self.body.steps[value].op, BodyOp::Constant(_))
    }

    fn operands(&self, value: usize) -> &[usize] {
        &self.body.steps[value].inputs
    }
}
