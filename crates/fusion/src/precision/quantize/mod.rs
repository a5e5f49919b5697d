//! Quantized matrix products: constant weights in 8 or 4 bits, as a rewrite of the graph.
//!
//! The class: products without batch dimensions whose right-hand operand is known while compiling, whatever model they come from.
//! Weights are quantized once. What the rewrite makes are ordinary nodes: integers converted, multiplied by their scales, activations
//! rounded. Devices match [`weights_of`] to read weights in the type that they are stored in.

mod affine;
mod hqq;
mod least_squares;
mod matcher;
mod module;
mod recipe;
mod restored;
mod rewrite;
mod stored;
mod weights;

pub use matcher::{QuantizedWeights, WeightGroups, weights_of};
pub use module::{StoreError, store_weights};
pub use recipe::{Recipe, UnknownRecipe};
pub(crate) use rewrite::quantize;
pub(crate) use stored::read_stored_weights;
pub use weights::{GroupedWeights, QuantizeError, RowWeights, WeightMatrix};
