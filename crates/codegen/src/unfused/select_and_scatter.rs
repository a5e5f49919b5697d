//! Select-and-scatter: the gradient of pooling.
//!
//! Each thread computes one element of the operand's shape and visits the windows that contain it in order, so that
//! results are deterministic.

use warpforge_fusion::graph::{Combiner, ScalarFunction, Window};
use warpforge_fusion::view::dense_strides;

use super::element_kernel::{ElementKernel, UnfusedKernel};
use super::scalar_function;
use crate::index::linear_index;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::{compute_type, rounded};

pub(super) fn emit(
    kernel: &UnfusedKernel<'_>,
    select: &ScalarFunction,
    window: &Window,
    scatter: &Combiner,
) -> Result<Emitted, Unsupported> {
    let target = kernel.output();
    let (dims, counts) = (kernel.dims(0)?, kernel.dims(1)?);
    let rank = dims.len();
    let (sizes, steps) = (&window.dims, &window.strides);
    let padding: Vec<isize> = window.padding.iter().map(|&(low, _)| low).collect();
    let mut element = ElementKernel::with_dims(kernel.request, target, dims.to_vec());
    let index = element.index;
    let (operand, source, init) = (
        kernel.read(&mut element.builder, 0)?,
        kernel.read(&mut element.builder, 1)?,
        kernel.read(&mut element.builder, 2)?,
    );
    let (of, sums) = (kernel.element(0)?, kernel.request.graph.node(target).element);
    let text = &mut element.builder.text;
    text.line(format!("{} value = wf_convert<{0}>({});", compute_type(sums)?, load_expr(&init, "0")));
    // From the last window position to the first, so that windows are visited in order.
    for at in 0..rank {
        text.open(format!("for (int o{at} = {}; o{at} >= 0; --o{at})", sizes[at] - 1));
        text.line(format!("const {index} t{at} = i{at} + {} - o{at};", padding[at]));
        text.line(format!("const {index} w{at} = t{at} / {};", steps[at]));
        let (step, count) = (steps[at], counts[at]);
        text.line(format!("if (t{at} < 0 || t{at} % {step} != 0 || w{at} >= {count}) continue;"));
    }
    text.line(format!("{index} best = -1;"));
    text.line(format!("{} most = 0;", compute_type(of)?));
    let mut inside = Vec::new();
    for at in 0..rank {
        text.open(format!("for (int v{at} = 0; v{at} < {}; ++v{at})", sizes[at]));
        text.line(format!("const {index} x{at} = w{at} * {} + v{at} - ({});", steps[at], padding[at]));
        inside.push(format!("x{at} >= 0 && x{at} < {}", dims[at]));
    }
    let condition = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
    text.open(format!("if ({condition})"));
    text.line(format!("const {index} candidate = {};", linear_index(&dense_strides(dims), "x")));
    text.line(format!("const {} other = {};", compute_type(of)?, load_expr(&operand, "candidate")));
    let keeps = scalar_function::emit_one(text, select, ["most", "other"], "s")?;
    text.open(format!("if (best < 0 || !({keeps}))"));
    text.line("best = candidate;");
    text.line("most = other;");
    for _ in 0..rank + 2 {
        text.close();
    }
    text.open("if (best == n)");
    let given = load_expr(&source, &linear_index(&dense_strides(counts), "w"));
    text.line(format!("const {} given = {given};", compute_type(kernel.element(1)?)?));
    let reduced = scalar_function::emit_one(text, &scatter.function(sums), ["value", "given"], "g")?;
    text.line(format!("value = {};", rounded(sums, reduced)?));
    for _ in 0..=rank {
        text.close();
    }
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
