//! Concatenation.

use warpforge_fusion::cluster::Operand;

use super::element_kernel::ElementKernel;
use crate::index::{linear_index, sum};
use crate::kernel::Unsupported;
use crate::steps::load_expr;
use crate::types::compute_type;

pub(super) fn value(
    element: &mut ElementKernel<'_>,
    operands: &[Operand],
    axis: usize,
) -> Result<String, Unsupported> {
    let ty = compute_type(element.builder.graph.node(element.cluster.output).element)?;
    element.builder.text.line(format!("{ty} value;"));
    let mut start = 0;
    for (at, operand) in operands.iter().enumerate() {
        let size = operand.view.dims[axis];
        let end = start + size;
        let condition = match at {
            0 => format!("if (i{axis} < {end})"),
            at if at + 1 == operands.len() => "else".to_owned(),
            _ => format!("else if (i{axis} < {end})"),
        };
        let pointer = element.builder.read(operand.value)?;
        let moved = operand.view.offset - start as isize * operand.view.strides[axis];
        let at = sum(&[moved.to_string(), linear_index(&operand.view.strides, "i")]);
        element.builder.text.line(format!("{condition} value = {};", load_expr(&pointer, &at)));
        start = end;
    }
    Ok("value".to_owned())
}
