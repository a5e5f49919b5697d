//! Rounding of operands to the compute precision.

use warpforge_tensor::{ElementType, FloatType};

use crate::options::ComputePrecision;

/// An operand element rounded to the compute precision.
pub(super) fn rounded_operand(
    element: ElementType,
    compute_precision: ComputePrecision,
    value: String,
) -> String {
    match (element, compute_precision) {
        (ElementType::Float(FloatType::F32), ComputePrecision::Tf32) => format!("wf_tf32({value})"),
        _ => value,
    }
}
