//! Fourier transforms as matrix products with constant tables.
//!
//! A line of `n = n1 · n2` elements is transformed in two steps (Cooley and Tukey): lines of `n1`, elements turned by powers of the root of one,
//! lines of `n2`. Both parts of a complex number are a dimension of size 2 of the operands, so that each step is one product.

use std::f64::consts::TAU;

use warpforge_ir::OpRef;
use warpforge_ir::attr::FftType;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::element::storage;
use super::pair::{Pair, is_zero, parts, product};
use super::sizes::sizes;
use crate::graph::NodeId;
use crate::graph::build::Builder;
use crate::graph::op::{Dot, Op};
use crate::view::LayoutOp;

/// Most elements of a line that one product transforms.
const MOST_DIRECT: usize = 1024;

/// Most elements of a line for which one product is no slower than two.
const FEW: usize = 32;

/// A transform of the last dimensions; nothing where lines are too long to be products.
pub(super) fn transform(b: &mut Builder, op: OpRef<'_>, operand: NodeId) -> Option<NodeId> {
    let kind: FftType = op.attr_enum("fft_type")?;
    let lengths = sizes(op.attr_i64s("fft_length")?)?;
    let (result, _) = storage(op.result_type(0)?)?;
    let rank = b.node(operand).dims.len();
    let (&length, rest) = lengths.split_last()?;
    let others = rank.checked_sub(lengths.len())?..rank - 1;
    if b.node(operand).is_empty() || lengths.iter().any(|&length| factors(length).is_none()) {
        return None;
    }
    let (ElementType::Float(part) | ElementType::Complex(part)) = result else { return None };
    let part = ElementType::Float(part);
    let inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
    let zeros = |b: &mut Builder| {
        let dims = b.node(operand).dims.clone();
        b.splat(part, Scalar::Float(0.0), dims)
    };
    let mut pair = match parts(b, operand) {
        Some(pair) => pair,
        None => Pair { re: operand, im: zeros(b)? },
    };
    // The real end is first forwards and last backwards.
    if kind == FftType::Irfft {
        for (axis, &length) in others.zip(rest) {
            pair = along(b, pair, axis, length, inverse)?;
        }
        pair = mirrored(b, pair, length);
        return Some(along(b, pair, rank - 1, length, inverse)?.re);
    }
    pair = along(b, pair, rank - 1, length, inverse)?;
    if kind == FftType::Rfft {
        pair = Pair {
            re: slice(b, pair.re, rank - 1, 0, length / 2 + 1),
            im: slice(b, pair.im, rank - 1, 0, length / 2 + 1),
        };
    }
    for (axis, &length) in others.zip(rest) {
        pair = along(b, pair, axis, length, inverse)?;
    }
    let dims = b.node(pair.re).dims.clone();
    Some(b.raw(Op::Complex, vec![pair.re, pair.im], result, dims))
}

/// The factors of a length, the smaller one first; 1 where one product does it.
fn factors(length: usize) -> Option<(usize, usize)> {
    if (1..=FEW).contains(&length) {
        return Some((1, length));
    }
    let least = (2..=length.isqrt()).rev().find(|&factor| length.is_multiple_of(factor)).unwrap_or(1);
    (length / least.max(1) <= MOST_DIRECT && length > 0).then_some((least, length / least))
}

/// A part of a dimension.
fn slice(b: &mut Builder, id: NodeId, axis: usize, start: usize, size: usize) -> NodeId {
    let mut dims = b.node(id).dims.clone();
    let mut starts = vec![0; dims.len()];
    (dims[axis], starts[axis]) = (size, start);
    let steps = vec![1; dims.len()];
    b.layout(LayoutOp::Slice { starts, steps, dims }, id)
}

/// The whole line of frequencies of real numbers, from the first half: the others are their mirror images.
fn mirrored(b: &mut Builder, half: Pair, length: usize) -> Pair {
    let axis = b.node(half.re).dims.len() - 1;
    // From the last that has an image down to the first that is not zero's.
    let images = length - (length / 2 + 1);
    if images == 0 {
        return half;
    }
    let mut whole = |id: NodeId, is_imaginary: bool| {
        let image = slice(b, id, axis, 1, images);
        let mut image = b.layout(LayoutOp::Reverse(vec![axis]), image);
        if is_imaginary {
            image = b.map(Function::Negate, vec![image]);
        }
        let (element, mut dims) = (b.node(id).element, b.node(id).dims.clone());
        dims[axis] = length;
        b.add(Op::Concat(axis), vec![id, image], element, dims)
    };
    Pair { re: whole(half.re, false), im: whole(half.im, true) }
}

/// The transform along a dimension.
fn along(b: &mut Builder, pair: Pair, axis: usize, length: usize, inverse: bool) -> Option<Pair> {
    let rank = b.node(pair.re).dims.len();
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 1);
    let swapped = |b: &mut Builder, Pair { re, im }: Pair| Pair {
        re: b.transpose(re, order.clone()),
        im: b.transpose(im, order.clone()),
    };
    let last = swapped(b, pair);
    let transformed = lines(b, last, length, inverse)?;
    Some(swapped(b, transformed))
}

/// The transform along the last dimension.
fn lines(b: &mut Builder, pair: Pair, length: usize, inverse: bool) -> Option<Pair> {
    let sign = if inverse { 1.0 } else { -1.0 };
    let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
    let (few, many) = factors(length)?;
    let dims = b.node(pair.re).dims.clone();
    let outer = dims[..dims.len() - 1].to_vec();
    let with = |inner: &[usize]| [outer.as_slice(), inner].concat();
    let reshaped = |b: &mut Builder, pair: Pair, inner: &[usize]| Pair {
        re: b.reshape(pair.re, with(inner)),
        im: b.reshape(pair.im, with(inner)),
    };
    if few == 1 {
        return step(b, pair, outer.len(), &Table { length, sign, scale });
    }
    // Element `j1 · many + j2` to frequency `k1 + few · k2`.
    let split = reshaped(b, pair, &[few, many]);
    let first = step(b, split, outer.len(), &Table { length: few, sign, scale })?;
    let turned = turned(b, first, &outer, (many, few), length, sign)?;
    let second = step(b, turned, outer.len(), &Table { length: many, sign, scale: 1.0 })?;
    let mut order: Vec<usize> = (0..outer.len() + 2).collect();
    order.swap(outer.len(), outer.len() + 1);
    let ordered = Pair { re: b.transpose(second.re, order.clone()), im: b.transpose(second.im, order) };
    Some(reshaped(b, ordered, &[length]))
}

/// The roots of one of a transform, times a scale.
struct Table {
    length: usize,
    sign: f64,
    scale: f64,
}

impl Table {
    fn root(&self, power: usize) -> (f64, f64) {
        let eighths = 8 * (power % self.length);
        // Quarter turns are exact: a real line has real frequencies there.
        let (cosine, sine) = match (eighths / self.length, eighths % self.length) {
            (0, 0) => (1.0, 0.0),
            (2, 0) => (0.0, 1.0),
            (4, 0) => (-1.0, 0.0),
            (6, 0) => (0.0, -1.0),
            _ => {
                let angle = TAU * (power % self.length) as f64 / self.length as f64;
                (angle.cos(), angle.sin())
            }
        };
        (self.scale * cosine, self.scale * self.sign * sine)
    }

    /// The matrix `[part of the element, element, part of the frequency, frequency]`, of real elements without the first.
    fn matrix(&self, element: ElementType, real: bool) -> Option<Tensor> {
        let n = self.length;
        let roots: Vec<(f64, f64)> = (0..n).map(|power| self.root(power)).collect();
        let mut numbers = Vec::with_capacity(4 * n * n);
        for from_imaginary in [false, true].into_iter().take(if real { 1 } else { 2 }) {
            for j in 0..n {
                for to_imaginary in [false, true] {
                    numbers.extend((0..n).map(|k| {
                        let (cosine, sine) = roots[j * k % n];
                        Scalar::Float(match (from_imaginary, to_imaginary) {
                            (false, false) | (true, true) => cosine,
                            (false, true) => sine,
                            (true, false) => -sine,
                        })
                    }));
                }
            }
        }
        let dims = if real { vec![n, 2, n] } else { vec![2, n, 2, n] };
        Tensor::from_scalars(element, Shape::new(dims).ok()?, numbers).ok()
    }
}

/// One product: dimension `axis` is transformed and becomes the last.
fn step(b: &mut Builder, pair: Pair, axis: usize, table: &Table) -> Option<Pair> {
    let (element, rank) = (b.node(pair.re).element, b.node(pair.re).dims.len());
    let real = is_zero(b, pair.im);
    let matrix = b.constant(table.matrix(element, real)?);
    let order: Vec<usize> = (0..rank).filter(|&at| at != axis).chain([axis]).collect();
    let re = b.transpose(pair.re, order.clone());
    let mut kept = b.node(re).dims.clone();
    kept.pop();
    let (operand, dot) = if real {
        (re, Dot { lhs_contract: vec![rank - 1], rhs_contract: vec![0], ..Dot::default() })
    } else {
        let im = b.transpose(pair.im, order);
        let operand = stacked(b, Pair { re, im });
        (operand, Dot { lhs_contract: vec![rank - 1, rank], rhs_contract: vec![0, 1], ..Dot::default() })
    };
    let dims = [kept.as_slice(), &[2, table.length]].concat();
    let dot = Dot { keeps_precision: true, ..dot };
    let both = b.raw(Op::Dot(dot), vec![operand, matrix], element, dims);
    let mut part = |at: usize| {
        let part = slice(b, both, rank - 1, at, 1);
        b.reshape(part, [kept.as_slice(), &[table.length]].concat())
    };
    Some(Pair { re: part(0), im: part(1) })
}

/// Both parts along a dimension before the last.
fn stacked(b: &mut Builder, Pair { re, im }: Pair) -> NodeId {
    let (element, mut dims) = (b.node(re).element, b.node(re).dims.clone());
    let axis = dims.len() - 1;
    dims.insert(axis, 1);
    let [re, im] = [re, im].map(|part| b.reshape(part, dims.clone()));
    dims[axis] = 2;
    b.add(Op::Concat(axis), vec![re, im], element, dims)
}

/// Elements `[…, j2, k1]` turned by the power `j2 · k1` of the root of one.
fn turned(
    b: &mut Builder,
    pair: Pair,
    outer: &[usize],
    (many, few): (usize, usize),
    length: usize,
    sign: f64,
) -> Option<Pair> {
    let element = b.node(pair.re).element;
    let table = Table { length, sign, scale: 1.0 };
    let shape = Shape::new(vec![many, few]).ok()?;
    let whole = [outer, &[many, few]].concat();
    let mut roots = |of: &dyn Fn((f64, f64)) -> f64| {
        let numbers = (0..many * few).map(|at| Scalar::Float(of(table.root(at / few * (at % few)))));
        let small = b.constant(Tensor::from_scalars(element, shape.clone(), numbers).ok()?);
        Some(b.broadcast(small, whole.clone(), &[outer.len(), outer.len() + 1]))
    };
    let roots = Pair { re: roots(&|root| root.0)?, im: roots(&|root| root.1)? };
    Some(product(b, pair, roots))
}
