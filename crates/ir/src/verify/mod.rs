//! Verification: the constraints of the specification, all errors collected.

mod cx;

pub use cx::{Cx, RegionTypes};

use crate::types::Type;

/// Constraints and type inference of one operation.
///
/// Broken constraints are reported through the context. Returns the result types where operands, attributes and
/// regions determine them.
pub type Rule = fn(&mut Cx<'_>) -> Option<Vec<Type>>;
