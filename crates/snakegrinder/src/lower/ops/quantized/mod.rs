//! Quantized models: torchao's and `torch.ao`'s operations on codes, scales and zero points, and products of codes.
//!
//! PyTorch defines most of them by a few eager operations. They are lowered to the same ones ([`eager`]), with their promotion and
//! rounding, so that codes are equal and not nearly equal.

mod affine;
mod channels;
mod eager;
mod fake;
mod float8;
mod packed;
mod parameters;
mod products;
mod tensors;
mod tiled;
mod tokens;

use super::Op;

pub(super) const TABLES: &[&[Op]] = &[
    affine::TABLE,
    channels::TABLE,
    fake::TABLE,
    float8::TABLE,
    packed::TABLE,
    parameters::TABLE,
    products::TABLE,
    tensors::TABLE,
    tiled::TABLE,
    tokens::TABLE,
];
