//! Triangular factors: Cholesky, LU, and solving by them.

use super::matrix::{Matrix, Z};
use super::{letter, matrices, numbers, result, squares};
use crate::Value;
use crate::cx::Cx;
use crate::error::{Result, invalid};

/// Cholesky: the factor in one triangle, the other as it was; the second result is the first minor that is not
/// positive, counted from one, or zero.
pub(super) fn potrf(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let lower = letter(cx, "uplo")? == 'L';
    let (mut values, mut infos) = (Vec::new(), Vec::new());
    for matrix in squares(cx, 0)? {
        // The upper factor is the lower one of the transposed, transposed.
        let mut factor = if lower { matrix } else { matrix.transposed(Z::conj) };
        infos.push(cholesky(&mut factor));
        let factor = if lower { factor } else { factor.transposed(Z::conj) };
        values.extend(factor.into_values());
    }
    Ok(vec![result(cx, 0, values)?, numbers(cx, 1, infos)?])
}

fn cholesky(a: &mut Matrix) -> usize {
    for j in 0..a.rows() {
        let square = (0..j).fold(a[(j, j)].re, |left, k| left - a[(j, k)].square());
        if square.is_nan() || square <= 0.0 {
            return j + 1;
        }
        let root = square.sqrt();
        a[(j, j)] = Z::real(root);
        for i in j + 1..a.rows() {
            let left = (0..j).fold(a[(i, j)], |left, k| left - a[(i, k)] * a[(j, k)].conj());
            a[(i, j)] = left.scaled(1.0 / root);
        }
    }
    0
}

/// LU with row exchanges: both factors in one matrix, the row that each was exchanged with, counted from one, and the
/// first zero on the diagonal.
pub(super) fn getrf(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (mut values, mut pivots, mut infos) = (Vec::new(), Vec::new(), Vec::new());
    for mut matrix in matrices(cx, 0)? {
        infos.push(lu(&mut matrix, &mut pivots));
        values.extend(matrix.into_values());
    }
    Ok(vec![result(cx, 0, values)?, numbers(cx, 1, pivots)?, numbers(cx, 2, infos)?])
}

fn lu(a: &mut Matrix, pivots: &mut Vec<usize>) -> usize {
    let mut info = 0;
    // LAPACK compares complex numbers by the sum of their parts' magnitudes, and takes the first of equals.
    let size = |z: Z| z.re.abs() + z.im.abs();
    for j in 0..a.rows().min(a.cols()) {
        let mut pivot = j;
        for i in j + 1..a.rows() {
            if size(a[(i, j)]) > size(a[(pivot, j)]) {
                pivot = i;
            }
        }
        pivots.push(pivot + 1);
        if a[(pivot, j)] == Z::ZERO {
            info = if info == 0 { j + 1 } else { info };
            continue;
        }
        a.swap_rows(j, pivot);
        for i in j + 1..a.rows() {
            let factor = a[(i, j)] / a[(j, j)];
            a[(i, j)] = factor;
            for k in j + 1..a.cols() {
                a[(i, k)] = a[(i, k)] - factor * a[(j, k)];
            }
        }
    }
    info
}

/// Solves `op(A) X = B`, or `X op(A) = B`, with a triangle of A.
pub(super) fn trsm(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let right = letter(cx, "side")? == 'R';
    let (trans, unit) = (letter(cx, "trans_x")?, letter(cx, "diag")? == 'U');
    let (triangles, sides) = (squares(cx, 0)?, matrices(cx, 1)?);
    if triangles.len() != sides.len() {
        return Err(invalid("there are not as many triangles as right sides"));
    }
    let lower = letter(cx, "uplo")? == 'L';
    let mut values = Vec::new();
    for (a, b) in triangles.iter().zip(&sides) {
        if a.rows() != if right { b.cols() } else { b.rows() } {
            return Err(invalid("the triangle does not fit the right side"));
        }
        let applied = match trans {
            'N' => a.clone(),
            'C' => a.transposed(Z::conj),
            _ => a.transposed(|z| z),
        };
        // What is on the right of X stands transposed on the left of X transposed.
        let from_top = lower == ((trans == 'N') != right);
        values.extend(
            if right {
                solve(&applied.transposed(|z| z), b.transposed(|z| z), from_top, unit).transposed(|z| z)
            } else {
                solve(&applied, b.clone(), from_top, unit)
            }
            .into_values(),
        );
    }
    Ok(vec![result(cx, 0, values)?])
}

/// Solves `A X = B` by substitution, from the first row when A is lower triangular.
fn solve(a: &Matrix, mut x: Matrix, from_top: bool, unit: bool) -> Matrix {
    let n = a.rows();
    for step in 0..n {
        let i = if from_top { step } else { n - 1 - step };
        let known = if from_top { 0..i } else { i + 1..n };
        for j in 0..x.cols() {
            let left = known.clone().fold(x[(i, j)], |left, k| left - a[(i, k)] * x[(k, j)]);
            x[(i, j)] = if unit { left } else { left / a[(i, i)] };
        }
    }
    x
}
