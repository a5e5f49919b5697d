//! The LAPACK routines that JAX calls on the host: `custom_call @lapack_spotrf_ffi` and its kin.
//!
//! All compute in complex binary64, whatever the element type, and round at the end. Results that LAPACK leaves to the
//! algorithm (the sign of a singular or eigenvector, the order of the eigenvalues of a general matrix) are LAPACK's own
//! only for symmetric matrices of at most 25 rows, where the algorithm is the same.

mod eigen;
mod factor;
mod householder;
mod matrix;
mod svd;
mod tridiagonal;

use warpforge_ir::Attribute;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use crate::Value;
use crate::cx::Cx;
use crate::error::{Result, invalid};
use crate::ops::Evaluator;
use matrix::{Matrix, Z};

/// The routines by their names in LAPACK, without the letter for the element type.
const ROUTINES: &[(&str, Evaluator)] = &[
    ("geev", eigen::geev),
    ("geqrf", householder::geqrf),
    ("gesdd", svd::gesdd),
    ("getrf", factor::getrf),
    ("heevd", eigen::syevd),
    ("orgqr", householder::orgqr),
    ("potrf", factor::potrf),
    ("syevd", eigen::syevd),
    ("trsm", factor::trsm),
    ("ungqr", householder::orgqr),
];

/// The evaluator of a custom call's target.
pub(super) fn routine(target: &str) -> Option<Evaluator> {
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let name = name.strip_prefix(['s', 'd', 'c', 'z'])?;
    ROUTINES.iter().find(|(known, _)| *known == name).map(|(_, evaluator)| *evaluator)
}

/// A letter of the call's configuration, such as `L` for `uplo = 76`.
fn letter(cx: &Cx<'_, '_, '_>, name: &str) -> Result<char> {
    let config = cx.op.attr("mhlo.backend_config").and_then(Attribute::as_dict);
    let code = config.and_then(|config| config.get(name)).and_then(Attribute::as_i64);
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.map(char::from).ok_or_else(|| invalid(format!("mhlo.backend_config has no letter `{name}`")))
}

/// The matrices of an operand: its last two dimensions, one for each of the others' elements.
fn matrices(cx: &Cx<'_, '_, '_>, index: usize) -> Result<Vec<Matrix>> {
    let tensor = cx.tensor(index)?;
    let &[.., rows, cols] = tensor.dims() else {
        return Err(invalid(format!("operand {index} is no matrix")));
    };
    let values: Vec<Z> = tensor.iter().map(Z::from).collect();
    // Every matrix of a tensor without elements is empty, however many there are.
    let parts = values.chunks(rows.saturating_mul(cols).max(1));
    Ok(parts.map(|part| Matrix::new(rows, cols, part.to_vec())).collect())
}

/// Square matrices of an operand.
fn squares(cx: &Cx<'_, '_, '_>, index: usize) -> Result<Vec<Matrix>> {
    let found = matrices(cx, index)?;
    if found.iter().any(|matrix| matrix.rows() != matrix.cols()) {
        return Err(invalid(format!("operand {index} is not square")));
    }
    Ok(found)
}

/// A result from the values of all matrices or vectors in order.
fn result(cx: &Cx<'_, '_, '_>, index: usize, values: impl IntoIterator<Item = Z>) -> Result<Value> {
    let (element, shape) = (cx.result_element(index)?, cx.result_shape(index)?);
    let scalar = |z: Z| match element {
        ElementType::Complex(_) => Scalar::Complex(z.re, z.im),
        ElementType::Int(_) => Scalar::Int(z.re as i128),
        _ => Scalar::Float(z.re),
    };
    Ok(Tensor::from_scalars(element, shape, values.into_iter().map(scalar))?.into())
}

/// A result of whole numbers.
fn numbers(cx: &Cx<'_, '_, '_>, index: usize, values: impl IntoIterator<Item = usize>) -> Result<Value> {
    result(cx, index, values.into_iter().map(|value| Z::real(value as f64)))
}

/// A result that the routine leaves undefined: zeros.
fn undefined(cx: &Cx<'_, '_, '_>, index: usize) -> Result<Value> {
    let (element, shape): (ElementType, Shape) = (cx.result_element(index)?, cx.result_shape(index)?);
    Ok(Tensor::zeros(element, shape)?.into())
}

#[cfg(test)]
mod tests;
