//! Which steps of a loop with reductions are computed when, and which once for a row.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::OpKind;
use warpforge_tensor::ElementType;

use crate::options::Effort;
use crate::types::{computed, stored};

/// What is known about the steps of a body.
pub(super) struct Stages {
    /// The stage that a step is first computed in: how many reductions, one after the other, it waits for, or more.
    pub(super) level: Vec<usize>,
    /// Whether a step has one value for a whole row.
    pub(super) uniform: Vec<bool>,
    /// Stages: the largest level and one.
    pub(super) count: usize,
    /// Without effort, divisions are divisions.
    effort: Effort,
}

impl Stages {
    pub(super) fn new(body: &Body, effort: Effort) -> Self {
        let constant_along = |strides: &[isize]| {
            body.dims.iter().enumerate().all(|(at, &dim)| !body.reduced[at] || dim == 1 || strides[at] == 0)
        };
        let mut level: Vec<usize> = Vec::new();
        let mut uniform: Vec<bool> = Vec::new();
        for step in &body.steps {
            let below = step.inputs.iter().map(|&input| level[input]).max().unwrap_or(0);
            let same = step.inputs.iter().all(|&input| uniform[input]);
            let (at, one) = match &step.op {
                BodyOp::Load(load) => (0, constant_along(&body.loads[*load].view.strides)),
                BodyOp::Iota(view) => (0, constant_along(&view.strides)),
                BodyOp::Reduce(_) => (below + 1, true),
                _ => (below, same),
            };
            level.push(at);
            uniform.push(one);
        }
        let count = level.iter().max().map_or(1, |most| most + 1);
        let mut stages = Self { level, uniform, count, effort };
        stages.put_off(body);
        stages
    }

    /// What is the same in all rows (a norm's weights) is computed where it is used first: it comes from near caches, and
    /// until then it would take registers from rows that are on their way.
    fn put_off(&mut self, body: &Body) {
        let same_in_rows = |strides: &[isize]| {
            body.dims.iter().enumerate().all(|(at, &dim)| body.reduced[at] || dim == 1 || strides[at] == 0)
        };
        let mut shared: Vec<bool> = Vec::new();
        for step in &body.steps {
            shared.push(match &step.op {
                BodyOp::Load(load) => same_in_rows(&body.loads[*load].view.strides),
                BodyOp::Iota(view) => same_in_rows(&view.strides),
                BodyOp::Reduce(_) => false,
                _ => step.inputs.iter().all(|&input| shared[input]),
            });
        }
        let mut first = vec![None; body.steps.len()];
        if let Some(last) = first.last_mut() {
            *last = Some(self.count - 1);
        }
        for (at, step) in body.steps.iter().enumerate().rev() {
            if shared[at] && !self.uniform[at] {
                self.level[at] = first[at].unwrap_or(self.level[at]);
            }
            let stage = self.stage(body, at);
            for &input in &step.inputs {
                first[input] = Some(first[input].map_or(stage, |known: usize| known.min(stage)));
            }
        }
    }

    /// The stage whose pass takes the inputs of a step.
    fn stage(&self, body: &Body, at: usize) -> usize {
        match body.steps[at].op {
            BodyOp::Reduce(_) => self.level[at] - 1,
            _ => self.level[at],
        }
    }

    /// What divisions of elements by a step with one value for a row need of it, computed once.
    pub(super) fn divisor(&self, body: &Body, at: usize) -> Option<String> {
        let divides = |by: usize| self.divided(body, by).is_some_and(|(_, divisor)| divisor == at);
        (0..body.steps.len()).any(divides).then(|| format!("const wf_divisor d{at}(s{at});"))
    }

    /// The dividend and divisor of a step that divides each element by one value for the row; constants are left to the
    /// compiler.
    fn divided(&self, body: &Body, at: usize) -> Option<(usize, usize)> {
        let step = &body.steps[at];
        let [a, by] = step.inputs[..] else { return None };
        let known = self.effort == Effort::Fast
            && matches!(step.op, BodyOp::Elementwise(OpKind::Divide))
            && is_float(step.element);
        let one = self.uniform[by] && !matches!(body.steps[by].op, BodyOp::Constant(_));
        (known && one && !self.uniform[a]).then_some((a, by))
    }

    /// The quotient of an element and a value for the row; one that is only kept in fewer bits is computed with fewer steps.
    pub(super) fn quotient(&self, body: &Body, at: usize) -> Option<String> {
        let (a, by) = self.divided(body, at)?;
        let narrow = |at: usize| {
            let element = body.steps[at].element;
            is_float(element) && stored(element).is_ok_and(|ty| ty != "float")
        };
        let mut users =
            (0..body.steps.len()).filter(|&user| body.steps[user].inputs.contains(&at)).peekable();
        let narrowed = users.peek().is_some()
            && users.all(|user| {
                matches!(body.steps[user].op, BodyOp::Elementwise(OpKind::Convert)) && narrow(user)
            });
        let name = if narrow(at) || narrowed { "wf_div_near" } else { "wf_div" };
        Some(format!("{name}(s{a}, d{by})"))
    }

    /// The reductions that a stage's pass over the row computes.
    pub(super) fn reduces(&self, body: &Body, stage: usize) -> Vec<usize> {
        let is = |at: &usize| matches!(body.steps[*at].op, BodyOp::Reduce(_)) && self.level[*at] == stage + 1;
        (0..body.steps.len()).filter(is).collect()
    }

    /// The steps, one value for each element, whose values later stages use too.
    pub(super) fn crossing(&self, body: &Body) -> Vec<usize> {
        let mut crosses = vec![false; body.steps.len()];
        for (at, step) in body.steps.iter().enumerate() {
            let stage = self.stage(body, at);
            if self.uniform[at] && !matches!(step.op, BodyOp::Reduce(_)) {
                continue;
            }
            for &input in &step.inputs {
                crosses[input] |= !self.uniform[input] && self.level[input] < stage;
            }
        }
        (0..body.steps.len()).filter(|&at| crosses[at]).collect()
    }

    /// The steps, one value for each element, that a stage computes or takes from earlier ones, in order; `kept` are
    /// not computed again after their own stage.
    pub(super) fn needed(&self, body: &Body, stage: usize, kept: &[usize]) -> Vec<usize> {
        let mut wanted = vec![false; body.steps.len()];
        let last = body.steps.len() - 1;
        wanted[last] |= stage + 1 == self.count && !self.uniform[last];
        for at in self.reduces(body, stage) {
            body.steps[at].inputs.iter().for_each(|&input| wanted[input] = true);
        }
        for &at in kept {
            wanted[at] |= self.level[at] == stage;
        }
        for at in (0..body.steps.len()).rev() {
            let from_before = kept.contains(&at) && self.level[at] < stage;
            if wanted[at] && !self.uniform[at] && !from_before {
                body.steps[at].inputs.iter().for_each(|&input| wanted[input] = true);
            }
        }
        (0..body.steps.len()).filter(|&at| wanted[at] && !self.uniform[at]).collect()
    }
}

/// Whether numbers of a type are computed with as `float`.
fn is_float(element: ElementType) -> bool {
    computed(element).is_ok_and(|ty| ty == "float")
}
