//! What each fuzz target does with its input. A panic is a finding.
//!
//! Kept apart from the targets so that a test of the main workspace can replay the inputs that are kept.

mod pt2;
mod stablehlo;

pub use pt2::{archive, graph};
pub use stablehlo::{bytecode, evaluator, text};
