//! Eigenvalues and eigenvectors.

use super::matrix::{Matrix, Z};
use super::{householder, letter, numbers, result, squares, tridiagonal, undefined};
use crate::Value;
use crate::cx::Cx;
use crate::error::Result;

/// Steps that one eigenvalue of a general matrix may take, on average.
const STEPS: usize = 60;

/// Of a Hermitian matrix: the vectors as columns, the values rising, and zero when all were found.
pub(super) fn syevd(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let lower = letter(cx, "uplo")? == 'L';
    let (mut vectors, mut values, mut infos) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in squares(cx, 0)? {
        let matrix = if lower { matrix } else { matrix.transposed(Z::conj) };
        let (mut d, mut e, mut z) = tridiagonal::reduce(matrix);
        infos.push(tridiagonal::diagonalise(&mut d, &mut e, &mut z));
        vectors.extend(z.into_values());
        values.extend(d.into_iter().map(Z::real));
    }
    Ok(vec![result(cx, 0, vectors)?, result(cx, 1, values)?, numbers(cx, 2, infos)?])
}

/// Of any square matrix: the values, real and imaginary parts apart where the matrix is real, and the right vectors as
/// columns of length one whose largest element is real.
pub(super) fn geev(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let left = letter(cx, "compute_left")? == 'V';
    let (mut values, mut vectors, mut left_vectors, mut infos) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for matrix in squares(cx, 0)? {
        if left {
            // The left vectors are the right ones of the transposed, in the order of these values.
            let (order, found, _) = general(matrix.transposed(Z::conj));
            let (these, _, _) = general(matrix.clone());
            let order: Vec<usize> = these.iter().map(|value| nearest(&order, value.conj())).collect();
            left_vectors.extend(found.with_columns(&order).into_values());
        }
        let (found, right, info) = general(matrix);
        values.extend(found);
        vectors.extend(right.into_values());
        infos.push(info);
    }
    let parts_apart = cx.op.result_count() == 5;
    let mut results = if parts_apart {
        let imaginary: Vec<Z> = values.iter().map(|value| Z::real(value.im)).collect();
        vec![result(cx, 0, values)?, result(cx, 1, imaginary)?]
    } else {
        vec![result(cx, 0, values)?]
    };
    let next = results.len();
    results.push(if left { result(cx, next, left_vectors)? } else { undefined(cx, next)? });
    let right = letter(cx, "compute_right")? == 'V';
    results.push(if right { result(cx, next + 1, vectors)? } else { undefined(cx, next + 1)? });
    results.push(numbers(cx, next + 2, infos)?);
    Ok(results)
}

fn nearest(values: &[Z], wanted: Z) -> usize {
    let distance = |at: usize| (values[at] - wanted).abs();
    (0..values.len()).min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(0)
}

/// The eigenvalues and right eigenvectors of a matrix, and how many values were not found.
fn general(matrix: Matrix) -> (Vec<Z>, Matrix, usize) {
    let n = matrix.rows();
    let real = (0..n).all(|j| matrix.column(j).all(|z| z.im == 0.0));
    let (mut t, mut z) = hessenberg(matrix);
    let left = triangularise(&mut t, &mut z);
    let norm = (0..n).flat_map(|j| t.column(j).map(Z::abs).collect::<Vec<_>>()).fold(0.0, f64::max);
    let mut values: Vec<Z> = (0..n).map(|i| t[(i, i)]).collect();
    if real {
        // What rounding left of the imaginary part of a real value.
        let noise = norm * f64::EPSILON * 64.0 * n as f64;
        values.iter_mut().filter(|value| value.im.abs() <= noise).for_each(|value| value.im = 0.0);
    }
    let mut vectors = Matrix::new(n, n, Vec::new());
    for k in 0..n {
        let mut x = vec![Z::ZERO; n];
        x[k] = Z::ONE;
        for i in (0..k).rev() {
            let sum = (i + 1..=k).fold(Z::ZERO, |sum, j| sum + t[(i, j)] * x[j]);
            let gap = t[(i, i)] - t[(k, k)];
            let least = norm * f64::EPSILON;
            x[i] = -sum / if gap.abs() > least { gap } else { Z::real(least.max(f64::MIN_POSITIVE)) };
        }
        let column: Vec<Z> = (0..n).map(|i| (0..=k).fold(Z::ZERO, |sum, j| sum + z[(i, j)] * x[j])).collect();
        let length = column.iter().map(|z| z.abs()).fold(0.0, f64::hypot);
        let largest = column.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(Z::ONE);
        let turn = largest.direction().conj().scaled(1.0 / length.max(f64::MIN_POSITIVE));
        for (i, value) in column.into_iter().enumerate() {
            vectors[(i, k)] = value * turn;
            if real && values[k].im == 0.0 {
                vectors[(i, k)].im = 0.0;
            }
        }
    }
    (values, vectors, left)
}

/// A matrix with nothing below the first subdiagonal, and the unitary one that turns it into the given one.
fn hessenberg(mut a: Matrix) -> (Matrix, Matrix) {
    let n = a.rows();
    let mut taus = Vec::new();
    let mut vectors = Matrix::new(n, n, Vec::new());
    for j in 0..n.saturating_sub(1) {
        let tau = householder::reflect(&mut a, j + 1, j);
        let v = householder::vector(&a, j + 1, j);
        for i in j + 2..n {
            vectors[(i, j)] = a[(i, j)];
            a[(i, j)] = Z::ZERO;
        }
        householder::apply(&mut a, &v, tau.conj(), j + 1);
        // From the right, the reflection itself.
        for i in 0..n {
            let along = (0..n).fold(Z::ZERO, |sum, k| sum + a[(i, k)] * v[k]);
            for (k, v) in v.iter().enumerate() {
                a[(i, k)] = a[(i, k)] - along * tau * v.conj();
            }
        }
        taus.push(tau);
    }
    (a, householder::product(&vectors, &taus, 1, n))
}

/// Shifted QR steps until nothing is below the diagonal; gives the number of elements that are.
fn triangularise(h: &mut Matrix, z: &mut Matrix) -> usize {
    let n = h.rows();
    let mut end = n;
    let mut steps = STEPS * n;
    while end > 1 {
        let small = |h: &Matrix, i: usize| {
            h[(i, i - 1)].abs() <= f64::EPSILON * (h[(i, i)].abs() + h[(i - 1, i - 1)].abs())
        };
        let begin = (1..end).rev().find(|&i| small(h, i)).unwrap_or(0);
        if begin > 0 {
            h[(begin, begin - 1)] = Z::ZERO;
        }
        if begin == end - 1 {
            end -= 1;
            continue;
        }
        if steps == 0 {
            return (1..n).filter(|&i| h[(i, i - 1)] != Z::ZERO).count();
        }
        steps -= 1;
        // Now and then another shift, for what the usual one goes around in circles on.
        let shift = if steps % 11 == 10 { Z::real(h[(end - 1, end - 2)].abs()) } else { corner(h, end) };
        step(h, z, begin, end, shift);
    }
    0
}

/// The eigenvalue of the last two rows that is nearer to the corner.
fn corner(h: &Matrix, end: usize) -> Z {
    let (a, b) = (h[(end - 2, end - 2)], h[(end - 2, end - 1)]);
    let (c, d) = (h[(end - 1, end - 2)], h[(end - 1, end - 1)]);
    let half = (a - d).scaled(0.5);
    let inside = half * half + b * c;
    let (re, im) = crate::math::complex::sqrt((inside.re, inside.im));
    let root = Z { re, im };
    let root = if (half + root).abs() > (half - root).abs() { -root } else { root };
    d + half + root
}

/// One QR step on rows and columns `begin..end`.
fn step(h: &mut Matrix, z: &mut Matrix, begin: usize, end: usize, shift: Z) {
    let n = h.rows();
    (begin..end).for_each(|i| h[(i, i)] = h[(i, i)] - shift);
    let mut turns = Vec::new();
    for k in begin..end - 1 {
        let (a, b) = (h[(k, k)], h[(k + 1, k)]);
        let size = a.abs().hypot(b.abs());
        let (c, s) =
            if size == 0.0 { (Z::ONE, Z::ZERO) } else { (a.scaled(1.0 / size), b.scaled(1.0 / size)) };
        for j in k..n {
            let (top, bottom) = (h[(k, j)], h[(k + 1, j)]);
            h[(k, j)] = c.conj() * top + s.conj() * bottom;
            h[(k + 1, j)] = c * bottom - s * top;
        }
        turns.push((k, c, s));
    }
    for (k, c, s) in turns {
        for (matrix, rows) in [(&mut *h, (k + 2).min(end)), (&mut *z, n)] {
            for i in 0..rows {
                let (left, right) = (matrix[(i, k)], matrix[(i, k + 1)]);
                matrix[(i, k)] = left * c + right * s;
                matrix[(i, k + 1)] = right * c.conj() - left * s.conj();
            }
        }
    }
    (begin..end).for_each(|i| h[(i, i)] = h[(i, i)] + shift);
}
