//! Schedules the steps of a loop with reductions into stages.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::options::Effort;
use crate::types::{compute_type, storage_type};

/// The schedule of a body's steps.
pub(super) struct Stages {
    /// The first stage that computes a step: at least the number of reductions that it depends on in sequence.
    pub(super) level: Vec<usize>,
    /// Whether a step has one value per row.
    pub(super) uniform: Vec<bool>,
    /// The number of stages.
    pub(super) count: usize,
    /// Naive kernels use plain divisions.
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
        stages.sink_row_invariants(body);
        stages
    }

    /// Steps that are equal in all rows (the weights of a norm) are computed at their first use: they are cached, and
    /// earlier they would occupy registers.
    fn sink_row_invariants(&mut self, body: &Body) {
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

    /// The stage that reads the inputs of a step.
    fn stage(&self, body: &Body, at: usize) -> usize {
        match body.steps[at].op {
            BodyOp::Reduce(_) => self.level[at] - 1,
            _ => self.level[at],
        }
    }

    /// Emits the precomputed divisor of a row-uniform step that elements are divided by.
    pub(super) fn divisor(&self, body: &Body, at: usize) -> Option<String> {
        let divides = |by: usize| self.divided(body, by).is_some_and(|(_, divisor)| divisor == at);
        (0..body.steps.len()).any(divides).then(|| format!("const wf_divisor d{at}(s{at});"))
    }

    /// Dividend and divisor of a division by a row-uniform value. Constants are left to the compiler.
    fn divided(&self, body: &Body, at: usize) -> Option<(usize, usize)> {
        let step = &body.steps[at];
        let [a, by] = step.inputs[..] else { return None };
        let known = self.effort == Effort::Fast
            && matches!(step.op, BodyOp::Elementwise(Function::Divide))
            && is_float(step.element);
        let one = self.uniform[by] && !matches!(body.steps[by].op, BodyOp::Constant(_));
        (known && one && !self.uniform[a]).then_some((a, by))
    }

    /// The quotient of an element and a row-uniform value. Results that are only stored in a narrow type use a
    /// shorter sequence.
    pub(super) fn quotient(&self, body: &Body, at: usize) -> Option<String> {
        let (a, by) = self.divided(body, at)?;
        let narrow = |at: usize| {
            let element = body.steps[at].element;
            is_float(element) && storage_type(element).is_ok_and(|ty| ty != "float")
        };
        let mut users =
            (0..body.steps.len()).filter(|&user| body.steps[user].inputs.contains(&at)).peekable();
        let narrowed = users.peek().is_some()
            && users.all(|user| {
                matches!(body.steps[user].op, BodyOp::Elementwise(Function::Convert)) && narrow(user)
            });
        let name = if narrow(at) || narrowed { "wf_div_near" } else { "wf_div" };
        Some(format!("{name}(s{a}, d{by})"))
    }

    /// The reductions that a stage's pass over the row computes.
    pub(super) fn reduces(&self, body: &Body, stage: usize) -> Vec<usize> {
        let is = |at: &usize| matches!(body.steps[*at].op, BodyOp::Reduce(_)) && self.level[*at] == stage + 1;
        (0..body.steps.len()).filter(is).collect()
    }

    /// Per-element steps whose values later stages use.
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

    /// Per-element steps that a stage computes or reuses, in order; `kept` are not recomputed after their own stage.
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

/// Whether a type is computed as `float`.
fn is_float(element: ElementType) -> bool {
    compute_type(element).is_ok_and(|ty| ty == "float")
}
