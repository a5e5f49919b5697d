//! A value with others around and between its elements.

use warpforge_fusion::cluster::Operand;

use super::Element;
use crate::index::{place, sum};
use crate::kernel::Unsupported;
use crate::steps::loaded;
use crate::types::computed;

pub(super) fn value(
    element: &mut Element<'_>,
    operands: &[Operand],
    low: &[isize],
    interior: &[usize],
) -> Result<String, Unsupported> {
    let [source, filler] = operands else { return Err(Unsupported::new("a pad without its operands")) };
    let ty = computed(element.draft.graph.node(element.cluster.output).element)?;
    let (from, fill) = (element.draft.read(source.value)?, element.draft.read(filler.value)?);
    let text = &mut element.draft.text;
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
    let at = sum(&[source.view.offset.to_string(), place(&source.view.strides, "x")]);
    let (inner, outer) = (loaded(&from, &at), loaded(&fill, &filler.view.offset.to_string()));
    text.line(format!("const {ty} value = {condition} ? {inner} : {outer};"));
    Ok("value".to_owned())
}
