//! Values one after the other along a dimension.

use warpforge_fusion::cluster::Operand;

use super::Element;
use crate::index::{place, sum};
use crate::kernel::Unsupported;
use crate::steps::loaded;
use crate::types::computed;

pub(super) fn value(
    element: &mut Element<'_>,
    operands: &[Operand],
    axis: usize,
) -> Result<String, Unsupported> {
    let ty = computed(element.draft.graph.node(element.cluster.output).element)?;
    element.draft.text.line(format!("{ty} value;"));
    let mut start = 0;
    for (at, operand) in operands.iter().enumerate() {
        let size = operand.view.dims[axis];
        let end = start + size;
        let condition = match at {
            0 => format!("if (i{axis} < {end})"),
            at if at + 1 == operands.len() => "else".to_owned(),
            _ => format!("else if (i{axis} < {end})"),
        };
        let pointer = element.draft.read(operand.value)?;
        let moved = operand.view.offset - start as isize * operand.view.strides[axis];
        let at = sum(&[moved.to_string(), place(&operand.view.strides, "i")]);
        element.draft.text.line(format!("{condition} value = {};", loaded(&pointer, &at)));
        start = end;
    }
    Ok("value".to_owned())
}
