//! Packed weights of a convolution.

use super::winograd::TransformedWeights;
use crate::gemm::PackedRhs;

/// Weights packed for one convolution.
#[derive(Debug)]
pub struct PackedWeights {
    pub(super) form: PackedForm,
}

/// The form of packed weights.
#[derive(Debug)]
pub(super) enum PackedForm {
    /// One operand for each group.
    Groups(Vec<PackedRhs>),
    /// Winograd-transformed weights.
    Winograd(TransformedWeights),
}

impl PackedWeights {
    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.form {
            PackedForm::Groups(groups) => groups.iter().map(PackedRhs::bytes).sum(),
            PackedForm::Winograd(weights) => weights.bytes(),
        }
    }
}
