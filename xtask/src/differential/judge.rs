//! Whether two results of an operation are close enough.

use warpforge_tensor::{Scalar, Tensor};

use super::program::Judge;

/// Describes the worst element that is too far off, if there is one.
pub(crate) fn difference(
    judge: Judge,
    operands: &[&Tensor],
    ours: &Tensor,
    theirs: &Tensor,
) -> Option<String> {
    if ours.element_type() != theirs.element_type() || ours.dims() != theirs.dims() {
        return Some(format!("{:?} and {:?} are of different types", ours.dims(), theirs.dims()));
    }
    // Products of infinite complex numbers are a matter of convention.
    let conventional = ours.element_type().is_complex() && operands.iter().any(|operand| !is_finite(operand));
    if conventional {
        return None;
    }
    let scale = scale_of(operands);
    (0..ours.len()).find_map(|at| {
        let (mine, other) = (ours.get(at), theirs.get(at));
        let close = match (mine, other) {
            (Scalar::Float(a), Scalar::Float(b)) => is_close(judge, ours, scale, a, b, b.abs()),
            (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
                let size = c.hypot(d);
                is_close(judge, ours, scale, a, c, size) && is_close(judge, ours, scale, b, d, size)
            }
            _ => mine == other,
        };
        (!close).then(|| format!("element {at}: we have {mine:?}, XLA has {other:?}"))
    })
}

fn is_close(judge: Judge, tensor: &Tensor, scale: f64, ours: f64, theirs: f64, size: f64) -> bool {
    if ours == theirs || ours.is_nan() && theirs.is_nan() {
        return true;
    }
    let Some(format) = tensor.element_type().float_part().map(warpforge_tensor::FloatType::format) else {
        return false;
    };
    let epsilon = format.epsilon();
    let tolerance = match judge {
        Judge::Exact => 0.0,
        Judge::Ulps(count) => count * epsilon * size,
        Judge::Sum(terms) => 4.0 * terms as f64 * epsilon * scale,
    };
    // XLA flushes what is too small for a normal number.
    (ours - theirs).abs() <= tolerance + format.min_normal()
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
