//! Matrices, Fourier transforms and batch normalisation.

use crate::table::Trait::Pure;
use crate::table::{Entry, OpKind, op};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::BatchNormGrad)
        .values(
            "operand: float|quant, scale: 1d float|quant, mean: 1d float|quant, variance: 1d float|quant, grad_output: float|quant",
            "grad_operand: float|quant, grad_scale: 1d float|quant, grad_offset: 1d float|quant",
        )
        .attrs("epsilon: f32, feature_index: i64")
        .is(&[Pure])
        .doc("Gradients of batch normalisation in training."),
    op(OpKind::BatchNormInference)
        .values(
            "operand: float|quant, scale: 1d float|quant, offset: 1d float|quant, mean: 1d float|quant, variance: 1d float|quant",
            "result: float|quant",
        )
        .attrs("epsilon: f32, feature_index: i64")
        .is(&[Pure])
        .doc("Normalises with given mean and variance."),
    op(OpKind::BatchNormTraining)
        .values(
            "operand: float|quant, scale: 1d float|quant, offset: 1d float|quant",
            "output: float|quant, batch_mean: 1d float|quant, batch_var: 1d float|quant",
        )
        .attrs("epsilon: f32, feature_index: i64")
        .is(&[Pure])
        .doc("Normalises with the mean and variance of the batch."),
    op(OpKind::Cholesky)
        .values("a: float|complex|quant", "result: float|complex|quant")
        .attrs("lower: bool = false")
        .text("$a?(, lower = $lower)?{attrs} : {same}")
        .is(&[Pure])
        .doc("Cholesky decomposition of each matrix of a batch."),
    op(OpKind::Fft)
        .values("operand: float|complex", "result: float|complex")
        .attrs("fft_type: enum fft_type, fft_length: i64s")
        .text("$operand, type = $fft_type, length = $fft_length{attrs} : {fn}")
        .is(&[Pure])
        .doc("Fourier transform over the last dimensions."),
    op(OpKind::TriangularSolve)
        .values("a: float|complex|quant, b: float|complex|quant", "result: float|complex|quant")
        .attrs("left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: enum transpose")
        .is(&[Pure])
        .doc("Solves a system of linear equations with a triangular matrix."),
];
