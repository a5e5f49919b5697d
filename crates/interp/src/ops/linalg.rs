//! Matrices, Fourier transforms and batch normalisation.

use warpforge_ir::OpKind;
use warpforge_ir::attr::{Attribute, FftType, Transpose};
use warpforge_tensor::{Scalar, Shape, Tensor};

use super::Evaluator;
use super::quantized::{dequantized, quantized};
use crate::Value;
use crate::cx::{Cx, missing, one};
use crate::error::{Result, invalid};
use crate::math::complex::{self, Complex};

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::BatchNormGrad => batch_norm_grad,
        OpKind::BatchNormInference => batch_norm_inference,
        OpKind::BatchNormTraining => batch_norm_training,
        OpKind::Cholesky => cholesky,
        OpKind::Fft => fft,
        OpKind::TriangularSolve => triangular_solve,
        _ => return None,
    })
}

/// An operand as the numbers it stands for.
fn reals(cx: &Cx<'_, '_, '_>, index: usize) -> Result<Vec<f64>> {
    Ok(dequantized(cx.tensor(index)?, cx.operand_type(index)?)?.iter().map(Scalar::to_f64).collect())
}

/// A result from the numbers it stands for.
fn result(
    cx: &Cx<'_, '_, '_>,
    index: usize,
    shape: Shape,
    values: impl IntoIterator<Item = f64>,
) -> Result<Value> {
    let ty = cx.result_type(index)?;
    let element = super::quantized::expressed(ty)?;
    let computed = Tensor::from_scalars(element, shape, values.into_iter().map(Scalar::Float))?;
    Ok(quantized(&computed, ty)?.into())
}

/// A batch seen by features.
struct Features {
    shape: Shape,
    /// The feature of each element, in row-major order.
    of: Vec<usize>,
    count: usize,
    epsilon: f64,
}

impl Features {
    /// The features of the first operand; the operands of `vectors` have one element for each.
    fn new(cx: &Cx<'_, '_, '_>, vectors: std::ops::Range<usize>) -> Result<Self> {
        let shape = cx.tensor(0)?.shape().clone();
        let axis = cx.axis("feature_index", shape.rank())?;
        let Some(Attribute::Float(epsilon, _)) = cx.op.attr("epsilon") else {
            return Err(missing("epsilon"));
        };
        let (count, inner) = (shape.dims()[axis], shape.strides()[axis]);
        let of = (0..shape.num_elements()).map(|position| position / inner % count.max(1)).collect();
        let features = Self { shape, of, count, epsilon: *epsilon };
        for index in vectors {
            if cx.tensor(index)?.len() != count {
                return Err(invalid(format!("operand {index} does not have one element per feature")));
            }
        }
        Ok(features)
    }

    /// Sums per feature.
    fn sums(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (value, &feature) in values.zip(&self.of) {
            sums[feature] += value;
        }
        sums
    }

    /// How many elements each feature has.
    fn population(&self) -> f64 {
        self.of.len() as f64 / self.count.max(1) as f64
    }

    fn normalised<'a>(
        &'a self,
        x: &'a [f64],
        scale: &'a [f64],
        offset: &'a [f64],
        mean: &'a [f64],
        variance: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
        x.iter()
            .zip(&self.of)
            .map(move |(x, &f)| scale[f] * (x - mean[f]) / (variance[f] + self.epsilon).sqrt() + offset[f])
    }
}

fn batch_norm_inference(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let features = Features::new(cx, 1..5)?;
    let [x, scale, offset, mean, variance] = [0, 1, 2, 3, 4].map(|index| reals(cx, index));
    let (x, scale, offset, mean, variance) = (x?, scale?, offset?, mean?, variance?);
    let output = features.normalised(&x, &scale, &offset, &mean, &variance);
    Ok(vec![result(cx, 0, features.shape.clone(), output)?])
}

fn batch_norm_training(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let features = Features::new(cx, 1..3)?;
    let (x, scale, offset) = (reals(cx, 0)?, reals(cx, 1)?, reals(cx, 2)?);
    let population = features.population();
    let mean: Vec<f64> = features.sums(x.iter().copied()).iter().map(|sum| sum / population).collect();
    let squares = x.iter().zip(&features.of).map(|(x, &f)| (x - mean[f]) * (x - mean[f]));
    let variance: Vec<f64> = features.sums(squares).iter().map(|sum| sum / population).collect();
    let output = features.normalised(&x, &scale, &offset, &mean, &variance);
    let vector = Shape::new([features.count])?;
    Ok(vec![
        result(cx, 0, features.shape.clone(), output)?,
        result(cx, 1, vector.clone(), mean.iter().copied())?,
        result(cx, 2, vector, variance.iter().copied())?,
    ])
}

fn batch_norm_grad(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let features = Features::new(cx, 1..4)?;
    if cx.tensor(4)?.shape() != &features.shape {
        return Err(invalid("the gradient does not have the operand's shape"));
    }
    let [x, scale, mean, variance, grad] = [0, 1, 2, 3, 4].map(|index| reals(cx, index));
    let (x, scale, mean, variance, grad) = (x?, scale?, mean?, variance?, grad?);
    let centred: Vec<f64> = x.iter().zip(&features.of).map(|(x, &f)| x - mean[f]).collect();
    let spread: Vec<f64> = variance.iter().map(|v| v + features.epsilon).collect();
    let grad_offset = features.sums(grad.iter().copied());
    let products = features.sums(grad.iter().zip(&centred).map(|(g, c)| g * c));
    let grad_scale: Vec<f64> =
        products.iter().zip(&spread).map(|(sum, spread)| sum / spread.sqrt()).collect();
    let n = features.population();
    let grad_operand = (0..x.len()).map(|at| {
        let f = features.of[at];
        let inner = grad[at] * n - grad_offset[f] - centred[at] * products[f] / spread[f];
        scale[f] / spread[f].sqrt() / n * inner
    });
    let vector = Shape::new([features.count])?;
    Ok(vec![
        result(cx, 0, features.shape.clone(), grad_operand)?,
        result(cx, 1, vector.clone(), grad_scale.iter().copied())?,
        result(cx, 2, vector, grad_offset.iter().copied())?,
    ])
}

/// A matrix of complex numbers; real ones have no imaginary part.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<Complex>,
}

impl Matrix {
    fn at(&self, row: usize, column: usize) -> Complex {
        self.values[row * self.columns + column]
    }

    fn set(&mut self, row: usize, column: usize, value: Complex) {
        self.values[row * self.columns + column] = value;
    }

    fn transposed(&self, conjugate: bool) -> Self {
        let flip = |z: Complex| if conjugate { (z.0, -z.1) } else { z };
        let values = (0..self.columns).flat_map(|c| (0..self.rows).map(move |r| (r, c)));
        let values = values.map(|(r, c)| flip(self.at(r, c))).collect();
        Self { rows: self.columns, columns: self.rows, values }
    }
}

/// The matrices of a batch.
fn matrices(tensor: &Tensor) -> Result<Vec<Matrix>> {
    let &[.., rows, columns] = tensor.dims() else { return Err(invalid("a matrix has two dimensions")) };
    let values: Vec<Complex> = tensor.iter().map(Scalar::to_complex).collect();
    let size = rows * columns;
    if size == 0 {
        return Ok(Vec::new());
    }
    Ok(values.chunks(size).map(|chunk| Matrix { rows, columns, values: chunk.to_vec() }).collect())
}

/// A batch of matrices as a tensor like `model`.
fn batch_like(model: &Tensor, batch: Vec<Matrix>) -> Result<Tensor> {
    let element = model.element_type();
    let values = batch.into_iter().flat_map(|matrix| matrix.values);
    let values =
        values.map(|(re, im)| if element.is_complex() { Scalar::Complex(re, im) } else { Scalar::Float(re) });
    Ok(Tensor::from_scalars(element, model.shape().clone(), values)?)
}

fn plain_mul(a: Complex, b: Complex) -> Complex {
    complex::mul(a, b, |x| x)
}

fn minus(a: Complex, b: Complex) -> Complex {
    (a.0 - b.0, a.1 - b.1)
}

fn cholesky(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let lower = cx.bool("lower")?;
    let a = dequantized(cx.tensor(0)?, cx.operand_type(0)?)?;
    let factor = |matrix: Matrix| {
        if matrix.rows != matrix.columns {
            return Err(invalid("the matrix is not square"));
        }
        // Only the triangle that was asked for is read; the upper one is the adjoint of the lower.
        let source = if lower { matrix } else { matrix.transposed(true) };
        let factor = lower_factor(&source);
        Ok(if lower { factor } else { factor.transposed(true) })
    };
    let factors = matrices(&a)?.into_iter().map(factor).collect::<Result<_>>()?;
    one(quantized(&batch_like(&a, factors)?, cx.result_type(0)?)?)
}

/// The lower factor, column by column; NaN where the matrix is not positive definite.
fn lower_factor(a: &Matrix) -> Matrix {
    let n = a.rows;
    let mut l = Matrix { rows: n, columns: n, values: vec![(0.0, 0.0); n * n] };
    for column in 0..n {
        let mut diagonal = a.at(column, column).0;
        for k in 0..column {
            let (re, im) = l.at(column, k);
            diagonal -= re * re + im * im;
        }
        let root = diagonal.sqrt();
        l.set(column, column, (root, 0.0));
        for row in column + 1..n {
            let mut sum = a.at(row, column);
            for k in 0..column {
                let (re, im) = l.at(column, k);
                sum = minus(sum, plain_mul(l.at(row, k), (re, -im)));
            }
            l.set(row, column, (sum.0 / root, sum.1 / root));
        }
    }
    l
}

fn triangular_solve(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (left, lower, unit) = (cx.bool("left_side")?, cx.bool("lower")?, cx.bool("unit_diagonal")?);
    let transpose: Transpose = cx.op.attr_enum("transpose_a").ok_or_else(|| missing("transpose_a"))?;
    let a = dequantized(cx.tensor(0)?, cx.operand_type(0)?)?;
    let b = dequantized(cx.tensor(1)?, cx.operand_type(1)?)?;
    // Without right-hand sides there is nothing to solve.
    let systems = if b.is_empty() { Vec::new() } else { matrices(&a)? };
    let sides = matrices(&b)?;
    if systems.len() != sides.len() {
        return Err(invalid("the batches have different sizes"));
    }
    let solve = |(a, b): (Matrix, Matrix)| {
        let (a, lower) = match transpose {
            Transpose::Yes => (a.transposed(false), !lower),
            Transpose::Adjoint => (a.transposed(true), !lower),
            Transpose::No | Transpose::Invalid => (a, lower),
        };
        // x a = b is aᵀ xᵀ = bᵀ.
        let (a, b, lower) =
            if left { (a, b, lower) } else { (a.transposed(false), b.transposed(false), !lower) };
        if a.rows != a.columns || a.rows != b.rows {
            return Err(invalid("the matrices do not fit"));
        }
        let x = substitute(&a, b, lower, unit);
        Ok(if left { x } else { x.transposed(false) })
    };
    let solutions = systems.into_iter().zip(sides).map(solve).collect::<Result<_>>()?;
    one(quantized(&batch_like(&b, solutions)?, cx.result_type(0)?)?)
}

/// Solves `a x = b` from the first row on for a lower matrix, from the last for an upper one.
fn substitute(a: &Matrix, mut b: Matrix, lower: bool, unit: bool) -> Matrix {
    let n = a.rows;
    for step in 0..n {
        let row = if lower { step } else { n - 1 - step };
        let known = if lower { 0..row } else { row + 1..n };
        for column in 0..b.columns {
            let mut sum = b.at(row, column);
            for k in known.clone() {
                sum = minus(sum, plain_mul(a.at(row, k), b.at(k, column)));
            }
            b.set(row, column, if unit { sum } else { complex::div(sum, a.at(row, row)) });
        }
    }
    b
}

fn fft(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let kind: FftType = cx.op.attr_enum("fft_type").ok_or_else(|| missing("fft_type"))?;
    let lengths = cx.usizes("fft_length")?;
    let operand = cx.tensor(0)?;
    let rank = operand.shape().rank();
    let (Some(&length), true) = (lengths.last(), lengths.len() <= rank) else {
        return Err(invalid("fft_length does not fit the operand"));
    };
    let first = rank - lengths.len();
    let mut dims = operand.dims().to_vec();
    let mut values: Vec<Complex> = operand.iter().map(Scalar::to_complex).collect();
    let stored = if kind == FftType::Irfft { length / 2 + 1 } else { length };
    let expected: Vec<usize> = lengths[..lengths.len() - 1].iter().copied().chain([stored]).collect();
    if dims[first..] != expected {
        return Err(invalid("fft_length does not fit the operand's dimensions"));
    }
    let inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
    // The real ends come first forwards and last backwards.
    if kind == FftType::Irfft {
        for axis in first..rank - 1 {
            along(&mut values, &dims, axis, |line| transformed(&line, true));
        }
        let full = |line: Vec<Complex>| {
            let mirrored = |at: usize| {
                if at < line.len() {
                    line[at]
                } else {
                    let z = line[length - at];
                    (z.0, -z.1)
                }
            };
            transformed(&(0..length).map(mirrored).collect::<Vec<_>>(), true)
        };
        values = values.chunks(stored.max(1)).flat_map(|line| full(line.to_vec())).collect();
        dims[rank - 1] = length;
    } else {
        along(&mut values, &dims, rank - 1, |line| transformed(&line, inverse));
        if kind == FftType::Rfft {
            let kept = length / 2 + 1;
            values =
                values.chunks(length.max(1)).flat_map(|line| line[..kept.min(line.len())].to_vec()).collect();
            dims[rank - 1] = kept;
        }
        for axis in first..rank - 1 {
            along(&mut values, &dims, axis, |line| transformed(&line, inverse));
        }
    }
    let element = cx.result_element(0)?;
    let scalar =
        |(re, im): Complex| if element.is_complex() { Scalar::Complex(re, im) } else { Scalar::Float(re) };
    one(Tensor::from_scalars(element, cx.shape(dims)?, values.into_iter().map(scalar))?)
}

/// Replaces every line along a dimension by a transformed one of the same length.
fn along(values: &mut [Complex], dims: &[usize], axis: usize, f: impl Fn(Vec<Complex>) -> Vec<Complex>) {
    let length = dims[axis];
    let inner: usize = dims[axis + 1..].iter().product();
    if values.is_empty() {
        return;
    }
    for start in (0..values.len()).step_by(length * inner).flat_map(|block| block..block + inner) {
        let line = (0..length).map(|at| values[start + at * inner]).collect();
        for (at, value) in f(line).into_iter().enumerate() {
            values[start + at * inner] = value;
        }
    }
}

/// The discrete Fourier transform of a line; the inverse is divided by the length.
fn transformed(line: &[Complex], inverse: bool) -> Vec<Complex> {
    let length = line.len();
    let sums = dft(line, if inverse { 1.0 } else { -1.0 });
    if !inverse {
        return sums;
    }
    sums.into_iter().map(|(re, im)| (re / length as f64, im / length as f64)).collect()
}

/// Halves even lengths (Cooley and Tukey) and sums odd ones by the definition.
fn dft(line: &[Complex], sign: f64) -> Vec<Complex> {
    let n = line.len();
    let root = |k: usize| {
        let angle = sign * std::f64::consts::TAU * (k % n) as f64 / n as f64;
        (libm::cos(angle), libm::sin(angle))
    };
    let plus = |a: Complex, b: Complex| (a.0 + b.0, a.1 + b.1);
    if n > 0 && n.is_multiple_of(2) {
        let part = |from: usize| dft(&line.iter().skip(from).step_by(2).copied().collect::<Vec<_>>(), sign);
        let (even, odd) = (part(0), part(1));
        let turned: Vec<Complex> = odd.iter().enumerate().map(|(k, &z)| plain_mul(z, root(k))).collect();
        let upper = even.iter().zip(&turned).map(|(&a, &b)| plus(a, b));
        let lower = even.iter().zip(&turned).map(|(&a, &b)| minus(a, b));
        return upper.chain(lower).collect();
    }
    let sum = |k: usize| {
        line.iter().enumerate().fold((0.0, 0.0), |sum, (j, &z)| plus(sum, plain_mul(z, root(j * k))))
    };
    (0..n).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_and_its_inverse_undo_each_other() {
        for n in [1, 2, 3, 6, 7, 8] {
            let line: Vec<Complex> = (0..n).map(|i| (f64::from(i * i), f64::from(3 - i))).collect();
            let back = transformed(&transformed(&line, false), true);
            for (a, b) in line.iter().zip(&back) {
                assert!((a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12, "{n}: {a:?} {b:?}");
            }
        }
        assert_eq!(transformed(&[(1.0, 0.0), (2.0, 0.0)], false), [(3.0, 0.0), (-1.0, 0.0)]);
    }

    #[test]
    fn factors_multiply_back() {
        let a = Matrix { rows: 2, columns: 2, values: vec![(4.0, 0.0), (0.0, 0.0), (2.0, 2.0), (6.0, 0.0)] };
        let l = lower_factor(&a);
        assert_eq!(l.values, [(2.0, 0.0), (0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]);
        let b = Matrix { rows: 2, columns: 1, values: vec![(2.0, 0.0), (5.0, 1.0)] };
        assert_eq!(substitute(&l, b, true, false).values, [(1.0, 0.0), (2.0, 0.0)]);
    }
}
