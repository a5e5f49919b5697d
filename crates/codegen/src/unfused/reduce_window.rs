//! Window reductions: pooling, cumulative sums.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::{ReduceKind, Window};
use warpforge_fusion::view::dense_strides;
use warpforge_tensor::Tensor;

use super::element_kernel::ElementKernel;
use crate::index::linear_index;
use crate::kernel::Unsupported;
use crate::steps::load_expr;
use crate::types::{combine_fn, compute_type, literal, rounded};

pub(super) fn value(
    element: &mut ElementKernel<'_>,
    operands: &[Operand],
    kind: ReduceKind,
    window: &Window,
    init: &Tensor,
) -> Result<String, Unsupported> {
    let [source] = operands else { return Err(Unsupported::new("windows without their operand")) };
    let of = element.builder.graph.node(element.cluster.output).element;
    let (ty, index) = (compute_type(of)?, element.index);
    let from = element.builder.read(source.value)?;
    let text = &mut element.builder.text;
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
    let at = linear_index(&dense_strides(&source.view.dims), "x");
    let condition = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
    // Rounded at every step, like the reference.
    let reduced = rounded(of, format!("{}(value, {})", combine_fn(kind), load_expr(&from, &at)))?;
    text.line(format!("if ({condition}) value = {reduced};"));
    for _ in 0..open {
        text.close();
    }
    Ok("value".to_owned())
}
