//! Reductions, windows, mapping and sorting: operations with a computation on scalars.

use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::Evaluator;
use super::shape::first_element;
use crate::Value;
use crate::cx::{Cx, one};
use crate::error::{Result, invalid};
use crate::machine::{Body, Machine};
use crate::native::reduction_op::{Comparison, ReductionOp};
use crate::native::window::Taps;
use crate::native::{self, for_numbers};

/// Most positions along dimensions that are noted for windows.
const MAX_TAPS: usize = 1 << 24;

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::Map => map,
        OpKind::Reduce => reduce,
        OpKind::ReduceWindow => reduce_window,
        OpKind::SelectAndScatter => select_and_scatter,
        OpKind::Sort => sort,
        _ => return None,
    })
}

fn map(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.tensors(0..cx.operands.len())?;
    let shape = common_shape(&inputs)?;
    let mut body = cx.body(0)?;
    let mut result = Tensor::zeros(cx.result_element(0)?, shape.clone())?;
    for position in 0..shape.num_elements() {
        let arguments: Vec<Scalar> = inputs.iter().map(|input| input.get(position)).collect();
        result.set(position, body.apply_one(cx.machine, &arguments)?);
    }
    Ok(vec![result.into()])
}

/// The shape that all tensors have.
fn common_shape(tensors: &[Tensor]) -> Result<Shape> {
    let first = tensors.first().ok_or_else(|| invalid("no operands"))?;
    if tensors.iter().any(|tensor| tensor.shape() != first.shape()) {
        return Err(invalid("the operands have different shapes"));
    }
    Ok(first.shape().clone())
}

/// One tensor per computed value, all of one shape.
fn accumulators(cx: &Cx<'_, '_, '_>, shape: &Shape, inits: &[Tensor]) -> Result<Vec<Tensor>> {
    let elements = cx.body_elements(0)?;
    if elements.len() != inits.len() {
        return Err(invalid("the computation gives another number of values than there are initial ones"));
    }
    let splat = |(init, element): (&Tensor, ElementType)| {
        Ok(Tensor::splat(element, shape.clone(), first_element(init)?)?)
    };
    inits.iter().zip(elements).map(splat).collect()
}

/// `accumulators[position] = body(accumulators[position], values)`.
fn combine(
    machine: &mut Machine<'_, '_>,
    body: &mut Body,
    accumulators: &mut [Tensor],
    position: usize,
    values: impl Iterator<Item = Scalar>,
) -> Result<()> {
    let arguments: Vec<Scalar> =
        accumulators.iter().map(|tensor| tensor.get(position)).chain(values).collect();
    for (tensor, value) in accumulators.iter_mut().zip(body.apply(machine, &arguments)?) {
        tensor.set(position, *value);
    }
    Ok(())
}

/// The computation of the region, if it is a simple one on elements of the input's own type.
fn simple_reduction(cx: &Cx<'_, '_, '_>, input: &Tensor) -> Result<Option<ReductionOp>> {
    let plain = cx.body_elements(0)? == [input.element_type()];
    let block = cx.native_region(0).filter(|_| plain);
    Ok(block.and_then(|block| ReductionOp::of(cx.machine.module, block)))
}

fn reduce(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (inputs, inits) = (cx.group("inputs")?, cx.group("init_values")?);
    let reduced = cx.usizes("dimensions")?;
    let shape = common_shape(&inputs)?;
    let kept: Vec<usize> = (0..shape.rank()).filter(|axis| !reduced.contains(axis)).collect();
    let target = cx.shape(kept.iter().map(|&axis| shape.dims()[axis]).collect())?;
    if let ([input], [init]) = (&*inputs, &*inits)
        && let Some(reduction) = simple_reduction(cx, input)?
        && let Some(result) =
            native::reduce::reduce(cx.machine.threads, reduction, input, init, &reduced, &target)?
    {
        cx.machine.count_steps(input.len())?;
        return one(result);
    }
    let strides = target.strides();
    let mut body = cx.body(0)?;
    let mut results = accumulators(cx, &target, &inits)?;
    let mut indices = shape.indices();
    let mut source = 0;
    while let Some(index) = indices.advance() {
        let position = kept.iter().zip(&strides).map(|(&axis, stride)| index[axis] * stride).sum();
        combine(cx.machine, &mut body, &mut results, position, inputs.iter().map(|input| input.get(source)))?;
        source += 1;
    }
    Ok(results.into_iter().map(Value::Tensor).collect())
}

/// Windows over a tensor.
struct Windows {
    sizes: Vec<i64>,
    strides: Vec<i64>,
    base_dilations: Vec<i64>,
    window_dilations: Vec<i64>,
    padding: Vec<(i64, i64)>,
}

impl Windows {
    fn new(cx: &Cx<'_, '_, '_>, rank: usize) -> Result<Self> {
        let windows = Self {
            sizes: cx.i64s_or("window_dimensions", rank, 1)?,
            strides: cx.i64s_or("window_strides", rank, 1)?,
            base_dilations: cx.i64s_or("base_dilations", rank, 1)?,
            window_dilations: cx.i64s_or("window_dilations", rank, 1)?,
            padding: cx.pairs_or_zero("padding", rank)?,
        };
        let lists = [&windows.sizes, &windows.strides, &windows.base_dilations, &windows.window_dilations];
        if lists.iter().any(|list| list.iter().any(|&value| value < 1)) {
            return Err(invalid("window sizes, strides and dilations are positive"));
        }
        Ok(windows)
    }

    /// How many windows there are along each dimension.
    fn counts(&self, dims: &[usize]) -> Result<Vec<i64>> {
        let count = |axis: usize| {
            let size = dims[axis] as i64;
            let dilated = if size == 0 {
                Some(0)
            } else {
                (size - 1).checked_mul(self.base_dilations[axis]).and_then(|x| x.checked_add(1))
            };
            let window = (self.sizes[axis] - 1)
                .checked_mul(self.window_dilations[axis])
                .and_then(|x| x.checked_add(1));
            let (low, high) = self.padding[axis];
            let padded =
                dilated.and_then(|size| size.checked_add(low)).and_then(|size| size.checked_add(high));
            let (Some(padded), Some(window)) = (padded, window) else {
                return Err(invalid("a window overflows"));
            };
            Ok(if padded < window { 0 } else { (padded - window) / self.strides[axis] + 1 })
        };
        (0..dims.len()).map(count).collect()
    }

    /// The place of an element of a window along a dimension; `None` in the padding and between dilated elements.
    fn place(&self, axis: usize, size: usize, window: usize, offset: usize) -> Option<usize> {
        let at = window as i64 * self.strides[axis] + offset as i64 * self.window_dilations[axis]
            - self.padding[axis].0;
        if at < 0 || at % self.base_dilations[axis] != 0 {
            return None;
        }
        usize::try_from(at / self.base_dilations[axis]).ok().filter(|&at| at < size)
    }

    /// The position of an element of a window in the tensor; `None` in the padding and between dilated elements.
    fn position(&self, shape: &Shape, window: &[usize], offset: &[usize]) -> Option<usize> {
        let mut position = 0;
        for axis in 0..window.len() {
            let size = shape.dims()[axis];
            position = position * size + self.place(axis, size, window[axis], offset[axis])?;
        }
        Some(position)
    }

    /// Where the elements of all windows are, if that is not too much to note; going through them all is counted.
    fn taps(&self, cx: &mut Cx<'_, '_, '_>, shape: &Shape, counts: &Shape) -> Result<Option<Taps>> {
        let sizes = self.window_shape(cx)?;
        let notes = counts
            .dims()
            .iter()
            .zip(sizes.dims())
            .fold(0usize, |sum, (&count, &size)| sum.saturating_add(count.saturating_mul(size)));
        if notes > MAX_TAPS {
            return Ok(None);
        }
        cx.machine.count_steps(counts.num_elements().saturating_mul(sizes.num_elements()))?;
        Ok(Taps::new(counts, sizes.dims(), &shape.strides(), |axis, window, offset| {
            self.place(axis, shape.dims()[axis], window, offset)
        }))
    }

    fn window_shape(&self, cx: &Cx<'_, '_, '_>) -> Result<Shape> {
        cx.shape_from(&self.sizes)
    }
}

fn reduce_window(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (inputs, inits) = (cx.group("inputs")?, cx.group("init_values")?);
    let shape = common_shape(&inputs)?;
    let windows = Windows::new(cx, shape.rank())?;
    let target = cx.shape_from(&windows.counts(shape.dims())?)?;
    let inner = windows.window_shape(cx)?;
    if let ([input], [init]) = (&*inputs, &*inits)
        && let Some(reduction) = simple_reduction(cx, input)?
        && let Some(taps) = windows.taps(cx, &shape, &target)?
        && let Some(result) =
            native::window::reduce_window(cx.machine.threads, reduction, input, init, &taps)?
    {
        return one(result);
    }
    let mut body = cx.body(0)?;
    let mut results = accumulators(cx, &target, &inits)?;
    let padding: Vec<Scalar> = inits.iter().map(first_element).collect::<Result<_>>()?;
    let mut outer = target.indices();
    let mut position = 0;
    while let Some(window) = outer.advance() {
        let mut offsets = inner.indices();
        while let Some(offset) = offsets.advance() {
            // Padding takes part with the initial value.
            let source = windows.position(&shape, window, offset);
            let values =
                inputs.iter().zip(&padding).map(|(input, &init)| source.map_or(init, |at| input.get(at)));
            combine(cx.machine, &mut body, &mut results, position, values)?;
        }
        position += 1;
    }
    Ok(results.into_iter().map(Value::Tensor).collect())
}

fn select_and_scatter(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (operand, source) = (cx.tensor(0)?.clone(), cx.tensor(1)?.clone());
    let shape = operand.shape().clone();
    let windows = Windows::new(cx, shape.rank())?;
    let counts = cx.shape_from(&windows.counts(shape.dims())?)?;
    if counts != *source.shape() {
        return Err(invalid(format!("there are {counts} windows for a source of {}", source.shape())));
    }
    let inner = windows.window_shape(cx)?;
    if let (Some(select), Some(scatter)) = (cx.native_region(0), cx.native_region(1))
        && ReductionOp::of(cx.machine.module, scatter) == Some(ReductionOp::Add)
        && cx.body_elements(1)? == [operand.element_type()]
        && let Some(select) = Comparison::of(cx.machine.module, select)
        && let Some(taps) = windows.taps(cx, &shape, &counts)?
        && let Some(result) =
            native::window::select_and_scatter(select, &operand, &source, cx.tensor(2)?, &taps)?
    {
        return one(result);
    }
    let (mut select, mut scatter) = (cx.body(0)?, cx.body(1)?);
    let element = cx.result_element(0)?;
    let mut result = Tensor::splat(element, shape.clone(), first_element(cx.tensor(2)?)?)?;
    let mut outer = counts.indices();
    let mut position = 0;
    while let Some(window) = outer.advance() {
        let mut selected: Option<usize> = None;
        let mut offsets = inner.indices();
        while let Some(offset) = offsets.advance() {
            let Some(candidate) = windows.position(&shape, window, offset) else { continue };
            selected = match selected {
                Some(best)
                    if select
                        .apply_one(cx.machine, &[operand.get(best), operand.get(candidate)])?
                        .is_true() =>
                {
                    Some(best)
                }
                _ => Some(candidate),
            };
        }
        if let Some(target) = selected {
            let sum = scatter.apply_one(cx.machine, &[result.get(target), source.get(position)])?;
            result.set(target, sum);
        }
        position += 1;
    }
    Ok(vec![result.into()])
}

fn sort(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.tensors(0..cx.operands.len())?;
    let shape = common_shape(&inputs)?;
    let axis = cx.axis("dimension", shape.rank())?;
    let comparison = cx.native_region(0).and_then(|block| Comparison::of(cx.machine.module, block));
    let (length, stride) = (shape.dims()[axis], shape.strides()[axis]);
    let mut comparator = cx.body(0)?;
    let mut results = inputs.clone();
    let mut indices = shape.indices();
    let mut start = 0;
    while let Some(index) = indices.advance() {
        // Each line is sorted once, from its first element.
        if index[axis] == 0 {
            let mut order: Vec<usize> = (0..length).collect();
            let place = |at: usize| start + at * stride;
            if !sort_by(comparison, &inputs, &mut order, &place)? {
                let mut arguments = Vec::new();
                merge_sort(&mut order, &mut |a, b| {
                    arguments.clear();
                    arguments
                        .extend(inputs.iter().flat_map(|input| [input.get(place(a)), input.get(place(b))]));
                    Ok(comparator.apply_one(cx.machine, &arguments)?.is_true())
                })?;
            }
            for (result, input) in results.iter_mut().zip(&inputs) {
                for (to, &from) in order.iter().enumerate() {
                    result.copy_part(&[], (place(to), &[]), input, (place(from), &[]))?;
                }
            }
        }
        start += 1;
    }
    Ok(results.into_iter().map(Value::Tensor).collect())
}

/// Sorts by a simple comparison of one of the inputs; false where the computation has to be applied.
fn sort_by(
    comparison: Option<Comparison>,
    inputs: &[Tensor],
    order: &mut [usize],
    place: &dyn Fn(usize) -> usize,
) -> Result<bool> {
    // Arguments come in pairs, one for each input.
    let key = comparison.and_then(|comparison| match comparison.arguments {
        (a, b) if a % 2 == 0 && b == a + 1 => Some((comparison, inputs.get(a / 2)?)),
        _ => None,
    });
    let Some((comparison, key)) = key else { return Ok(false) };
    for_numbers!(key.element_type(), T => {
        let keys = key.as_slice::<T>()?;
        merge_sort(order, &mut |a, b| Ok(comparison.holds(keys[place(a)], keys[place(b)])))?;
        Ok(true)
    }, else Ok(false))
}

/// A stable sort that lives with any comparison, one that contradicts itself or fails included.
pub(super) fn merge_sort(
    order: &mut [usize],
    less: &mut impl FnMut(usize, usize) -> Result<bool>,
) -> Result<()> {
    let mut spare = order.to_vec();
    merge_sort_into(order, &mut spare, less)
}

fn merge_sort_into(
    order: &mut [usize],
    spare: &mut [usize],
    less: &mut impl FnMut(usize, usize) -> Result<bool>,
) -> Result<()> {
    if order.len() < 2 {
        return Ok(());
    }
    let middle = order.len() / 2;
    merge_sort_into(&mut order[..middle], &mut spare[..middle], less)?;
    merge_sort_into(&mut order[middle..], &mut spare[middle..], less)?;
    spare.copy_from_slice(order);
    let (left, right) = spare.split_at(middle);
    let (mut i, mut j) = (0, 0);
    for slot in order.iter_mut() {
        let take_right = j < right.len() && (i == left.len() || less(right[j], left[i])?);
        *slot = if take_right { right[j] } else { left[i] };
        if take_right { j += 1 } else { i += 1 }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_is_stable_and_survives_nonsense() {
        let keys = [3, 1, 2, 1, 3];
        let mut order: Vec<usize> = (0..5).collect();
        merge_sort(&mut order, &mut |a, b| Ok(keys[a] < keys[b])).expect("no failure");
        assert_eq!(order, [1, 3, 2, 0, 4]);
        merge_sort(&mut order, &mut |_, _| Ok(true)).expect("no failure");
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
        assert!(merge_sort(&mut order, &mut |_, _| Err(invalid("no"))).is_err());
    }
}
