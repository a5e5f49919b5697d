//! COCO's files: annotations (`instances_*.json`) and results of a detector.

mod dataset;
mod detections;
#[cfg(test)]
mod tests;

pub use dataset::{Annotation, Category, Dataset, Image, Target};
pub use detections::{Detection, read_detections, write_detections};
