//! Dots and convolutions.

mod convolution;
mod dot;
mod einsum;
mod product;

use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use super::Evaluator;
use super::quantized::{dequantized, quantized};
use crate::Value;
use crate::cx::{Cx, one};
use crate::error::Result;
use crate::math::complex;
use crate::native::matmul::RUN;

pub(super) use dot::dot_of;

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::Convolution => convolution::convolution,
        OpKind::Dot => dot::dot,
        OpKind::DotGeneral => dot::dot_general,
        OpKind::DynamicConv => convolution::dynamic_conv,
        OpKind::Einsum => einsum::einsum,
        OpKind::UnaryEinsum => einsum::unary_einsum,
        _ => return None,
    })
}

/// A sum of products, one after the other. Integers wrap around at the end. Binary32 and its complex numbers are rounded
/// at each step, as the specification's multiply and add would, for runs of [`RUN`] products; the runs are summed in
/// binary64, so that long sums do not lose what short ones keep. Other floats are summed in binary64 and rounded when the
/// sum is stored, as hardware that has narrow ones accumulates in something wider.
pub(super) struct Sum {
    total: Scalar,
    run: Scalar,
    length: usize,
    single: bool,
}

impl Sum {
    /// The sum of nothing, for a result of this type.
    pub(super) fn zero(element: ElementType) -> Self {
        let (zero, single) = (Scalar::zero(element), element.float_part() == Some(FloatType::F32));
        Self { total: zero, run: zero, length: 0, single }
    }

    pub(super) fn add_product(&mut self, a: Scalar, b: Scalar) {
        let single = self.single;
        let round = |x: f64| if single { f64::from(x as f32) } else { x };
        self.run = match self.run {
            Scalar::Complex(re, im) => {
                let product = complex::mul(a.to_complex(), b.to_complex(), round);
                Scalar::Complex(round(re + product.0), round(im + product.1))
            }
            Scalar::Float(sum) => Scalar::Float(round(sum + round(a.to_f64() * b.to_f64()))),
            Scalar::Bool(sum) => Scalar::Bool(sum || a.is_true() && b.is_true()),
            Scalar::Int(sum) => {
                let product = match (a, b) {
                    (Scalar::Float(_), _) | (_, Scalar::Float(_)) => (a.to_f64() * b.to_f64()) as i128,
                    _ => a.to_i128().wrapping_mul(b.to_i128()),
                };
                Scalar::Int(sum.wrapping_add(product))
            }
        };
        self.length += 1;
        if self.length == RUN {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        self.total = match (self.total, self.run) {
            (Scalar::Complex(re, im), run) => {
                let run = run.to_complex();
                Scalar::Complex(re + run.0, im + run.1)
            }
            (Scalar::Float(total), run) => Scalar::Float(total + run.to_f64()),
            (Scalar::Bool(total), run) => Scalar::Bool(total || run.is_true()),
            (Scalar::Int(total), run) => Scalar::Int(total.wrapping_add(run.to_i128())),
        };
        let zero = match self.total {
            Scalar::Complex(..) => Scalar::Complex(0.0, 0.0),
            Scalar::Float(_) => Scalar::Float(0.0),
            Scalar::Bool(_) => Scalar::Bool(false),
            Scalar::Int(_) => Scalar::Int(0),
        };
        (self.run, self.length) = (zero, 0);
    }

    pub(super) fn value(mut self) -> Scalar {
        self.end_run();
        self.total
    }
}

/// Positions of all elements along some dimensions, from the first element on.
fn offsets(shape: &Shape, dims: &[usize]) -> Result<Vec<i64>> {
    let strides = shape.strides();
    let inner = Shape::new(dims.iter().map(|&dim| shape.dims()[dim]).collect::<Vec<_>>())?;
    let mut indices = inner.indices();
    let mut offsets = Vec::with_capacity(inner.num_elements());
    while let Some(index) = indices.advance() {
        offsets.push(index.iter().zip(dims).map(|(at, &dim)| (at * strides[dim]) as i64).sum());
    }
    Ok(offsets)
}

/// Both operands as the real numbers they stand for.
fn operands(cx: &Cx<'_, '_, '_>) -> Result<(Tensor, Tensor)> {
    Ok((dequantized(cx.tensor(0)?, cx.operand_type(0)?)?, dequantized(cx.tensor(1)?, cx.operand_type(1)?)?))
}

fn finish(cx: &Cx<'_, '_, '_>, result: &Tensor) -> Result<Vec<Value>> {
    one(quantized(result, cx.result_type(0)?)?)
}
