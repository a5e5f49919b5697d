//! Singular values by rotations of the columns (one-sided Jacobi).

use super::matrix::{Matrix, Z};
use super::{householder, letter, matrices, numbers, result, undefined};
use crate::Value;
use crate::cx::Cx;
use crate::error::Result;

/// Passes over all pairs of columns; convergence is quadratic, so that fewer than ten are usual.
const SWEEPS: usize = 60;

/// The matrix as it was, the singular values falling, the left vectors as columns, the right ones as conjugated rows,
/// and zero when all were found.
pub(super) fn gesdd(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let mode = letter(cx, "mode")?;
    let (mut sizes, mut lefts, mut rights, mut infos) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let given = cx.tensor(0)?.clone();
    for matrix in matrices(cx, 0)? {
        let wide = matrix.rows() < matrix.cols();
        let tall = if wide { matrix.transposed(Z::conj) } else { matrix };
        let (values, u, v, info) = tall_svd(tall, mode == 'A');
        let (u, v) = if wide { (v, u) } else { (u, v) };
        sizes.extend(values.into_iter().map(Z::real));
        lefts.extend(u.into_values());
        rights.extend(v.transposed(Z::conj).into_values());
        infos.push(info);
    }
    let computed = mode != 'N';
    Ok(vec![
        given.into(),
        result(cx, 1, sizes)?,
        if computed { result(cx, 2, lefts)? } else { undefined(cx, 2)? },
        if computed { result(cx, 3, rights)? } else { undefined(cx, 3)? },
        numbers(cx, 4, infos)?,
    ])
}

/// Of a matrix with at least as many rows as columns: the values, and both sides' vectors as columns. The left ones
/// are as many as there are rows when `full`.
fn tall_svd(mut a: Matrix, full: bool) -> (Vec<f64>, Matrix, Matrix, usize) {
    let (m, n) = (a.rows(), a.cols());
    let mut v = Matrix::identity(n, n);
    let mut left = 1;
    for _ in 0..SWEEPS {
        left = 0;
        for p in 0..n {
            for q in p + 1..n {
                left += usize::from(rotate(&mut a, &mut v, p, q));
            }
        }
        if left == 0 {
            break;
        }
    }
    let length = |a: &Matrix, j: usize| a.column(j).map(Z::abs).fold(0.0, f64::hypot);
    let lengths: Vec<f64> = (0..n).map(|j| length(&a, j)).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let values: Vec<f64> = order.iter().map(|&j| lengths[j]).collect();
    let (a, v) = (a.with_columns(&order), v.with_columns(&order));
    // The columns are orthogonal: reflections give the same directions, and complete them where a length is zero.
    let mut factored = a;
    let taus = householder::qr(&mut factored);
    let mut u = householder::product(&factored, &taus, 0, if full { m } else { n });
    for j in 0..n {
        let turn = factored[(j, j)].direction();
        (0..m).for_each(|i| u[(i, j)] = u[(i, j)] * turn);
    }
    (values, u, v, left)
}

/// Makes two columns orthogonal; gives whether they were not.
fn rotate(a: &mut Matrix, v: &mut Matrix, p: usize, q: usize) -> bool {
    let (mut pp, mut qq, mut pq) = (0.0, 0.0, Z::ZERO);
    for i in 0..a.rows() {
        pp += a[(i, p)].square();
        qq += a[(i, q)].square();
        pq = pq + a[(i, p)].conj() * a[(i, q)];
    }
    let size = pq.abs();
    // Of a NaN there is nothing to rotate.
    if size.is_nan() || size <= f64::EPSILON * (pp * qq).sqrt() {
        return false;
    }
    let zeta = (qq - pp) / (2.0 * size);
    let t = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = c * t;
    let turn = pq.direction();
    for matrix in [a, v] {
        for i in 0..matrix.rows() {
            let (left, right) = (matrix[(i, p)], matrix[(i, q)] * turn.conj());
            matrix[(i, p)] = left.scaled(c) - right.scaled(s);
            matrix[(i, q)] = left.scaled(s) + right.scaled(c);
        }
    }
    true
}
