//! Complex numbers and matrices of them.

use std::ops::{Add, Div, Index, IndexMut, Mul, Neg, Sub};

use warpforge_tensor::Scalar;

/// A complex number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Z {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Z {
    pub(super) const ZERO: Z = Z::real(0.0);
    pub(super) const ONE: Z = Z::real(1.0);

    pub(super) const fn real(re: f64) -> Self {
        Self { re, im: 0.0 }
    }

    pub(super) fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    pub(super) fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    pub(super) fn square(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { re: self.re * factor, im: self.im * factor }
    }

    /// The number of magnitude one in the same direction; one for zero.
    pub(super) fn direction(self) -> Self {
        let size = self.abs();
        if size == 0.0 { Z::ONE } else { self.scaled(1.0 / size) }
    }
}

impl From<Scalar> for Z {
    fn from(scalar: Scalar) -> Self {
        let (re, im) = scalar.to_complex();
        Self { re, im }
    }
}

impl Add for Z {
    type Output = Z;

    fn add(self, other: Z) -> Z {
        Z { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Z {
    type Output = Z;

    fn sub(self, other: Z) -> Z {
        Z { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Neg for Z {
    type Output = Z;

    fn neg(self) -> Z {
        Z { re: -self.re, im: -self.im }
    }
}

impl Mul for Z {
    type Output = Z;

    fn mul(self, other: Z) -> Z {
        if self.im == 0.0 && other.im == 0.0 {
            return Z::real(self.re * other.re);
        }
        Z { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

impl Div for Z {
    type Output = Z;

    /// Real numbers divide as real numbers, so that an infinity stays one.
    fn div(self, other: Z) -> Z {
        if self.im == 0.0 && other.im == 0.0 {
            return Z::real(self.re / other.re);
        }
        let (re, im) = crate::math::complex::div((self.re, self.im), (other.re, other.im));
        Z { re, im }
    }
}

/// A matrix, row after row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<Z>,
}

impl Matrix {
    /// A matrix of these elements, row after row; missing ones are zero.
    pub(super) fn new(rows: usize, cols: usize, mut data: Vec<Z>) -> Self {
        data.resize(rows * cols, Z::ZERO);
        Self { rows, cols, data }
    }

    /// Ones on the diagonal.
    pub(super) fn identity(rows: usize, cols: usize) -> Self {
        let mut matrix = Self::new(rows, cols, Vec::new());
        (0..rows.min(cols)).for_each(|i| matrix[(i, i)] = Z::ONE);
        matrix
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    /// The elements, row after row.
    pub(super) fn into_values(self) -> Vec<Z> {
        self.data
    }

    pub(super) fn column(&self, j: usize) -> impl Iterator<Item = Z> + '_ {
        (0..self.rows).map(move |i| self[(i, j)])
    }

    pub(super) fn transposed(&self, f: impl Fn(Z) -> Z) -> Self {
        let values = (0..self.cols).flat_map(|j| self.column(j).map(&f).collect::<Vec<_>>());
        Self::new(self.cols, self.rows, values.collect())
    }

    pub(super) fn swap_rows(&mut self, a: usize, b: usize) {
        for j in 0..self.cols {
            self.data.swap(a * self.cols + j, b * self.cols + j);
        }
    }

    pub(super) fn swap_columns(&mut self, a: usize, b: usize) {
        for i in 0..self.rows {
            self.data.swap(i * self.cols + a, i * self.cols + b);
        }
    }

    /// The columns in another order.
    pub(super) fn with_columns(&self, order: &[usize]) -> Self {
        let mut chosen = Self::new(self.rows, order.len(), Vec::new());
        for (to, &from) in order.iter().enumerate() {
            (0..self.rows).for_each(|i| chosen[(i, to)] = self[(i, from)]);
        }
        chosen
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = Z;

    fn index(&self, (i, j): (usize, usize)) -> &Z {
        &self.data[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut Z {
        &mut self.data[i * self.cols + j]
    }
}
