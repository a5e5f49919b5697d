//! Errors of storing a module's weights in few bits.

use thiserror::Error;
use warpforge_ir::build::BuildError;

use super::weights::QuantizeError;

/// Why a module's weights cannot be stored in few bits.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no such function.
    #[error("the module has no function @{0} with a body")]
    NoFunction(String),
    /// Sizes of activations that only a run says.
    #[error("activations of {0} have dimensions of open size: give the shapes of the inputs")]
    OpenShapes(String),
    /// A product that is none of tensors.
    #[error("the matrix product {0} cannot be rewritten")]
    Product(String),
    /// The weights themselves.
    #[error(transparent)]
    Weights(#[from] QuantizeError),
    /// An operation that cannot be made.
    #[error("{0}")]
    Build(#[from] BuildError),
}
