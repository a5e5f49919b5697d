//! Windows of three by three with fewer products than taps (Winograd's schemes).
//!
//! Tiles of the input and the window are transformed (`transform`, by a `scheme`), multiplied value by value, which over
//! all channels is one matrix product for each value of a tile, and transformed back. Weights are transformed once, in
//! f64 (`weights`). A [`Plan`] says whether a convolution is worth it, and by which scheme.

mod lanes;
mod plan;
mod run;
mod scheme;
#[cfg(test)]
mod tests;
mod transform;
mod weights;

pub(super) use plan::Plan;
pub(super) use weights::Transformed;
