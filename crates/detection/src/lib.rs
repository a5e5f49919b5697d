//! Object detection on COCO: reading annotations and images, preparing them as torchvision does, and the metrics of
//! `pycocotools`.
//!
//! [`coco::Dataset`] is a file of annotations, [`evaluate::evaluate`] the twelve numbers of COCO for detections on it.
//! [`picture::Picture`] is a decoded image, [`transform::Transform`] prepares it; [`select`] has what a detector decides by data.

#![forbid(unsafe_code)]

pub mod coco;
mod error;
pub mod evaluate;
pub mod jpeg;
pub mod picture;
pub mod select;
pub mod transform;

pub use error::{Error, Result};
