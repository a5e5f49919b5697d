//! Padding.

use warpforge_fusion::cluster::Operand;

use super::element_kernel::ElementKernel;
use crate::index::{linear_index, sum};
use crate::kernel::Unsupported;
use crate::steps::load_expr;
use crate::types::compute_type;

pub(super) fn value(
    element: &mut ElementKernel<'_>,
    operands: &[Operand],
    low: &[isize],
    interior: &[usize],
) -> Result<String, Unsupported> {
    let [source, filler] = operands else { return Err(Unsupported::new("a pad without its operands")) };
    let ty = compute_type(element.builder.graph.node(element.cluster.output).element)?;
    let (from, fill) = (element.builder.read(source.value)?, element.builder.read(filler.value)?);
    let text = &mut element.builder.text;
    let mut inside: Vec<String> = Vec::new();
    for (at, &size) in source.view.dims.iter().enumerate() {
        let (step, low) = (interior[at] + 1, low[at]);
        text.line(format!("const {} t{at} = i{at} - ({low});", element.index));
        text.line(format!("const {} x{at} = t{at} / {step};", element.index));
        inside.push(format!("t{at} >= 0 && x{at} < {size}"));
        if step > 1 {
            inside.push(format!("t{at} % {step} == 0"));
        }
    }
    let condition = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
    let at = sum(&[source.view.offset.to_string(), linear_index(&source.view.strides, "x")]);
    let (inner, outer) = (load_expr(&from, &at), load_expr(&fill, &filler.view.offset.to_string()));
    text.line(format!("const {ty} value = {condition} ? {inner} : {outer};"));
    Ok("value".to_owned())
}
