//! Matrices, Fourier transforms and batch normalisation.

use crate::attr::{FftType, Transpose};
use crate::table::Trait::Pure;
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, FloatType, TensorType, Type};
use crate::verify::{Cx, compatible};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::BatchNormGrad)
        .values(
            "operand: float|quant, scale: 1d float|quant, mean: 1d float|quant, variance: 1d float|quant, grad_output: float|quant",
            "grad_operand: float|quant, grad_scale: 1d float|quant, grad_offset: 1d float|quant",
        )
        .attrs("epsilon: f32, feature_index: i64")
        .is(&[Pure])
        .rule(batch_norm_grad).doc("Gradients of batch normalisation in training."),
    op(OpKind::BatchNormInference)
        .values(
            "operand: float|quant, scale: 1d float|quant, offset: 1d float|quant, mean: 1d float|quant, variance: 1d float|quant",
            "result: float|quant",
        )
        .attrs("epsilon: f32, feature_index: i64")
        .is(&[Pure])
        .rule(batch_norm_inference).doc("Normalises with given mean and variance."),
    op(OpKind::BatchNormTraining)
        .values(
            "operand: float|quant, scale: 1d float|quant, offset: 1d float|quant",
            "output: float|quant, batch_mean: 1d float|quant, batch_var: 1d float|quant",
        )
        .attrs("epsilon: f32, feature_index: i64")
        .is(&[Pure])
        .rule(batch_norm_training).doc("Normalises with the mean and variance of the batch."),
    op(OpKind::Cholesky)
        .values("a: float|complex|quant", "result: float|complex|quant")
        .attrs("lower: bool = false")
        .text("$a?(, lower = $lower)?{attrs} : {same}")
        .is(&[Pure])
        .rule(cholesky).doc("Cholesky decomposition of each matrix of a batch."),
    op(OpKind::Fft)
        .values("operand: float|complex", "result: float|complex")
        .attrs("fft_type: enum fft_type, fft_length: i64s")
        .text("$operand, type = $fft_type, length = $fft_length{attrs} : {fn}")
        .is(&[Pure])
        .rule(fft).doc("Fourier transform over the last dimensions."),
    op(OpKind::TriangularSolve)
        .values("a: float|complex, b: float|complex", "result: float|complex")
        .attrs("left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: enum transpose")
        .is(&[Pure])
        .rule(triangular_solve).doc("Solves a system of linear equations with a triangular matrix."),
];

/// Which constraints hold for the operands that are given by feature.
struct FeatureLabels<'l> {
    elements: &'static str,
    sizes: &'l [&'static str],
}

/// The per-feature operands of batch normalisation have one element for each feature.
fn check_features(
    cx: &mut Cx<'_>,
    operand: &TensorType,
    others: std::ops::Range<usize>,
    labels: &FeatureLabels<'_>,
) -> Option<TensorType> {
    let index = cx.i64("feature_index")?;
    if !cx.in_rank("C1", "feature_index", &[index], operand.rank()) {
        return None;
    }
    let features = operand.with_dims([operand.dims()[index as usize]]);
    // What one operand tells of the number of features holds for the next.
    let mut count = operand.dims()[index as usize];
    for (other, label) in cx.tensors(others)?.into_iter().zip(labels.sizes) {
        cx.same_elements(labels.elements, "the operand and what is given by feature", operand, other);
        let same = compatible::sizes(&[count], other.dims());
        cx.check(same, label, || format!("{other} has not one element for each feature of {operand}"));
        if let &[size] = other.dims() {
            count = compatible::meet(count, size);
        }
    }
    Some(features)
}

fn batch_norm_grad(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, gradient) = (cx.tensor(0)?, cx.tensor(4)?);
    let labels = FeatureLabels { elements: "C2", sizes: &["C5", "C4", "C4"] };
    let features = check_features(cx, operand, 1..4, &labels);
    let same = compatible::sizes(operand.dims(), gradient.dims());
    cx.check(same, "C3", || format!("{operand} and {gradient} have different shapes"));
    cx.same_elements("C2", "the operand and the gradient", operand, gradient);
    let features = Type::Tensor(features?);
    cx.gives(["C3", "C2"], vec![Type::Tensor(operand.clone()), features.clone(), features])
}

fn batch_norm_inference(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let labels = FeatureLabels { elements: "C2", sizes: &["C3", "C4", "C5", "C6"] };
    check_features(cx, operand, 1..5, &labels)?;
    cx.gives("C7", vec![Type::Tensor(operand.clone())])
}

fn batch_norm_training(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let labels = FeatureLabels { elements: "C2", sizes: &["C3", "C4"] };
    let features = Type::Tensor(check_features(cx, operand, 1..3, &labels)?);
    cx.gives(["C7", "C2"], vec![Type::Tensor(operand.clone()), features.clone(), features])
}

/// The last two dimensions are those of square matrices.
fn check_square(cx: &mut Cx<'_>, matrix: &TensorType, labels: [&'static str; 2]) -> bool {
    let &[.., rows, columns] = matrix.dims() else {
        cx.fail(labels[0], format!("{matrix} holds no matrices"));
        return false;
    };
    cx.check(compatible::same_size(rows, columns), labels[1], || {
        format!("the matrices of {matrix} are not square")
    })
}

fn cholesky(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let a = cx.tensor(0)?;
    check_square(cx, a, ["C2", "C3"]);
    cx.gives("C1", vec![Type::Tensor(a.clone())])
}

fn triangular_solve(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C1", "the matrices", a, b);
    check_square(cx, a, ["C2", "C3"]);
    cx.same_count("C2", "the rank of the right side", b.rank(), a.rank());
    if cx.is_broken() {
        return None;
    }
    let (batch, left) = (a.rank() - 2, cx.attr("left_side")?.as_bool()?);
    let inner = b.dims()[batch + usize::from(!left)];
    let fits = compatible::sizes(&a.dims()[..batch], &b.dims()[..batch])
        && compatible::same_size(inner, a.dims()[batch + 1]);
    cx.check(fits, "C3", || format!("{a} and {b} do not form equations"));
    let transpose = cx.attr("transpose_a")?.as_enum::<Transpose>();
    cx.check(transpose != Some(Transpose::Invalid), "I6", || "transpose_a is not valid".to_owned());
    cx.gives("C4", vec![Type::Tensor(b.clone())])
}

fn fft(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, length) = (cx.tensor(0)?, cx.i64s("fft_length")?);
    let kind = cx.attr("fft_type")?.as_enum::<FftType>()?;
    cx.check((1..=3).contains(&length.len()), "C3", || {
        format!("fft_length {length:?} has not 1 to 3 entries")
    });
    cx.check(length.len() <= operand.rank(), "C1", || {
        format!("fft_length {length:?} is longer than {operand}")
    });
    let element = operand.element().plain()?;
    let part = element.float_part()?;
    let taken = if kind == FftType::Rfft {
        !element.is_complex() && matches!(part, FloatType::F32 | FloatType::F64)
    } else {
        element.is_complex()
    };
    cx.check(taken, "C2", || format!("{kind} does not take {operand}"));
    if cx.is_broken() {
        return None;
    }
    let mut dims = operand.dims().to_vec();
    let first = dims.len() - length.len();
    for (index, (&l, dim)) in length.iter().zip(&operand.dims()[first..]).enumerate() {
        let last = index + 1 == length.len();
        let expected = match kind {
            FftType::Fft | FftType::Ifft => continue,
            FftType::Irfft if last && l != 0 => l / 2 + 1,
            FftType::Rfft | FftType::Irfft => l,
        };
        cx.check(dim.size().is_none_or(|size| i64::try_from(size) == Ok(expected)), "C4", || {
            format!("dimension {} of {operand} is not {expected}", first + index)
        });
        if last && kind == FftType::Irfft {
            dims[first + index] = size_of(l);
        } else if last && l != 0 {
            dims[first + index] = size_of(l / 2 + 1);
        }
    }
    let element = if kind == FftType::Irfft { ElementType::Float(part) } else { ElementType::Complex(part) };
    cx.gives(["C5", "C2"], vec![Type::Tensor(TensorType::new(dims, element))])
}

fn size_of(length: i64) -> Dim {
    u64::try_from(length).map_or(Dim::Dynamic, Dim::Static)
}
