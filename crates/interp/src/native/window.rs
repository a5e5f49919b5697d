//! Windows that move over a tensor.

use warpforge_tensor::{Native, Shape, Tensor};

use super::number::{Integer, Number, Real};
use super::reduction_op::{Comparison, ReductionOp};
use super::sum::{Accumulator, Plain, Sum};
use super::{Threads, for_floats, for_ints, for_numbers};
use crate::error::Result;

/// Where the elements of windows are: for each dimension and each window along it, the offsets of its elements that are
/// inside, in order.
pub(crate) struct Taps {
    axes: Vec<Vec<Vec<usize>>>,
    counts: Shape,
}

/// Deepest nesting of dimensions: threads have small stacks.
const MAX_RANK: usize = 16;

impl Taps {
    /// From the position of element `offset` of window `window` along `axis`, where it is inside; `None` when there are too
    /// many dimensions.
    pub(crate) fn new(
        counts: &Shape,
        sizes: &[usize],
        strides: &[usize],
        position: impl Fn(usize, usize, usize) -> Option<usize>,
    ) -> Option<Self> {
        if counts.rank() > MAX_RANK {
            return None;
        }
        let window = |axis: usize, window: usize| {
            let offsets = (0..sizes[axis]).filter_map(|offset| position(axis, window, offset));
            offsets.map(|at| at * strides[axis]).collect()
        };
        let axis = |axis: usize| (0..counts.dims()[axis]).map(|at| window(axis, at)).collect();
        Some(Self { axes: (0..counts.rank()).map(axis).collect(), counts: counts.clone() })
    }

    /// Calls `visit` with the position of every element of a window that is inside, in order.
    #[inline(always)]
    fn each(&self, window: &[usize], visit: &mut impl FnMut(usize)) {
        let axes: Vec<&[usize]> = self.axes.iter().zip(window).map(|(axis, &at)| &*axis[at]).collect();
        nested(&axes, 0, visit);
    }
}

fn nested(axes: &[&[usize]], base: usize, visit: &mut impl FnMut(usize)) {
    match axes {
        [] => visit(base),
        [last] => last.iter().for_each(|offset| visit(base + offset)),
        [first, rest @ ..] => first.iter().for_each(|offset| nested(rest, base + offset, visit)),
    }
}

/// Reduces every window; `None` where the general path is needed.
pub(crate) fn reduce_window(
    threads: Threads,
    reduction: ReductionOp,
    input: &Tensor,
    init: &Tensor,
    taps: &Taps,
) -> Result<Option<Tensor>> {
    let element = input.element_type();
    if init.element_type() != element || init.is_empty() {
        return Ok(None);
    }
    let job = Job { threads, input, taps };
    for_floats!(element, T => return job.floats::<T>(reduction, init.as_slice()?[0]), else {});
    for_ints!(element, T => job.ints::<T>(reduction, init.as_slice()?[0]), else Ok(None))
}

struct Job<'a> {
    threads: Threads,
    input: &'a Tensor,
    taps: &'a Taps,
}

impl Job<'_> {
    // Padding takes part with the initial value. That may be left out only where it changes nothing.

    fn floats<T: Real>(&self, reduction: ReductionOp, init: T) -> Result<Option<Tensor>> {
        match reduction {
            ReductionOp::Add if init.to_f64() == 0.0 && init.to_f64().is_sign_positive() => {
                self.typed(&Sum::new(init))
            }
            ReductionOp::Multiply if init.to_f64() == 1.0 => {
                self.typed(&Plain { value: init, function: T::multiply })
            }
            _ => self.extremes(reduction, init),
        }
    }

    fn ints<T: Integer>(&self, reduction: ReductionOp, init: T) -> Result<Option<Tensor>> {
        let zero = init.subtract(init);
        match reduction {
            ReductionOp::Add if init == zero => self.typed(&Plain { value: init, function: T::add }),
            _ => self.extremes(reduction, init),
        }
    }

    fn extremes<T: Number>(&self, reduction: ReductionOp, value: T) -> Result<Option<Tensor>> {
        match reduction {
            ReductionOp::Maximum => self.typed(&Plain { value, function: T::larger }),
            ReductionOp::Minimum => self.typed(&Plain { value, function: T::smaller }),
            _ => Ok(None),
        }
    }

    fn typed<T: Native, F: Accumulator<T> + Sync>(&self, start: &F) -> Result<Option<Tensor>> {
        let input = self.input.as_slice::<T>()?;
        let mut result = Tensor::zeros(T::ELEMENT, self.taps.counts.clone())?;
        let elements: usize =
            self.taps.axes.iter().map(|axis| axis.first().map_or(1, Vec::len).max(1)).product();
        self.threads.pieces(result.as_slice_mut()?, 1, 4 * elements, &|first, piece| {
            let mut window = self.taps.counts.index(first);
            for place in piece {
                let mut accumulator = start.clone();
                self.taps.each(&window, &mut |position| accumulator.take(input[position]));
                *place = accumulator.outcome();
                advance(&mut window, self.taps.counts.dims());
            }
        });
        Ok(Some(result))
    }
}

/// The next index in row-major order.
fn advance(index: &mut [usize], dims: &[usize]) {
    for (at, &dim) in index.iter_mut().zip(dims).rev() {
        *at += 1;
        if *at < dim {
            return;
        }
        *at = 0;
    }
}

/// Adds every element of `source` to the element that its window selects; `None` where the general path is needed.
pub(crate) fn select_and_scatter(
    select: Comparison,
    operand: &Tensor,
    source: &Tensor,
    init: &Tensor,
    taps: &Taps,
) -> Result<Option<Tensor>> {
    let element = operand.element_type();
    if source.element_type() != element
        || init.element_type() != element
        || init.is_empty()
        || select.arguments != (0, 1)
    {
        return Ok(None);
    }
    for_numbers!(element, T => scatter::<T>(select, operand, source, init, taps).map(Some), else Ok(None))
}

fn scatter<T: Number>(
    select: Comparison,
    operand: &Tensor,
    source: &Tensor,
    init: &Tensor,
    taps: &Taps,
) -> Result<Tensor> {
    let (values, sources) = (operand.as_slice::<T>()?, source.as_slice::<T>()?);
    let mut result = Tensor::splat(T::ELEMENT, operand.shape().clone(), init.get(0))?;
    let sums = result.as_slice_mut::<T>()?;
    let mut window = vec![0; taps.counts.rank()];
    for &value in sources {
        let mut selected = None;
        taps.each(&window, &mut |candidate| {
            selected = match selected {
                Some(best) if select.holds(values[best], values[candidate]) => Some(best),
                _ => Some(candidate),
            };
        });
        if let Some(position) = selected {
            sums[position] = sums[position].add(value);
        }
        advance(&mut window, taps.counts.dims());
    }
    Ok(result)
}
