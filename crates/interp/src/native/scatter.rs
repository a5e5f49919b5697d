//! Updates of parts of a tensor.

use warpforge_tensor::{ElementType, Tensor};

use super::for_numbers;
use super::number::Number;
use super::reduction_op::ReductionOp;
use crate::error::Result;

/// A run of neighbouring updates: to, from, and how many. The two advance by a step each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) count: usize,
    pub(crate) to_step: usize,
    pub(crate) from_step: usize,
}

/// How updates are combined with what is there; `None` where the general path is needed.
pub(crate) fn combiner(reduction: ReductionOp, element: ElementType) -> Option<Combine> {
    for_numbers!(element, T => match reduction {
        ReductionOp::Add => Some(combine::<T, _>(Number::add)),
        ReductionOp::Multiply => Some(combine::<T, _>(Number::multiply)),
        ReductionOp::Maximum => Some(combine::<T, _>(Number::larger)),
        ReductionOp::Minimum => Some(combine::<T, _>(Number::smaller)),
        ReductionOp::And | ReductionOp::Or | ReductionOp::Second => None,
    }, else None)
}

/// Combines a run of updates with what is there.
pub(crate) type Combine = Box<dyn Fn(&mut Tensor, &Tensor, Run) -> Result<()>>;

fn combine<T: Number, F: Fn(T, T) -> T + 'static>(function: F) -> Combine {
    Box::new(move |target, source, run| {
        let source = source.as_slice::<T>()?[run.from..].iter().step_by(run.from_step.max(1));
        let target = target.as_slice_mut::<T>()?[run.to..].iter_mut().step_by(run.to_step.max(1));
        for (place, &value) in target.zip(source).take(run.count) {
            *place = function(*place, value);
        }
        Ok(())
    })
}
