//! Which steps of a loop with reductions are computed when, and which once for a row.

use warpforge_fusion::cluster::{Body, BodyOp};

/// What is known about the steps of a body.
pub(super) struct Stages {
    /// How many reductions, one after the other, a step waits for.
    pub(super) level: Vec<usize>,
    /// Whether a step has one value for a whole row.
    pub(super) uniform: Vec<bool>,
    /// Stages: the largest level and one.
    pub(super) count: usize,
}

impl Stages {
    pub(super) fn new(body: &Body) -> Self {
        let constant_along = |strides: &[isize]| {
            body.dims.iter().enumerate().all(|(at, &dim)| !body.folded[at] || dim == 1 || strides[at] == 0)
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
        Self { level, uniform, count }
    }

    /// The reductions that a stage's pass over the row computes.
    pub(super) fn folds(&self, body: &Body, stage: usize) -> Vec<usize> {
        let is = |at: &usize| matches!(body.steps[*at].op, BodyOp::Reduce(_)) && self.level[*at] == stage + 1;
        (0..body.steps.len()).filter(is).collect()
    }

    /// The steps, one value for each element, whose values later stages use too.
    pub(super) fn crossing(&self, body: &Body) -> Vec<usize> {
        let mut crosses = vec![false; body.steps.len()];
        for (at, step) in body.steps.iter().enumerate() {
            let stage = match step.op {
                BodyOp::Reduce(_) => self.level[at] - 1,
                _ => self.level[at],
            };
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
        for at in self.folds(body, stage) {
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
