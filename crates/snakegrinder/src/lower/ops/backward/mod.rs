//! Gradients: the operations of backward passes, one file for each family that they are the gradients of.

mod activation;
mod attention;
mod convolution;
mod indexing;
mod loss;
mod normalize;
mod pad;
mod pooling;
mod resize;
mod softmax;

use super::prelude::*;

pub(super) const TABLES: &[&[Op]] = &[
    activation::TABLE,
    attention::TABLE,
    convolution::TABLE,
    indexing::TABLE,
    loss::TABLE,
    normalize::TABLE,
    pad::TABLE,
    pooling::TABLE,
    resize::TABLE,
    softmax::TABLE,
];

/// The gradients that `output_mask` asks for; the others are nothing.
fn masked(args: &Args<'_>, gradients: impl IntoIterator<Item = Tensor>) -> Lowered<Outcome> {
    let asked = args.bools("output_mask")?;
    let chosen = gradients.into_iter().zip(asked);
    Ok(chosen.map(|(gradient, asked)| if asked { gradient.into() } else { Value::None }).collect())
}
