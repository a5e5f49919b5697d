//! What torchvision's Faster R-CNN decides by data, between its two networks: anchors, proposals, which of them match which
//! objects, what is sampled for the losses, and the detections at the end.
//!
//! All of it is f32 in torchvision's order of operations. Exponentials and logarithms may differ from PyTorch's in the last
//! place, and so may what depends on two scores that are as near as that.

mod anchors;
mod boxes;
mod detections;
mod matcher;
mod proposals;
mod suppress;
#[cfg(test)]
mod tests;

pub use anchors::Anchors;
pub use boxes::{BoxCoder, clip, level_of, overlap};
pub use detections::{Detections, Found};
pub use matcher::{Match, Matcher, Sampler};
pub use proposals::{Candidates, Proposals};
pub use suppress::suppress_in_groups;
