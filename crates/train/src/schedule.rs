//! Learning-rate schedules: a factor from the number of updates so far.

use std::f64::consts::PI;

use warpforge_ir::build::BuildError;
use warpforge_ir::{OpKind, ValueId};

use crate::emit::Emit;

/// How the learning rate changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Updates during which the rate grows from zero, linearly.
    pub warmup: u64,
    /// What it does then.
    pub shape: Shape,
}

/// How the learning rate changes after warm-up.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Not at all.
    Constant,
    /// Multiplied by `gamma` after every `every` updates.
    Step {
        /// Updates between two changes.
        every: u64,
        /// The factor of a change.
        gamma: f64,
    },
    /// Multiplied by `gamma` at certain updates, which are counted from the first, warm-up included.
    Milestones {
        /// The updates.
        at: Vec<u64>,
        /// The factor of a change.
        gamma: f64,
    },
    /// To zero at update `total`, linearly.
    Linear {
        /// All updates, warm-up included.
        total: u64,
    },
    /// To zero at update `total`, as half a cosine.
    Cosine {
        /// All updates, warm-up included.
        total: u64,
    },
}

impl Schedule {
    /// The factor after so many updates.
    #[must_use]
    pub fn factor(&self, updates: u64) -> f64 {
        let warmup = self.warmup;
        if updates < warmup {
            return updates as f64 / warmup as f64;
        }
        let after = (updates - warmup) as f64;
        let rest = |total: u64| total.saturating_sub(warmup).max(1) as f64;
        match &self.shape {
            Shape::Constant => 1.0,
            Shape::Step { every, gamma } => gamma.powf((after / (*every).max(1) as f64).floor()),
            Shape::Milestones { at, gamma } => {
                gamma.powf(at.iter().filter(|&&milestone| updates >= milestone).count() as f64)
            }
            &Shape::Linear { total } => ((total as f64 - updates as f64) / rest(total)).max(0.0),
            &Shape::Cosine { total } => (0.5 * (1.0 + (PI * (after / rest(total))).cos())).max(0.0),
        }
    }

    /// The factor as operations, from the number of updates in f64.
    pub(crate) fn emit(&self, emit: &mut Emit<'_, '_>, updates: ValueId) -> Result<ValueId, BuildError> {
        let warmup = self.warmup;
        let rest = |total: u64| total.saturating_sub(warmup).max(1) as f64;
        let first = emit.f64(warmup as f64)?;
        let zero = emit.f64(0.0)?;
        let factor = match &self.shape {
            Shape::Constant => emit.f64(1.0)?,
            Shape::Step { every, gamma } => {
                let (every, gamma) = (emit.f64((*every).max(1) as f64)?, emit.f64(*gamma)?);
                let after = emit.sub(updates, first)?;
                let periods = emit.div(after, every)?;
                let periods = emit.b.unary(OpKind::Floor, periods)?;
                emit.b.binary(OpKind::Power, gamma, periods)?
            }
            Shape::Milestones { at, gamma } => {
                let (gamma, one) = (emit.f64(*gamma)?, emit.f64(1.0)?);
                let mut passed = zero;
                for &milestone in at {
                    let milestone = emit.f64(milestone as f64)?;
                    let before = emit.less(updates, milestone)?;
                    let counted = emit.b.select(before, zero, one)?;
                    passed = emit.add(passed, counted)?;
                }
                emit.b.binary(OpKind::Power, gamma, passed)?
            }
            &Shape::Linear { total } => {
                let (end, rest) = (emit.f64(total as f64)?, emit.f64(rest(total))?);
                let left = emit.sub(end, updates)?;
                let factor = emit.div(left, rest)?;
                emit.b.binary(OpKind::Maximum, factor, zero)?
            }
            &Shape::Cosine { total } => {
                let (rest, pi) = (emit.f64(rest(total))?, emit.f64(PI)?);
                let after = emit.sub(updates, first)?;
                let progress = emit.div(after, rest)?;
                let angle = emit.mul(pi, progress)?;
                let cosine = emit.b.unary(OpKind::Cosine, angle)?;
                let (one, half) = (emit.f64(1.0)?, emit.f64(0.5)?);
                let sum = emit.add(one, cosine)?;
                let factor = emit.mul(half, sum)?;
                emit.b.binary(OpKind::Maximum, factor, zero)?
            }
        };
        if warmup == 0 {
            return Ok(factor);
        }
        let growing = emit.div(updates, first)?;
        let warming = emit.less(updates, first)?;
        emit.b.select(warming, growing, factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_start_and_end_where_they_should() {
        let at = |shape: Shape, updates| Schedule { warmup: 4, shape }.factor(updates);
        for shape in [
            Shape::Constant,
            Shape::Step { every: 3, gamma: 0.1 },
            Shape::Milestones { at: vec![8, 11], gamma: 0.1 },
            Shape::Linear { total: 12 },
            Shape::Cosine { total: 12 },
        ] {
            assert_eq!(
                [0, 1, 2, 4].map(|updates| at(shape.clone(), updates)),
                [0.0, 0.25, 0.5, 1.0],
                "{shape:?}"
            );
        }
        assert_eq!(at(Shape::Linear { total: 12 }, 8), 0.5);
        assert!((at(Shape::Cosine { total: 12 }, 8) - 0.5).abs() < 1e-15);
        assert_eq!(at(Shape::Linear { total: 12 }, 20), 0.0);
        assert_eq!([6, 7].map(|updates| at(Shape::Step { every: 3, gamma: 0.5 }, updates)), [1.0, 0.5]);
        let milestones = || Shape::Milestones { at: vec![8, 11], gamma: 0.5 };
        assert_eq!([7, 8, 10, 11].map(|updates| at(milestones(), updates)), [1.0, 0.5, 0.5, 0.25]);
    }
}
