//! Quantized matrix products: constant weights in 8 or 4 bits, as a rewrite of the graph.
//!
//! The class: products without batch dimensions whose right-hand operand is known while compiling, whatever model they come from.
//! Weights are quantized once. What the rewrite makes are ordinary nodes: integers converted, multiplied by their scales, activations
//! rounded. Devices match [`weights_of`] to read weights in the type that they are stored in.

mod affine;
mod dynamic;
mod float8;
mod hqq;
mod least_squares;
mod matcher;
mod module;
mod names;
mod recipe;
mod restored;
mod rewrite;
mod store_error;
mod stored;
mod weights;

pub(crate) use float8::round_in_f32;
pub use matcher::{QuantizedWeights, WeightGroups, weights_of};
pub use module::store_weights;
pub(crate) use names::WeightNames;
pub use recipe::{Recipe, UnknownRecipe};
pub(crate) use rewrite::quantize;
pub use store_error::StoreError;
pub(crate) use stored::read_stored_weights;
pub use weights::{GroupedWeights, QuantizeError, RowWeights, WeightMatrix};
