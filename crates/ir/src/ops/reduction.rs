//! Reductions, windows, mapping and sorting: operations with a computation on scalars.

use crate::ops::contraction::windows;
use crate::table::Trait::{EqualGroups, Pure};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, Element, ElementType, TensorType, Type};
use crate::verify::{Cx, compatible};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Map)
        .values("inputs*: tensor", "result: tensor")
        .attrs("dimensions: i64s")
        .regions("computation")
        .is(&[Pure])
        .rule(map).doc("Applies a computation to corresponding elements."),
    op(OpKind::Reduce)
        .values("inputs*: tensor, init_values*: tensor", "result*: tensor")
        .attrs("dimensions: i64s")
        .regions("body")
        .text("custom")
        .is(&[Pure, EqualGroups])
        .rule(reduce).doc("Folds a computation over dimensions, starting from initial values."),
    op(OpKind::ReduceWindow)
        .values("inputs*: tensor, init_values*: tensor", "result*: tensor")
        .attrs(
            "window_dimensions: i64s, window_strides?: i64s, base_dilations?: i64s, window_dilations?: i64s, padding?: rows",
        )
        .regions("body")
        .is(&[Pure, EqualGroups])
        .rule(reduce_window).doc("Folds a computation over windows."),
    op(OpKind::SelectAndScatter)
        .values("operand: tensor, source: tensor, init_value: 0d tensor", "result: tensor")
        .attrs("window_dimensions?: i64s, window_strides?: i64s, padding?: rows")
        .regions("select, scatter")
        .is(&[Pure])
        .rule(select_and_scatter).doc("Adds each source element where a computation selects in its window of the operand."),
    op(OpKind::Sort)
        .values("inputs*: tensor", "result*: tensor")
        .attrs("dimension: i64 = -1, is_stable: bool = false")
        .regions("comparator")
        .is(&[Pure])
        .rule(sort).doc("Sorts tensors together along a dimension by a comparison."),
];

/// A body that folds: two scalars of each input's kind in, one of each out.
pub(super) fn check_reducer(
    cx: &mut Cx<'_>,
    region: usize,
    inputs: &[&TensorType],
    labels: [&'static str; 2],
) {
    let Some(types) = cx.regions().get(region).cloned() else { return };
    let count = inputs.len();
    cx.same_count(labels[0], "the arguments of the body", types.arguments.len(), 2 * count);
    let Some(returns) = types.returns else { return };
    if !cx.same_count(labels[0], "what the body returns", returns.len(), count) || cx.is_broken() {
        return;
    }
    for index in 0..count {
        let given = [returns[index], types.arguments[index], types.arguments[count + index]];
        for ty in given {
            let scalar = ty.as_tensor().filter(|tensor| tensor.rank() == 0);
            let Some(tensor) = scalar else {
                cx.fail(labels[0], format!("the body must work on scalars, not {ty}"));
                return;
            };
            let (from, to) = (inputs[index].element().clone(), tensor.element().clone());
            let fits =
                widens(&from, &to) && compatible::elements(tensor.element(), element_of(returns[index], &to));
            cx.check(fits, labels[0], || {
                format!("the body works on {tensor} where {} is folded", inputs[index])
            });
        }
    }
}

fn element_of<'a>(ty: &'a Type, or: &'a Element) -> &'a Element {
    ty.element().unwrap_or(or)
}

/// Whether a body may fold elements in a type that is at least as wide.
fn widens(from: &Element, to: &Element) -> bool {
    match (from, to) {
        (Element::Plain(ElementType::Int(a)), Element::Plain(ElementType::Int(b))) => {
            a.is_signed() == b.is_signed() && a.bits() <= b.bits()
        }
        (Element::Plain(ElementType::Float(a)), Element::Plain(ElementType::Float(b))) => {
            a == b || a.format().bits() <= b.format().bits()
        }
        (Element::Plain(ElementType::Complex(a)), Element::Plain(ElementType::Complex(b))) => {
            a.format().bits() <= b.format().bits()
        }
        (Element::Quantized(a), Element::Quantized(b)) => {
            a.expressed == b.expressed && a.storage.bits() <= b.storage.bits()
        }
        (a, b) => a == b,
    }
}

/// The inputs and initial values of a reduction, checked against each other.
fn folded<'a>(cx: &mut Cx<'a>) -> Option<(Vec<&'a TensorType>, Vec<&'a TensorType>)> {
    let count = cx.operands().len() / 2;
    let (inputs, inits) = (cx.tensors(0..count)?, cx.tensors(count..2 * count)?);
    let Some(&first) = inputs.first() else {
        cx.fail("C3", "there must be at least one input");
        return None;
    };
    for (input, init) in inputs.iter().zip(&inits) {
        cx.same_shape("C1", "the inputs", first, input);
        cx.same_elements("C2", "inputs and initial values", input, init);
        cx.check(init.rank() == 0, "C2", || format!("the initial value {init} is no scalar"));
    }
    if cx.is_broken() { None } else { Some((inputs, inits)) }
}

/// The elements that the body of a reduction returns, or those of the input.
fn folded_types(cx: &Cx<'_>, inputs: &[&TensorType], dims: &[Dim]) -> Vec<Type> {
    let returns = cx.regions().first().and_then(|region| region.returns.clone()).unwrap_or_default();
    let element =
        |index: usize| returns.get(index).and_then(|ty| ty.element()).unwrap_or(inputs[index].element());
    (0..inputs.len())
        .map(|index| Type::Tensor(TensorType::new(dims.to_vec(), element(index).clone())))
        .collect()
}

fn reduce(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (inputs, _) = folded(cx)?;
    let dimensions = cx.i64s("dimensions")?;
    let rank = inputs[0].rank();
    cx.in_rank("C4", "dimensions", dimensions, rank);
    cx.unique("C5", "dimensions", dimensions);
    check_reducer(cx, 0, &inputs, ["C6", "C7"]);
    if cx.is_broken() {
        return None;
    }
    let shape = compatible::meet_all(inputs.iter().copied());
    let kept = (0..rank).filter(|axis| !dimensions.contains(&(*axis as i64))).map(|axis| shape[axis]);
    let dims: Vec<Dim> = kept.collect();
    let types = folded_types(cx, &inputs, &dims);
    cx.gives("C7", types)
}

/// The shape that windows over a shape give.
fn window_shape(cx: &mut Cx<'_>, shape: &[Dim], labels: [&'static str; 6]) -> Option<Vec<Dim>> {
    let rank = shape.len();
    let window = cx.per_dim("window_dimensions", rank, 1, labels[0])?;
    cx.check(window.iter().all(|w| *w > 0), labels[1], || {
        format!("window_dimensions {window:?} are not positive")
    });
    let strides = cx.per_dim("window_strides", rank, 1, labels[2])?;
    cx.check(strides.iter().all(|s| *s > 0), labels[3], || {
        format!("window_strides {strides:?} are not positive")
    });
    let base = cx.per_dim("base_dilations", rank, 1, labels[4])?;
    cx.check(base.iter().all(|d| *d > 0), labels[4], || format!("base_dilations {base:?} are not positive"));
    let dilation = cx.per_dim("window_dilations", rank, 1, labels[4])?;
    cx.check(dilation.iter().all(|d| *d > 0), labels[4], || {
        format!("window_dilations {dilation:?} are not positive")
    });
    let padding = cx.pairs("padding", rank, labels[5])?;
    if cx.is_broken() {
        return None;
    }
    let size = |axis: usize| match shape[axis].size().and_then(|size| i64::try_from(size).ok()) {
        None => Dim::Dynamic,
        Some(size) => {
            let dilations = (base[axis], dilation[axis]);
            Dim::Static(windows(size, window[axis], strides[axis], padding[axis], dilations) as u64)
        }
    };
    Some((0..rank).map(size).collect())
}

fn reduce_window(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (inputs, _) = folded(cx)?;
    let shape = compatible::meet_all(inputs.iter().copied());
    let dims = window_shape(cx, &shape, ["C4", "C5", "C6", "C7", "C8", "C12"])?;
    check_reducer(cx, 0, &inputs, ["C13", "C14"]);
    if cx.is_broken() {
        return None;
    }
    let types = folded_types(cx, &inputs, &dims);
    cx.gives("C14", types)
}

fn select_and_scatter(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, source, init) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    cx.same_elements("C1", "the operand and the source", operand, source);
    cx.same_elements("C3", "the operand and the initial value", operand, init);
    let windows = window_shape(cx, operand.dims(), ["C4", "C5", "C6", "C7", "C7", "C8"])?;
    let fits = compatible::dims(&windows, source.dims());
    cx.check(fits, "C2", || format!("{source} has not one element for each window of {operand}"));
    let select = cx.regions().first().cloned().unwrap_or_default();
    let pred = select.returns.as_deref().is_some_and(|returns| match returns {
        [Type::Tensor(only)] => only.rank() == 0 && only.element().plain() == Some(ElementType::Bool),
        _ => false,
    });
    cx.check(pred && select.arguments.len() == 2, "C9", || "`select` must compare two scalars".to_owned());
    check_reducer(cx, 1, &[operand], ["C10", "C11"]);
    if let Some(result) = cx.result(0) {
        cx.same_shape("C11", "the operand and the result", operand, result);
    }
    None
}

fn sort(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let inputs = cx.tensors(0..cx.operands().len())?;
    let Some(&first) = inputs.first() else {
        cx.fail("C1", "there must be at least one input");
        return None;
    };
    for input in &inputs {
        cx.same_shape("C3", "the inputs", first, input);
    }
    let (dimension, rank) = (cx.i64("dimension")?, first.rank() as i64);
    let inside = (-rank..rank).contains(&dimension) || rank == 0;
    cx.check(inside, "C4", || format!("{dimension} is no dimension of a tensor of rank {rank}"));
    let comparator = cx.regions().first().cloned().unwrap_or_default();
    let wanted: Vec<Type> =
        inputs.iter().flat_map(|t| std::iter::repeat_n(Type::Tensor(t.with_dims([])), 2)).collect();
    let arguments = comparator.arguments.len() == wanted.len()
        && comparator.arguments.iter().zip(&wanted).all(|(a, b)| compatible::types(a, b));
    let pred = Type::tensor(&[], ElementType::Bool);
    let returns = comparator.returns.is_some_and(|returns| returns == [&pred]);
    cx.check(arguments && returns, "C5", || {
        "the comparator must compare two scalars of each input".to_owned()
    });
    let types = inputs.iter().map(|input| Type::Tensor((*input).clone())).collect();
    cx.gives("C2", types)
}

fn map(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let inputs = cx.tensors(0..cx.operands().len())?;
    let Some(&first) = inputs.first() else {
        cx.fail("C2", "there must be at least one input");
        return None;
    };
    for input in &inputs {
        cx.same_shape("C1", "the inputs", first, input);
    }
    let dimensions = cx.i64s("dimensions")?;
    let all = dimensions.iter().copied().eq(0..first.rank() as i64);
    cx.check(all, "C3", || format!("dimensions must be all of {first}, in order"));
    let body = cx.regions().first().cloned().unwrap_or_default();
    let wanted: Vec<Type> = inputs.iter().map(|input| Type::Tensor(input.with_dims([]))).collect();
    let fits = body.arguments.len() == wanted.len()
        && body.arguments.iter().zip(&wanted).all(|(a, b)| compatible::types(a, b));
    cx.check(fits, "C4", || "the computation must take a scalar of each input".to_owned());
    match body.returns.as_deref() {
        Some([Type::Tensor(only)]) if only.rank() == 0 => {
            let dims = compatible::meet_all(inputs.iter().copied());
            cx.gives("C4", vec![Type::Tensor(TensorType::new(dims, only.element().clone()))])
        }
        _ => {
            cx.fail("C4", "the computation must return one scalar");
            None
        }
    }
}
