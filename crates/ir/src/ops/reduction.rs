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
        .rule(reduce).doc("Reduces dimensions with a computation, starting from initial values."),
    op(OpKind::ReduceWindow)
        .values("inputs*: tensor, init_values*: tensor", "result*: tensor")
        .attrs(
            "window_dimensions: i64s, window_strides?: i64s, base_dilations?: i64s, window_dilations?: i64s, padding?: rows",
        )
        .regions("body")
        .is(&[Pure, EqualGroups])
        .rule(reduce_window).doc("Reduces windows with a computation."),
    op(OpKind::SelectAndScatter)
        .values("operand: tensor, source: tensor, init_value: tensor", "result: tensor")
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

/// What the body of a reduction is checked against.
pub(super) struct Reducer<'t> {
    /// What is reduced.
    pub(super) inputs: &'t [&'t TensorType],
    /// The initial values.
    pub(super) inits: &'t [TensorType],
    /// The shape that a body's arguments may have a part of; empty where they must be scalars.
    pub(super) allowed: &'t [Dim],
}

/// The body of a reduction: two values of each input's element type in, one of each out.
pub(super) fn check_reducer(
    cx: &mut Cx<'_>,
    region: usize,
    reducer: &Reducer<'_>,
    label: &'static str,
) -> bool {
    let types = cx.region(region);
    let count = reducer.inputs.len();
    let returned: Option<Vec<&TensorType>> = types.returned().iter().map(|ty| ty.as_tensor()).collect();
    let arguments: Option<Vec<&TensorType>> = types.arguments.iter().map(|ty| ty.as_tensor()).collect();
    let (Some(returned), Some(arguments)) = (returned, arguments) else {
        cx.fail(label, "the body must take and return tensors");
        return false;
    };
    if !cx.same_count(label, "the arguments of the body", arguments.len(), 2 * count)
        || !cx.same_count(label, "what the body returns", returned.len(), count)
    {
        return false;
    }
    for index in 0..count {
        let (sum, first, second) = (returned[index], arguments[index], arguments[count + index]);
        let (input, init) = (reducer.inputs[index], &reducer.inits[index]);
        let fits = compatible::sizes(sum.dims(), first.dims())
            && sum.element() == first.element()
            && compatible::sizes(sum.dims(), second.dims())
            && sum.element() == second.element();
        cx.check(fits, label, || format!("the body takes {first} and {second} and returns {sum}"));
        let starts = compatible::sizes(init.dims(), sum.dims()) && promotable(init.element(), sum.element());
        cx.check(starts, label, || format!("the body returns {sum}, which {init} cannot be promoted to"));
        let part = is_part(second.dims(), reducer.allowed) && promotable(input.element(), second.element());
        cx.check(part, label, || format!("the body takes {second}, which {input} cannot be promoted to"));
        if !cx.is_broken() && !widens(input.element(), second.element()) {
            cx.warn(label, format!("the body computes in {second}, which is narrower than {input}"));
        }
    }
    !cx.is_broken()
}

/// Whether the dimensions of a part occur in a shape, in their order.
fn is_part(part: &[Dim], whole: &[Dim]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|dim| rest.any(|of| compatible::same_size(*dim, *of)))
}

fn same_but_for_precision(a: &Element, b: &Element) -> bool {
    let float = |element: &Element| element.plain().is_some_and(ElementType::is_float);
    a == b || float(a) && float(b)
}

/// Whether elements of one type may be reduced in another: integers with integers at least as wide, floats with
/// floats, and so on.
fn promotable(from: &Element, to: &Element) -> bool {
    match (from, to) {
        (Element::Plain(ElementType::Float(_)), Element::Plain(ElementType::Float(_))) => true,
        (Element::Plain(a), Element::Plain(b)) => {
            let integer = |element: ElementType| element.is_int() || element == ElementType::Bool;
            let same = integer(*a) && integer(*b) || a.is_complex() && b.is_complex();
            same && a.bits() <= b.bits()
        }
        (Element::Quantized(a), Element::Quantized(b)) => {
            a.expressed == b.expressed && a.storage.bits() <= b.storage.bits()
        }
        (a, b) => a == b,
    }
}

/// Whether a type is at least as wide as another: what the specification asks, and its own tools do not of floats.
fn widens(from: &Element, to: &Element) -> bool {
    match (from.plain(), to.plain()) {
        (Some(from), Some(to)) => from.bits() <= to.bits(),
        _ => true,
    }
}

/// The inputs and initial values of a reduction.
fn reduction_operands<'a>(
    cx: &mut Cx<'a>,
    labels: [&'static str; 2],
) -> Option<(Vec<&'a TensorType>, Vec<TensorType>)> {
    let count = cx.operands().len() / 2;
    let (inputs, inits) = (cx.tensors(0..count)?, cx.tensors(count..2 * count)?);
    let Some(&first) = inputs.first() else {
        cx.fail(labels[0], "there must be at least one input");
        return None;
    };
    for input in &inputs {
        let same = compatible::sizes(first.dims(), input.dims());
        cx.check(same, labels[1], || format!("the inputs have different shapes: {first} and {input}"));
    }
    for init in inits.iter().filter(|init| init.rank() != 0) {
        cx.warn("I2", format!("the initial value {init} is no scalar"));
    }
    if cx.is_broken() { None } else { Some((inputs, inits.into_iter().cloned().collect())) }
}

/// Tensors of a shape with the elements that the body of a reduction returns.
fn reduction_types(cx: &Cx<'_>, count: usize, dims: &[Dim]) -> Option<Vec<Type>> {
    let body = cx.region(0);
    let element = |index: usize| Some(body.returned().get(index)?.element()?.clone());
    (0..count).map(|index| Some(Type::Tensor(TensorType::new(dims.to_vec(), element(index)?)))).collect()
}

fn reduce(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (inputs, inits) = reduction_operands(cx, ["C3", "C1"])?;
    let dimensions = cx.i64s("dimensions")?;
    let rank = inputs[0].rank();
    cx.in_rank("C4", "dimensions", dimensions, rank);
    cx.unique("C5", "dimensions", dimensions);
    if cx.is_broken() {
        return None;
    }
    let shape = inputs[0].dims();
    let kept = (0..rank).filter(|axis| !dimensions.contains(&(*axis as i64))).map(|axis| shape[axis]);
    let dims: Vec<Dim> = kept.collect();
    let reducer = Reducer { inputs: &inputs, inits: &inits, allowed: &dims };
    if !check_reducer(cx, 0, &reducer, "C6") {
        return None;
    }
    let types = reduction_types(cx, inputs.len(), &dims)?;
    cx.gives(["C7", "C8"], types)
}

/// The labels of what is asked of windows.
struct WindowLabels {
    dimensions: [&'static str; 2],
    strides: [&'static str; 2],
    base_dilations: [&'static str; 2],
    window_dilations: [&'static str; 2],
    padding: &'static str,
}

/// An attribute with a positive number for each dimension; ones where it is left out or empty.
fn positive(cx: &mut Cx<'_>, name: &str, rank: usize, labels: [&'static str; 2]) -> Option<Vec<i64>> {
    let values = cx.per_dim(name, rank, 1, labels[0])?;
    cx.check(values.iter().all(|value| *value > 0), labels[1], || {
        format!("{name} {values:?} is not positive")
    });
    Some(values)
}

/// The shape that windows over a shape give, bounds included.
fn window_shape(cx: &mut Cx<'_>, shape: &[Dim], labels: &WindowLabels) -> Option<Vec<Dim>> {
    let rank = shape.len();
    let window = cx.i64s("window_dimensions").unwrap_or(&[]);
    if !cx.same_count(labels.dimensions[0], "window_dimensions", window.len(), rank) {
        return None;
    }
    cx.check(window.iter().all(|size| *size > 0), labels.dimensions[1], || {
        format!("window_dimensions {window:?} are not positive")
    });
    let strides = positive(cx, "window_strides", rank, labels.strides)?;
    let base = positive(cx, "base_dilations", rank, labels.base_dilations)?;
    let dilation = positive(cx, "window_dilations", rank, labels.window_dilations)?;
    let padding = cx.pairs("padding", rank, labels.padding)?;
    if cx.is_broken() {
        return None;
    }
    let count = |axis: usize, size: u64| {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let dilations = (base[axis], dilation[axis]);
        windows(size, window[axis], strides[axis], padding[axis], dilations) as u64
    };
    let along = |axis: usize| match shape[axis] {
        Dim::Static(size) => Dim::Static(count(axis, size)),
        Dim::Bounded(bound) => Dim::Bounded(count(axis, bound)),
        Dim::Dynamic => Dim::Dynamic,
    };
    Some((0..rank).map(along).collect())
}

fn reduce_window(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (inputs, inits) = reduction_operands(cx, ["C1", "C2"])?;
    let labels = WindowLabels {
        dimensions: ["C4", "C5"],
        strides: ["C6", "C7"],
        base_dilations: ["C8", "C9"],
        window_dilations: ["C10", "C11"],
        padding: "C12",
    };
    let dims = window_shape(cx, inputs[0].dims(), &labels)?;
    let window: Vec<Dim> =
        cx.i64s("window_dimensions")?.iter().map(|size| Dim::Static(*size as u64)).collect();
    let reducer = Reducer { inputs: &inputs, inits: &inits, allowed: &window };
    if !check_reducer(cx, 0, &reducer, "C13") {
        return None;
    }
    let types = reduction_types(cx, inputs.len(), &dims)?;
    cx.gives(["C15", "C16"], types)
}

fn is_pred(ty: &Type) -> bool {
    ty.as_tensor().is_some_and(|only| only.rank() == 0 && only.element().plain() == Some(ElementType::Bool))
}

fn select_and_scatter(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, source, init) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let select = cx.region(0);
    let scalar = operand.with_dims([]);
    let compares = select.arguments.len() == 2
        && select.arguments.iter().all(|ty| {
            ty.as_tensor()
                .is_some_and(|ty| ty.rank() == 0 && same_but_for_precision(ty.element(), scalar.element()))
        });
    cx.check(compares, "C9", || format!("`select` must take two of {scalar}"));
    let pred = matches!(select.returned(), [only] if is_pred(only));
    cx.check(pred, "C9", || "`select` must return one truth value".to_owned());
    let (inputs, inits) = ([&source.with_dims([])], [init.clone()]);
    check_reducer(cx, 1, &Reducer { inputs: &inputs, inits: &inits, allowed: &[] }, "C10");
    let labels = WindowLabels {
        dimensions: ["C4", "C5"],
        strides: ["C6", "C7"],
        base_dilations: ["C6", "C7"],
        window_dilations: ["C6", "C7"],
        padding: "C8",
    };
    let windows = window_shape(cx, operand.dims(), &labels)?;
    let fits = compatible::sizes(&windows, source.dims());
    cx.check(fits, "C2", || format!("{source} has not one element for each window of {operand}"));
    let same = same_but_for_precision(operand.element(), source.element());
    cx.check(same, "C1", || format!("{operand} and {source} have different elements"));
    if cx.is_broken() {
        return None;
    }
    let element = cx.region(1).returned().first()?.element()?.clone();
    cx.gives(["C11", "C12"], vec![Type::Tensor(operand.with_element(element))])
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
    cx.check((-rank..rank).contains(&dimension), "C4", || {
        format!("{dimension} is no dimension of a tensor of rank {rank}")
    });
    let comparator = cx.region(0);
    let wanted = inputs.iter().flat_map(|input| std::iter::repeat_n(Type::Tensor(input.with_dims([])), 2));
    let arguments = comparator.arguments.iter().map(|ty| (*ty).clone()).eq(wanted);
    cx.check(arguments, "C5", || "the comparator must take two scalars of each input".to_owned());
    let pred = matches!(comparator.returned(), [only] if is_pred(only));
    cx.check(pred, "C5", || "the comparator must return one truth value".to_owned());
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
    let body = cx.region(0);
    let wanted = inputs.iter().map(|input| Type::Tensor(input.with_dims([])));
    let fits = body.arguments.iter().map(|ty| (*ty).clone()).eq(wanted);
    cx.check(fits, "C4", || "the computation must take a scalar of each input".to_owned());
    match body.returned() {
        [Type::Tensor(only)] if only.rank() == 0 => {
            let dims = compatible::meet_all(inputs.iter().copied());
            cx.gives(["C1", "C4"], vec![Type::Tensor(TensorType::new(dims, only.element().clone()))])
        }
        _ => {
            cx.fail("C4", "the computation must return one scalar");
            None
        }
    }
}
