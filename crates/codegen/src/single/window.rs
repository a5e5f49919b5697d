//! Folds of windows: pooling, sums along a dimension.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::{ReduceKind, Window};
use warpforge_fusion::view::dense_strides;
use warpforge_tensor::Tensor;

use super::Element;
use crate::index::place;
use crate::kernel::Unsupported;
use crate::steps::loaded;
use crate::types::{combiner, computed, literal, rounded};

pub(super) fn value(
    element: &mut Element<'_>,
    operands: &[Operand],
    fold: ReduceKind,
    window: &Window,
    init: &Tensor,
) -> Result<String, Unsupported> {
    let [source] = operands else { return Err(Unsupported::new("windows without their operand")) };
    let of = element.draft.graph.node(element.cluster.output).element;
    let (ty, index) = (computed(of)?, element.index);
    let from = element.draft.read(source.value)?;
    let text = &mut element.draft.text;
    text.line(format!("{ty} value = {};", literal(of, init.get(0))?));
    let mut open = 0;
    let mut inside: Vec<String> = Vec::new();
    for (at, &size) in window.dims.iter().enumerate() {
        let (low, base, input) = (window.padding[at].0, window.base_dilation[at], source.view.dims[at]);
        if size > 1 {
            text.open(format!("for (int w{at} = 0; w{at} < {size}; ++w{at})"));
            open += 1;
        } else {
            text.line(format!("const int w{at} = 0;"));
        }
        let (stride, dilation) = (window.strides[at], window.window_dilation[at]);
        text.line(format!("const {index} t{at} = i{at} * {stride} + w{at} * {dilation} - ({low});"));
        text.line(format!("const {index} x{at} = t{at} / {base};"));
        inside.push(format!("t{at} >= 0 && x{at} < {input}"));
        if base > 1 {
            inside.push(format!("t{at} % {base} == 0"));
        }
    }
    let at = place(&dense_strides(&source.view.dims), "x");
    let condition = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
    // Rounded at every step, as the reference does.
    let reduced = rounded(of, format!("{}(value, {})", combiner(fold), loaded(&from, &at)))?;
    text.line(format!("if ({condition}) value = {reduced};"));
    for _ in 0..open {
        text.close();
    }
    Ok("value".to_owned())
}
