//! Reflections `I - tau v vᴴ`: QR, and the reductions that begin with them.

use super::matrix::{Matrix, Z};
use super::{matrices, result};
use crate::Value;
use crate::cx::Cx;
use crate::error::{Result, invalid};

/// QR: R above the diagonal, the vectors of the reflections below, and their factors apart.
pub(super) fn geqrf(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (mut values, mut taus) = (Vec::new(), Vec::new());
    for mut matrix in matrices(cx, 0)? {
        taus.extend(qr(&mut matrix));
        values.extend(matrix.into_values());
    }
    Ok(vec![result(cx, 0, values)?, result(cx, 1, taus)?])
}

/// The first columns of the product of the reflections.
pub(super) fn orgqr(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let vectors = matrices(cx, 0)?;
    let taus: Vec<Z> = cx.tensor(1)?.iter().map(Z::from).collect();
    let count = cx.tensor(1)?.dims().last().copied().unwrap_or(0);
    let fits = |matrix: &Matrix| count <= matrix.cols().min(matrix.rows());
    if vectors.len() * count != taus.len() || !vectors.iter().all(fits) {
        return Err(invalid("the factors do not fit the vectors"));
    }
    let mut values = Vec::new();
    for (at, matrix) in vectors.iter().enumerate() {
        values.extend(product(matrix, &taus[at * count..][..count], 0, matrix.cols()).into_values());
    }
    Ok(vec![result(cx, 0, values)?])
}

/// Factors a matrix in place and gives the factors of the reflections.
pub(super) fn qr(a: &mut Matrix) -> Vec<Z> {
    (0..a.rows().min(a.cols()))
        .map(|j| {
            let tau = reflect(a, j, j);
            let head = std::mem::replace(&mut a[(j, j)], Z::ONE);
            apply(a, &vector(a, j, j), tau.conj(), j + 1);
            a[(j, j)] = head;
            tau
        })
        .collect()
}

/// Makes the reflection that clears column `j` below `row`: its vector takes the column's place, with the one at `row`
/// left out for what remains of the column.
pub(super) fn reflect(a: &mut Matrix, row: usize, j: usize) -> Z {
    let alpha = a[(row, j)];
    let below = (row + 1..a.rows()).map(|i| a[(i, j)].abs()).fold(0.0, f64::hypot);
    if below == 0.0 && alpha.im == 0.0 {
        return Z::ZERO;
    }
    let beta = -alpha.abs().hypot(below).copysign(alpha.re);
    for i in row + 1..a.rows() {
        a[(i, j)] = a[(i, j)] / (alpha - Z::real(beta));
    }
    a[(row, j)] = Z::real(beta);
    Z { re: (beta - alpha.re) / beta, im: -alpha.im / beta }
}

/// The vector of the reflection in column `j` that begins at `row`.
pub(super) fn vector(a: &Matrix, row: usize, j: usize) -> Vec<Z> {
    let inside = |i: usize| match i.cmp(&row) {
        std::cmp::Ordering::Less => Z::ZERO,
        std::cmp::Ordering::Equal => Z::ONE,
        std::cmp::Ordering::Greater => a[(i, j)],
    };
    (0..a.rows()).map(inside).collect()
}

/// Applies a reflection to the columns from `first`.
pub(super) fn apply(a: &mut Matrix, v: &[Z], tau: Z, first: usize) {
    for j in first..a.cols() {
        let along = v.iter().enumerate().fold(Z::ZERO, |sum, (i, v)| sum + v.conj() * a[(i, j)]);
        for (i, &v) in v.iter().enumerate() {
            a[(i, j)] = a[(i, j)] - tau * v * along;
        }
    }
}

/// The first `cols` columns of the product of the reflections in the columns of `a`, the first of which begins
/// `below` rows under the diagonal.
pub(super) fn product(a: &Matrix, taus: &[Z], below: usize, cols: usize) -> Matrix {
    let mut q = Matrix::identity(a.rows(), cols);
    for (j, &tau) in taus.iter().enumerate().rev() {
        apply(&mut q, &vector(a, j + below, j), tau, 0);
    }
    q
}
