//! Complex numbers as pairs of real ones: both parts of each are nodes of their own, so that every device has kernels for them.

use warpforge_ir::attr::{ComparisonDirection, ElementData};
use warpforge_ir::{OpKind, OpRef, Type};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::element::storage;
use super::fourier;
use super::lowered::lowered;
use super::pair::{Pair, Part, parts, product};
use super::reduce::with_initial;
use super::sizes::sizes;
use crate::graph::NodeId;
use crate::graph::build::Builder;
use crate::graph::op::Op;
use crate::graph::scalar::{ReduceKind, comparison_type};

/// An operation that takes or gives complex numbers, of their parts; nothing where there is no form for it.
pub(super) fn of_parts(b: &mut Builder, op: OpRef<'_>, given: &[NodeId]) -> Option<NodeId> {
    if op.result_count() != 1 {
        return None;
    }
    let (element, dims) = storage(op.result_type(0)?)?;
    let takes = |ty: &Type| storage(ty).is_some_and(|(element, _)| element.is_complex());
    if !element.is_complex() && !op.operand_types().any(takes) {
        return None;
    }
    let first = given.first().copied();
    match op.kind()? {
        OpKind::Complex => {
            let &[re, im] = given else { return None };
            Pair { re, im }.whole(b)
        }
        OpKind::Real => Some(parts(b, first?)?.re),
        OpKind::Imag => Some(parts(b, first?)?.im),
        OpKind::Abs => {
            let pair = parts(b, first?)?;
            magnitude(b, pair)
        }
        OpKind::Constant => constant(b, op, &dims)?.whole(b),
        OpKind::Convert => converted(b, first?, element),
        OpKind::Multiply => {
            let (one, other) = (parts(b, first?)?, parts(b, *given.get(1)?)?);
            product(b, one, other).whole(b)
        }
        OpKind::Exponential => {
            let pair = parts(b, first?)?;
            exponential(b, pair)?.whole(b)
        }
        OpKind::DotGeneral | OpKind::Dot => {
            let (one, other) = (parts(b, first?)?, parts(b, *given.get(1)?)?);
            let ElementType::Complex(part) = element else { return None };
            let mut dot =
                |left, right| lowered(b, op, vec![left, right], ElementType::Float(part), dims.clone());
            let [rr, ii] = [dot(one.re, other.re)?, dot(one.im, other.im)?];
            let [ri, ir] = [dot(one.re, other.im)?, dot(one.im, other.re)?];
            let re = b.map(Function::Subtract, vec![rr, ii]);
            let im = b.map(Function::Add, vec![ri, ir]);
            Pair { re, im }.whole(b)
        }
        OpKind::Fft => fourier::transform(b, op, first?),
        OpKind::Reduce => {
            let (&[input, init], axes) = (given, sizes(op.attr_i64s("dimensions")?)?) else { return None };
            if !adds(op) || b.node(input).is_empty() {
                return None;
            }
            let (input, init) = (parts(b, input)?, parts(b, init)?);
            let mut sum = |input: NodeId, init: NodeId| {
                let element = b.node(input).element;
                let sum = Op::Reduce(ReduceKind::Add, axes.clone());
                let sum = b.add(sum, vec![input], element, dims.clone());
                with_initial(b, ReduceKind::Add, sum, init, dims.clone())
            };
            let (re, im) = (sum(input.re, init.re)?, sum(input.im, init.im)?);
            Pair { re, im }.whole(b)
        }
        // Part by part.
        OpKind::Add
        | OpKind::Subtract
        | OpKind::Negate
        | OpKind::Select
        | OpKind::Reshape
        | OpKind::Transpose
        | OpKind::BroadcastInDim
        | OpKind::Slice
        | OpKind::Reverse
        | OpKind::Concatenate
        | OpKind::Pad
        | OpKind::Gather
        | OpKind::DynamicSlice
        | OpKind::DynamicUpdateSlice => {
            let ElementType::Complex(part) = element else { return None };
            let mut each = |which: Part| {
                let given = given
                    .iter()
                    .map(|&id| match b.node(id).element.is_complex() {
                        true => Some(parts(b, id)?.part(which)),
                        false => Some(id),
                    })
                    .collect::<Option<Vec<_>>>()?;
                lowered(b, op, given, ElementType::Float(part), dims.clone())
            };
            let (re, im) = (each(Part::Real)?, each(Part::Imaginary)?);
            Pair { re, im }.whole(b)
        }
        _ => None,
    }
}

/// Whether a reduction adds.
fn adds(op: OpRef<'_>) -> bool {
    let Some(block) = op.region_block(0) else { return false };
    let arguments = op.module().arguments(block);
    let mut ops = op.module().ops_in(block);
    let (Some(first), Some(last), None) = (ops.next(), ops.next(), ops.next()) else { return false };
    first.is(OpKind::Add)
        && first.operands().len() == 2
        && arguments.iter().all(|argument| first.operands().contains(argument))
        && last.is(OpKind::Return)
        && first.result(0).is_some_and(|sum| *last.operands() == [sum])
}

/// A complex constant.
fn constant(b: &mut Builder, op: OpRef<'_>, dims: &[usize]) -> Option<Pair> {
    let elements = op.attr_elements("value")?;
    let element = elements.ty().element().plain()?;
    let ElementType::Complex(part) = element else { return None };
    let part = ElementType::Float(part);
    let (tensor, splat) = match elements.data() {
        ElementData::Splat(bytes) => (Tensor::from_bytes(element, Shape::scalar(), bytes).ok()?, true),
        ElementData::Raw(bytes) => {
            (Tensor::from_blob(element, Shape::new(dims.to_vec()).ok()?, bytes.clone()).ok()?, false)
        }
        ElementData::Resource(_) => return None,
    };
    let mut real = |of: &dyn Fn((f64, f64)) -> f64| {
        let numbers = tensor.iter().map(|value| Scalar::Float(of(value.to_complex())));
        let one = b.constant(Tensor::from_scalars(part, tensor.shape().clone(), numbers).ok()?);
        Some(if splat { b.broadcast(one, dims.to_vec(), &[]) } else { one })
    };
    Some(Pair { re: real(&|value| value.0)?, im: real(&|value| value.1)? })
}

/// A value in another type: a real number has no imaginary part, and the real part of a complex one is kept.
fn converted(b: &mut Builder, id: NodeId, to: ElementType) -> Option<NodeId> {
    let dims = b.node(id).dims.clone();
    let convert = |b: &mut Builder, id: NodeId, to: ElementType| {
        b.add(Op::Elementwise(Function::Convert), vec![id], to, dims.clone())
    };
    let ElementType::Complex(part) = to else {
        let Pair { re, .. } = parts(b, id)?;
        return Some(convert(b, re, to));
    };
    let part = ElementType::Float(part);
    let pair = match parts(b, id) {
        Some(Pair { re, im }) => Pair { re: convert(b, re, part), im: convert(b, im, part) },
        None => Pair { re: convert(b, id, part), im: b.splat(part, Scalar::Float(0.0), dims.clone())? },
    };
    pair.whole(b)
}

/// Of a real number real, also where the length is infinite.
fn exponential(b: &mut Builder, Pair { re, im }: Pair) -> Option<Pair> {
    let (element, dims) = (b.node(im).element, b.node(im).dims.clone());
    let length = b.map(Function::Exponential, vec![re]);
    let [cosine, sine] = [Function::Cosine, Function::Sine].map(|function| b.map(function, vec![im]));
    let zero = b.splat(element, Scalar::Float(0.0), dims)?;
    let is_real = b.compare(ComparisonDirection::Eq, comparison_type(element), im, zero);
    let turned = b.map(Function::Multiply, vec![length, sine]);
    Some(Pair {
        re: b.map(Function::Multiply, vec![length, cosine]),
        im: b.map(Function::Select, vec![is_real, im, turned]),
    })
}

/// The length of a number, without squares that overflow.
fn magnitude(b: &mut Builder, Pair { re, im }: Pair) -> Option<NodeId> {
    let (element, dims) = (b.node(re).element, b.node(re).dims.clone());
    let [re, im] = [re, im].map(|part| b.map(Function::Abs, vec![part]));
    let large = b.map(Function::Maximum, vec![re, im]);
    let small = b.map(Function::Minimum, vec![re, im]);
    let zero = b.splat(element, Scalar::Float(0.0), dims.clone())?;
    let one = b.splat(element, Scalar::Float(1.0), dims)?;
    let finite = b.map(Function::Multiply, vec![large, zero]);
    // Of zero, infinity and NaN the larger part is the length.
    let order = comparison_type(element);
    let is_finite = b.compare(ComparisonDirection::Eq, order, finite, zero);
    let is_zero = b.compare(ComparisonDirection::Eq, order, large, zero);
    let divisor = b.map(Function::Select, vec![is_zero, one, large]);
    let ratio = b.map(Function::Divide, vec![small, divisor]);
    let square = b.map(Function::Multiply, vec![ratio, ratio]);
    let sum = b.map(Function::Add, vec![square, one]);
    let root = b.map(Function::Sqrt, vec![sum]);
    let length = b.map(Function::Multiply, vec![large, root]);
    Some(b.map(Function::Select, vec![is_finite, length, large]))
}
