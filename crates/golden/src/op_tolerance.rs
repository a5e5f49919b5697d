//! Whether two results of one operation on the same operands are near enough.

use warpforge_ir::calls::KnownCall;
use warpforge_ir::{OpKind, OpRef, TensorType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatFormat, Scalar, Tensor};

/// How near two results of an operation must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpTolerance {
    /// Equal: integers, and floats that are moved, compared or rounded once.
    Exact,
    /// Within so many units in the last place of the larger of result and operands.
    Ulps(f64),
    /// The same, of a sum of so many products of operands, each rounded to the type of the result.
    Sum(usize),
    /// The same, of sums that are at least of binary32 and rounded to the type of the result once.
    Product(usize),
}

/// Functions that libraries approximate: a few units in the last place, more for compositions.
const APPROXIMATE: f64 = 64.0;

impl OpTolerance {
    /// How near a device must come to the reference in an operation. What devices leave to the reference is exact.
    #[must_use]
    pub fn of(op: OpRef<'_>) -> Self {
        use OpKind::*;
        let Some(kind) = op.kind() else { return OpTolerance::Exact };
        match kind {
            Add | Subtract | Multiply | Divide | Sqrt | Remainder => OpTolerance::Ulps(1.0),
            _ if Function::of_op(kind.name()).is_some_and(Function::is_approximate) => {
                // Computed in a wider type, and rounded once.
                OpTolerance::Ulps(if is_narrow(op) { 1.0 } else { APPROXIMATE })
            }
            DotGeneral | Dot | Convolution => OpTolerance::Product(terms(op).unwrap_or(1)),
            Reduce | ReduceWindow | Scatter if computes(op) => OpTolerance::Sum(terms(op).unwrap_or(1)),
            CustomCall => of_call(op),
            _ => OpTolerance::Exact,
        }
    }
}

/// That of a custom call: the samples of a region's bin are summed, and so are the gradients of all bins that an element is in.
fn of_call(op: OpRef<'_>) -> OpTolerance {
    match KnownCall::of(op) {
        Some(KnownCall::RoiAlign(align)) => {
            let samples = align.sampling_ratio.map_or(64, |ratio| ratio as usize);
            OpTolerance::Sum(4 * samples * samples)
        }
        Some(KnownCall::RoiAlignBackward(_)) => {
            let bins = op.operand_tensor(0).and_then(TensorType::shape_usize);
            OpTolerance::Sum(bins.map_or(1, |dims| 4 * dims[0] * dims[2] * dims[3]))
        }
        Some(KnownCall::Nms { .. }) | None => OpTolerance::Exact,
    }
}

/// Whether a result has fewer digits than binary32.
fn is_narrow(op: OpRef<'_>) -> bool {
    let element = op.result_tensor(0).and_then(|ty| ty.element().storage());
    element
        .and_then(ElementType::float_part)
        .is_some_and(|float| float.format().mantissa_bits < FloatFormat::F32.mantissa_bits)
}

/// Whether the region of an operation computes with floats, rather than choosing among them.
fn computes(op: OpRef<'_>) -> bool {
    let module = op.module();
    let mut inner = op.region_block(0).into_iter().flat_map(|block| module.ops_in(block));
    inner.any(|op| !matches!(OpTolerance::of(op), OpTolerance::Exact))
}

/// How many terms the longest sum of an operation has.
fn terms(op: OpRef<'_>) -> Option<usize> {
    let size = |index: usize| op.operand_tensor(index).and_then(elements);
    match op.kind()? {
        OpKind::DotGeneral => {
            let dims = op.operand_tensor(0)?.shape_usize()?;
            let summed = op.dot_dims()?.lhs_contracting.iter();
            Some(summed.filter_map(|&at| dims.get(usize::try_from(at).ok()?)).product())
        }
        OpKind::Dot => op.operand_tensor(0)?.shape_usize()?.last().copied(),
        OpKind::Convolution => {
            let dims = op.operand_tensor(1)?.shape_usize()?;
            let out = dims.get(usize::try_from(op.conv_dims()?.kernel_output_feature).ok()?)?;
            Some(dims.iter().product::<usize>() / (*out).max(1))
        }
        OpKind::ReduceWindow => op
            .attr_i64s("window_dimensions")?
            .iter()
            .try_fold(1usize, |all, &one| all.checked_mul(usize::try_from(one).ok()?)),
        // All updates may fall on one element.
        OpKind::Scatter => size(op.operands().len() - 1)?.checked_add(1),
        _ => Some(size(0)?.div_ceil(op.result_tensor(0).and_then(elements)?.max(1))),
    }
}

fn elements(ty: &TensorType) -> Option<usize> {
    ty.shape_usize()?.iter().try_fold(1usize, |all, &one| all.checked_mul(one))
}

/// Describes the first element that is too far off, if there is one.
#[must_use]
pub fn difference(
    tolerance: OpTolerance,
    operands: &[&Tensor],
    reference: &Tensor,
    other: &Tensor,
) -> Option<String> {
    if reference.element_type() != other.element_type() || reference.dims() != other.dims() {
        return Some(format!("{:?} and {:?} are of different types", reference.dims(), other.dims()));
    }
    // Products of infinite complex numbers are a matter of convention.
    let conventional =
        reference.element_type().is_complex() && operands.iter().any(|operand| !is_finite(operand));
    if conventional || reference.identical(other) {
        return None;
    }
    let scale = scale_of(operands);
    (0..reference.len()).find_map(|at| {
        let (one, found) = (reference.get(at), other.get(at));
        let close = match (one, found) {
            (Scalar::Float(a), Scalar::Float(b)) => is_close(tolerance, reference, scale, a, b, b.abs()),
            (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
                let size = c.hypot(d);
                is_close(tolerance, reference, scale, a, c, size)
                    && is_close(tolerance, reference, scale, b, d, size)
            }
            _ => one == found,
        };
        (!close).then(|| format!("element {at}: the reference has {one}, the other {found}"))
    })
}

fn is_close(tolerance: OpTolerance, tensor: &Tensor, scale: f64, one: f64, other: f64, size: f64) -> bool {
    if one == other || one.is_nan() && other.is_nan() {
        return true;
    }
    let Some(format) = tensor.element_type().float_part().map(warpforge_tensor::FloatType::format) else {
        return false;
    };
    let epsilon = format.epsilon();
    let tolerance = match tolerance {
        OpTolerance::Exact => 0.0,
        OpTolerance::Ulps(count) => count * epsilon * size,
        OpTolerance::Sum(terms) => 4.0 * terms as f64 * epsilon * scale,
        OpTolerance::Product(terms) => {
            let sums = epsilon.min(FloatFormat::F32.epsilon());
            4.0 * terms as f64 * sums * scale + epsilon * size
        }
    };
    // Some flush what is too small for a normal number.
    (one - other).abs() <= tolerance + format.min_normal()
}

/// How large the terms of a sum of products of the operands can be.
fn scale_of(operands: &[&Tensor]) -> f64 {
    let sizes: Vec<f64> = operands.iter().map(|operand| largest(operand)).collect();
    sizes.iter().copied().fold(1.0, f64::max).max(sizes.iter().product())
}

fn parts(tensor: &Tensor) -> impl Iterator<Item = f64> + '_ {
    tensor.iter().flat_map(|value| {
        let (re, im) = value.to_complex();
        [re, im]
    })
}

fn largest(tensor: &Tensor) -> f64 {
    parts(tensor).map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn is_finite(tensor: &Tensor) -> bool {
    !tensor.element_type().is_complex() && !tensor.element_type().is_float()
        || parts(tensor).all(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;
    use warpforge_tensor::Shape;

    #[test]
    fn a_wrong_last_place_is_seen_where_it_must_be_right() {
        let [one, next] = [1.0f32, 1.0 + f32::EPSILON].map(|x| Tensor::from_slice(&[1], &[x]).unwrap());
        let judged = |tolerance| difference(tolerance, &[], &one, &next).is_some();
        assert!(judged(OpTolerance::Exact));
        assert!(judged(OpTolerance::Ulps(0.5)));
        assert!(!judged(OpTolerance::Ulps(1.0)));
        assert!(!judged(OpTolerance::Product(0)));
        let other = Tensor::zeros(ElementType::F32, Shape::new([2]).unwrap()).unwrap();
        assert!(difference(OpTolerance::Ulps(1e9), &[], &one, &other).is_some(), "other shapes");
    }

    #[test]
    fn operations_are_judged_by_what_they_compute() {
        let module = "func.func @main(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>, %h: tensor<4xbf16>) -> tensor<f32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.reduce(%0 init: %z) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %3 = stablehlo.tanh %2 : tensor<f32>
    %4 = stablehlo.tanh %h : tensor<4xbf16>
    %5 = stablehlo.add %1, %3 : tensor<f32>
    return %5 : tensor<f32>\n}";
        let module = text::parse(&Source::new("m", module), &text::Options::default()).unwrap();
        let body = module.function("main").unwrap().body().unwrap();
        let judged: Vec<OpTolerance> = module.ops_in(body).map(OpTolerance::of).collect();
        let expected = [
            OpTolerance::Exact,
            OpTolerance::Product(6),
            OpTolerance::Sum(20),
            OpTolerance::Exact,
            OpTolerance::Ulps(64.0),
            OpTolerance::Ulps(1.0),
            OpTolerance::Ulps(1.0),
            OpTolerance::Exact,
        ];
        assert_eq!(judged, expected);
    }
}
