//! Reductions along dimensions.

use warpforge_tensor::{ElementType, Native, Shape, Tensor};

use super::number::{Integer, Number, Real};
use super::reduction_op::ReductionOp;
use super::sum::{Accumulator, Plain, Sum};
use super::{Threads, for_floats, for_ints};
use crate::error::Result;

/// Reduces a tensor along some dimensions, starting from `init`; `None` where the general path is needed.
pub(crate) fn reduce(
    threads: Threads,
    reduction: ReductionOp,
    input: &Tensor,
    init: &Tensor,
    reduced: &[usize],
    target: &Shape,
) -> Result<Option<Tensor>> {
    let element = input.element_type();
    if init.element_type() != element || init.is_empty() || input.is_empty() {
        return Ok(None);
    }
    let job = Job { threads, layout: Layout::new(input.shape(), reduced), input, target };
    if element == ElementType::Bool {
        return job.truths(reduction, init.bytes()[0] != 0);
    }
    for_floats!(element, T => return job.floats::<T>(reduction, init.as_slice()?[0]), else {});
    for_ints!(element, T => job.ints::<T>(reduction, init.as_slice()?[0]), else Ok(None))
}

/// Where the elements of a reduction are: for each element of the result, `kept` and `reduced` positions add up. The last
/// dimension, or those that go together with it, are apart.
struct Layout {
    kept: Vec<usize>,
    reduced: Vec<usize>,
    /// How many neighbours the innermost loop takes.
    inner: usize,
    /// Whether those are reduced; else there is a result for each.
    inner_reduced: bool,
}

impl Layout {
    fn new(shape: &Shape, reduced: &[usize]) -> Self {
        let rank = shape.rank();
        let is_reduced = |axis: usize| reduced.contains(&axis);
        let inner_reduced = rank > 0 && is_reduced(rank - 1);
        let split = (0..rank).rev().take_while(|&axis| is_reduced(axis) == inner_reduced).last().unwrap_or(0);
        let offsets = |wanted: bool| {
            let mut offsets = vec![0];
            let strides = shape.strides();
            for axis in (0..split).filter(|&axis| is_reduced(axis) == wanted) {
                let step = |start: usize| (0..shape.dims()[axis]).map(move |at| (start, at));
                offsets = offsets
                    .into_iter()
                    .flat_map(step)
                    .map(|(start, at)| start + at * strides[axis])
                    .collect();
            }
            offsets
        };
        let inner = shape.dims()[split..].iter().product();
        Self { kept: offsets(false), reduced: offsets(true), inner, inner_reduced }
    }
}

struct Job<'a> {
    threads: Threads,
    layout: Layout,
    input: &'a Tensor,
    target: &'a Shape,
}

impl Job<'_> {
    fn floats<T: Real>(&self, reduction: ReductionOp, init: T) -> Result<Option<Tensor>> {
        match reduction {
            ReductionOp::Add => self.typed(&Sum::new(init)),
            _ => self.numbers(reduction, init),
        }
    }

    fn ints<T: Integer>(&self, reduction: ReductionOp, value: T) -> Result<Option<Tensor>> {
        match reduction {
            ReductionOp::Add => self.typed(&Plain { value, function: T::add }),
            ReductionOp::And => self.typed(&Plain { value, function: T::and }),
            ReductionOp::Or => self.typed(&Plain { value, function: T::or }),
            _ => self.numbers(reduction, value),
        }
    }

    fn numbers<T: Number>(&self, reduction: ReductionOp, value: T) -> Result<Option<Tensor>> {
        match reduction {
            ReductionOp::Multiply => self.typed(&Plain { value, function: T::multiply }),
            ReductionOp::Maximum => self.typed(&Plain { value, function: T::larger }),
            ReductionOp::Minimum => self.typed(&Plain { value, function: T::smaller }),
            ReductionOp::Add | ReductionOp::And | ReductionOp::Or | ReductionOp::Second => Ok(None),
        }
    }

    fn truths(&self, reduction: ReductionOp, init: bool) -> Result<Option<Tensor>> {
        let function: fn(u8, u8) -> u8 = match reduction {
            ReductionOp::And | ReductionOp::Multiply | ReductionOp::Minimum => {
                |a, b| u8::from(a != 0 && b != 0)
            }
            ReductionOp::Or | ReductionOp::Add | ReductionOp::Maximum => |a, b| u8::from(a != 0 || b != 0),
            ReductionOp::Second => return Ok(None),
        };
        let mut result = Tensor::zeros(ElementType::Bool, self.target.clone())?;
        self.fill(&Plain { value: u8::from(init), function }, self.input.bytes(), result.bytes_mut());
        Ok(Some(result))
    }

    fn typed<T: Native, F: Accumulator<T> + Sync>(&self, start: &F) -> Result<Option<Tensor>> {
        let mut result = Tensor::zeros(T::ELEMENT, self.target.clone())?;
        self.fill(start, self.input.as_slice()?, result.as_slice_mut()?);
        Ok(Some(result))
    }

    fn fill<T: Copy + Send + Sync, F: Accumulator<T> + Sync>(
        &self,
        start: &F,
        input: &[T],
        result: &mut [T],
    ) {
        let Layout { kept, reduced, inner, inner_reduced } = &self.layout;
        if *inner_reduced {
            let cost = reduced.len() * inner;
            return self.threads.pieces(result, 1, cost, &|first, piece| {
                for (place, &base) in piece.iter_mut().zip(&kept[first..]) {
                    let mut accumulator = start.clone();
                    for &offset in reduced {
                        accumulator.take_all(&input[base + offset..][..*inner]);
                    }
                    *place = accumulator.outcome();
                }
            });
        }
        self.threads.pieces(result, 1, reduced.len(), &|first, piece| {
            let mut done = 0;
            while done < piece.len() {
                // As much of a row as is in the piece.
                let (row, column) = ((first + done) / inner, (first + done) % inner);
                let length = (inner - column).min(piece.len() - done);
                let mut accumulators = vec![start.clone(); length];
                for &offset in reduced {
                    let source = &input[kept[row] + offset + column..][..length];
                    accumulators
                        .iter_mut()
                        .zip(source)
                        .for_each(|(accumulator, &value)| accumulator.take(value));
                }
                for (place, accumulator) in piece[done..done + length].iter_mut().zip(&accumulators) {
                    *place = accumulator.outcome();
                }
                done += length;
            }
        });
    }
}
