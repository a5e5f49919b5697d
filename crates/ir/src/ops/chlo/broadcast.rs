//! Rules of operations that repeat their operands until they have one shape.

use crate::types::{Dim, Element, ElementType, FloatType, TensorType, Type};
use crate::verify::{Cx, compatible};

/// The result has the elements of the operands.
pub(super) fn like_operands(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    binary(cx, |element| Some(element.clone()))
}

/// The result has truth values.
pub(super) fn truth(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    binary(cx, |_| Some(ElementType::Bool.into()))
}

/// The result has complex numbers with the operands as parts.
pub(super) fn complex(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    binary(cx, |element| match element.plain()? {
        ElementType::Float(part @ (FloatType::F32 | FloatType::F64)) => {
            Some(ElementType::Complex(part).into())
        }
        _ => None,
    })
}

fn binary(cx: &mut Cx<'_>, made: fn(&Element) -> Option<Element>) -> Option<Vec<Type>> {
    let [lhs, rhs] = *cx.operands() else { return None };
    let (left, right) = (lhs.element()?, rhs.element()?);
    if !cx.check(compatible::elements(left, right), "operands", || {
        format!("the operands have different elements: {lhs} and {rhs}")
    }) {
        return None;
    }
    let Some(element) = made(left) else {
        cx.fail("operands", format!("{lhs} cannot be a part of a complex number"));
        return None;
    };
    gives(cx, shape_of(lhs, rhs), element, lhs, rhs)
}

/// The shape of the result as far as it is known.
enum Shape {
    /// Ranked.
    Of(Vec<Dim>),
    /// Unknown, because an operand's rank is.
    Unknown,
    /// The operands cannot be brought to one shape.
    None,
}

fn gives(cx: &mut Cx<'_>, plain: Shape, element: Element, lhs: &Type, rhs: &Type) -> Option<Vec<Type>> {
    let dims = match cx.i64s("broadcast_dimensions") {
        Some(dims) => explicit(cx, dims, lhs, rhs)?,
        None => plain,
    };
    match dims {
        Shape::Of(dims) => cx.gives("result", vec![Type::Tensor(TensorType::new(dims, element))]),
        Shape::Unknown => cx.gives("result", vec![Type::UnrankedTensor(element)]),
        Shape::None => {
            cx.fail("broadcast", format!("{lhs} and {rhs} cannot be brought to one shape"));
            None
        }
    }
}

/// The shape where the dimensions of the operand of smaller rank are told.
fn explicit(cx: &mut Cx<'_>, dims: &[i64], lhs: &Type, rhs: &Type) -> Option<Shape> {
    let (Some(lhs), Some(rhs)) = (lhs.as_tensor(), rhs.as_tensor()) else { return Some(Shape::Unknown) };
    // Operands of one rank need no mapping; it may be left empty.
    if lhs.rank() == rhs.rank() && dims.is_empty() {
        return Some(shape(lhs, rhs));
    }
    let (small, large) = if lhs.rank() <= rhs.rank() { (lhs, rhs) } else { (rhs, lhs) };
    cx.same_count("broadcast_dimensions", "broadcast_dimensions", dims.len(), small.rank());
    cx.in_rank("broadcast_dimensions", "broadcast_dimensions", dims, large.rank());
    cx.unique("broadcast_dimensions", "broadcast_dimensions", dims);
    cx.sorted("broadcast_dimensions", "broadcast_dimensions", dims);
    if cx.is_broken() {
        return None;
    }
    let mut shape = large.dims().to_vec();
    for (dim, axis) in small.dims().iter().zip(dims) {
        let slot = shape.get_mut(*axis as usize)?;
        match along(*dim, *slot) {
            Some(size) => *slot = size,
            None => return Some(Shape::None),
        }
    }
    Some(Shape::Of(shape))
}

/// The shape where the last dimensions of both go together.
fn shape_of(lhs: &Type, rhs: &Type) -> Shape {
    match (lhs.as_tensor(), rhs.as_tensor()) {
        (Some(lhs), Some(rhs)) => shape(lhs, rhs),
        _ => Shape::Unknown,
    }
}

/// The shape of two ranked tensors where the last dimensions of both go together.
fn shape(lhs: &TensorType, rhs: &TensorType) -> Shape {
    let rank = lhs.rank().max(rhs.rank());
    let at = |tensor: &TensorType, axis: usize| {
        let missing = rank - tensor.rank();
        if axis < missing { Dim::Static(1) } else { tensor.dims()[axis - missing] }
    };
    let dims: Option<Vec<Dim>> = (0..rank).map(|axis| along(at(lhs, axis), at(rhs, axis))).collect();
    dims.map_or(Shape::None, Shape::Of)
}

/// The size that two dimensions have after the one of size one is repeated.
fn along(a: Dim, b: Dim) -> Option<Dim> {
    match (a, b) {
        (Dim::Static(1), other) | (other, Dim::Static(1)) => Some(other),
        (Dim::Static(a), Dim::Static(b)) => (a == b).then_some(Dim::Static(a)),
        (Dim::Static(size), Dim::Bounded(bound)) | (Dim::Bounded(bound), Dim::Static(size)) => {
            (size == bound).then_some(Dim::Bounded(bound))
        }
        // What is not known must turn out to be one or the same.
        (Dim::Static(size), _) | (_, Dim::Static(size)) => Some(Dim::Static(size)),
        (Dim::Bounded(a), Dim::Bounded(b)) => Some(Dim::Bounded(a.max(b))),
        _ => Some(Dim::Dynamic),
    }
}

pub(super) fn select(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let [pred, on_true, on_false] = *cx.operands() else { return None };
    let (element, other) = (on_true.element()?, on_false.element()?);
    if !cx.check(element == other, "operands", || {
        format!("the values have different elements: {on_true} and {on_false}")
    }) {
        return None;
    }
    let values = match shape_of(on_true, on_false) {
        Shape::Of(dims) => Type::Tensor(TensorType::new(dims, element.clone())),
        other => return gives(cx, other, element.clone(), on_true, on_false),
    };
    gives(cx, shape_of(&values, pred), element.clone(), &values, pred)
}
