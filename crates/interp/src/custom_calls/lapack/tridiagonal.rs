//! Eigenvalues of a symmetric tridiagonal matrix by implicit QL and QR steps.
//!
//! The steps are those of LAPACK's `steqr`, so that the vectors have the signs that LAPACK gives them.

use super::matrix::{Matrix, Z};

/// Steps that one eigenvalue may take, on average.
const STEPS: usize = 30;

/// A tridiagonal matrix `d`, `e` and the columns that its rotations are applied to.
struct Work<'a> {
    d: &'a mut [f64],
    e: &'a mut [f64],
    z: &'a mut Matrix,
    steps: usize,
}

/// Turns `d` into the eigenvalues, rising, and `z` into `z` times the eigenvectors. Gives the number of off-diagonal
/// elements that did not vanish: zero when all is well.
pub(super) fn diagonalise(d: &mut [f64], e: &mut [f64], z: &mut Matrix) -> usize {
    let n = d.len();
    let mut work = Work { steps: STEPS * n, d, e, z };
    let mut first = 0;
    while first < n {
        let last = (first..n - 1).find(|&m| work.is_small(m)).unwrap_or(n - 1);
        if last > first {
            if work.d[last].abs() < work.d[first].abs() {
                work.qr(first, last);
            } else {
                work.ql(first, last);
            }
        }
        // A block may fall apart into several; those between are found when it is looked through again.
        let done = (first..last).all(|m| work.e[m] == 0.0);
        if done || work.steps == 0 {
            first = last + 1;
        }
    }
    let left = work.e.iter().filter(|e| **e != 0.0).count();
    sort(work.d, work.z);
    left
}

/// Rising order, by as few exchanges as possible.
fn sort(d: &mut [f64], z: &mut Matrix) {
    for i in 0..d.len() {
        let mut least = i;
        for j in i + 1..d.len() {
            if d[j] < d[least] {
                least = j;
            }
        }
        if least != i {
            d.swap(i, least);
            z.swap_columns(i, least);
        }
    }
}

impl Work<'_> {
    /// Whether the element below the diagonal at `m` is nothing beside its neighbours; it is zero from then on.
    fn is_small(&mut self, m: usize) -> bool {
        let limit = self.d[m].abs().sqrt() * self.d[m + 1].abs().sqrt() * f64::EPSILON / 2.0;
        let small = self.e[m].abs() <= limit;
        if small {
            self.e[m] = 0.0;
        }
        small
    }

    fn is_tiny(&self, m: usize) -> bool {
        let limit = (f64::EPSILON / 2.0).powi(2) * self.d[m].abs() * self.d[m + 1].abs();
        self.e[m] * self.e[m] <= limit + f64::MIN_POSITIVE
    }

    /// Finds the eigenvalues from `l` downwards in the block that ends at `end`.
    fn ql(&mut self, mut l: usize, end: usize) {
        while l <= end {
            let m = (l..end).find(|&m| self.is_tiny(m)).unwrap_or(end);
            if m < end {
                self.e[m] = 0.0;
            }
            if m == l {
                l += 1;
                continue;
            }
            if m == l + 1 {
                self.two(l);
                l += 2;
                continue;
            }
            if self.steps == 0 {
                return;
            }
            self.steps -= 1;
            let mut g = self.shifted(self.d[l], self.d[l + 1], self.e[l], self.d[m]);
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            for i in (l..m).rev() {
                let (f, b) = (s * self.e[i], c * self.e[i]);
                let r;
                (c, s, r) = rotation(g, f);
                if i != m - 1 {
                    self.e[i + 1] = r;
                }
                g = self.d[i + 1] - p;
                let r = (self.d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                self.d[i + 1] = g + p;
                g = c * r - b;
                self.rotate(i, c, -s);
            }
            self.d[l] -= p;
            self.e[l] = g;
        }
    }

    /// Finds the eigenvalues from `l` upwards in the block that begins at `end`.
    fn qr(&mut self, end: usize, last: usize) {
        let mut next = Some(last);
        while let Some(l) = next.filter(|l| *l >= end) {
            let m = (end..l).rev().find(|&m| self.is_tiny(m)).map_or(end, |m| m + 1);
            if m > end {
                self.e[m - 1] = 0.0;
            }
            if m == l {
                next = l.checked_sub(1);
                continue;
            }
            if m + 1 == l {
                self.two(m);
                next = l.checked_sub(2);
                continue;
            }
            if self.steps == 0 {
                return;
            }
            self.steps -= 1;
            let mut g = self.shifted(self.d[l], self.d[l - 1], self.e[l - 1], self.d[m]);
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            for i in m..l {
                let (f, b) = (s * self.e[i], c * self.e[i]);
                let r;
                (c, s, r) = rotation(g, f);
                if i != m {
                    self.e[i - 1] = r;
                }
                g = self.d[i] - p;
                let r = (self.d[i + 1] - g) * s + 2.0 * c * b;
                p = s * r;
                self.d[i] = g + p;
                g = c * r - b;
                self.rotate(i, c, s);
            }
            self.d[l] -= p;
            self.e[l - 1] = g;
        }
    }

    /// Where a step begins: the far end of the block less the eigenvalue of the near one.
    fn shifted(&self, near: f64, second: f64, e: f64, far: f64) -> f64 {
        let g = (second - near) / (2.0 * e);
        far - near + e / (g + g.hypot(1.0).copysign(g))
    }

    /// Diagonalises the two rows from `m`.
    fn two(&mut self, m: usize) {
        let (larger, smaller, c, s) = eigen_of_two(self.d[m], self.e[m], self.d[m + 1]);
        self.rotate(m, c, s);
        (self.d[m], self.d[m + 1], self.e[m]) = (larger, smaller, 0.0);
    }

    /// Rotates columns `j` and `j + 1`.
    fn rotate(&mut self, j: usize, c: f64, s: f64) {
        for i in 0..self.z.rows() {
            let (left, right) = (self.z[(i, j)], self.z[(i, j + 1)]);
            self.z[(i, j + 1)] = right.scaled(c) - left.scaled(s);
            self.z[(i, j)] = right.scaled(s) + left.scaled(c);
        }
    }
}

/// The rotation that turns `(f, g)` into `(r, 0)`: its cosine, its sine and `r`.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, 1f64.copysign(g), g.abs());
    }
    let size = f.hypot(g);
    let r = size.copysign(f);
    (f.abs() / size, g / r, r)
}

/// The eigenvalues of `[[a, b], [b, c]]`, that of larger magnitude first, and the unit vector of it.
fn eigen_of_two(a: f64, b: f64, c: f64) -> (f64, f64, f64, f64) {
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let (more, less) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let root = difference.hypot(twice);
    let (larger, smaller) = if sum == 0.0 {
        (root / 2.0, -root / 2.0)
    } else {
        let larger = 0.5 * (sum + root.copysign(sum));
        (larger, (more / larger) * less - (b / larger) * b)
    };
    let along = difference + root.copysign(if difference == 0.0 { 1.0 } else { difference });
    let (cosine, sine) = if along.abs() > twice.abs() {
        let cotangent = -twice / along;
        let sine = 1.0 / cotangent.hypot(1.0);
        (cotangent * sine, sine)
    } else if twice == 0.0 {
        (1.0, 0.0)
    } else {
        let tangent = -along / twice;
        let cosine = 1.0 / tangent.hypot(1.0);
        (cosine, tangent * cosine)
    };
    if (sum >= 0.0) == (difference >= 0.0) {
        return (larger, smaller, -sine, cosine);
    }
    (larger, smaller, cosine, sine)
}

/// Reduces a Hermitian matrix, given by its lower triangle, to a real tridiagonal one: the diagonal, what is below it,
/// and the matrix that turns one into the other.
pub(super) fn reduce(mut a: Matrix) -> (Vec<f64>, Vec<f64>, Matrix) {
    let n = a.rows();
    let (mut e, mut taus) = (Vec::new(), Vec::new());
    for i in 0..n.saturating_sub(1) {
        let tau = super::householder::reflect(&mut a, i + 1, i);
        e.push(a[(i + 1, i)].re);
        taus.push(tau);
        if tau == Z::ZERO {
            continue;
        }
        let v = super::householder::vector(&a, i + 1, i);
        let at = |a: &Matrix, r: usize, c: usize| if r >= c { a[(r, c)] } else { a[(c, r)].conj() };
        let mut w: Vec<Z> =
            (0..n).map(|r| tau * (i + 1..n).fold(Z::ZERO, |sum, c| sum + at(&a, r, c) * v[c])).collect();
        let dot = w.iter().zip(&v).fold(Z::ZERO, |sum, (w, v)| sum + w.conj() * *v);
        let half = (tau * dot).scaled(-0.5);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w = *w + half * *v);
        for r in i + 1..n {
            for c in i + 1..=r {
                a[(r, c)] = a[(r, c)] - v[r] * w[c].conj() - w[r] * v[c].conj();
            }
        }
    }
    let d = (0..n).map(|i| a[(i, i)].re).collect();
    (d, e, super::householder::product(&a, &taus, 1, n))
}
