//! Select-and-scatter: the gradient of pooling.
//!
//! Each thread computes one element of the operand's shape and visits the windows that contain it in order, so that
//! results are deterministic.

use warpforge_fusion::view::dense_strides;

use super::{OpaqueKernel, region};
use crate::index::linear_index;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::{compute_type, rounded};
use crate::unfused::ElementKernel;

pub(super) fn emit(opaque: &OpaqueKernel<'_>) -> Result<Emitted, Unsupported> {
    let op = opaque.op;
    let Some(target) = opaque.result(0).filter(|&id| !opaque.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let (Some(select), Some(scatter)) = (op.region_block(0), op.region_block(1)) else {
        return Err(opaque.unsupported());
    };
    let (dims, counts) = (opaque.dims(0)?, opaque.dims(1)?);
    let rank = dims.len();
    let list = |name| op.attr_i64s(name).map_or_else(|| vec![1; rank], <[i64]>::to_vec);
    let (sizes, steps) = (list("window_dimensions"), list("window_strides"));
    let padding: Vec<i64> = match op.attr_rows("padding") {
        Some(rows) => rows.iter().filter_map(|row| row.first().copied()).collect(),
        None => vec![0; rank],
    };
    if [sizes.len(), steps.len(), padding.len(), counts.len()] != [rank; 4] {
        return Err(opaque.unsupported());
    }
    let mut element =
        ElementKernel::with_dims(opaque.graph, opaque.cluster, target, dims.clone(), opaque.options);
    let index = element.index;
    let (operand, source, init) = (
        opaque.read(&mut element.builder, 0)?,
        opaque.read(&mut element.builder, 1)?,
        opaque.read(&mut element.builder, 2)?,
    );
    let (of, sums) = (opaque.element(0)?, opaque.graph.node(target).element);
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
    text.line(format!("const {index} candidate = {};", linear_index(&dense_strides(&dims), "x")));
    text.line(format!("const {} other = {};", compute_type(of)?, load_expr(&operand, "candidate")));
    let chosen = region::emit(text, op.module(), select, &["most".to_owned(), "other".to_owned()], "s")?;
    let keeps = chosen.first().ok_or_else(|| opaque.unsupported())?;
    text.open(format!("if (best < 0 || !({keeps}))"));
    text.line("best = candidate;");
    text.line("most = other;");
    for _ in 0..rank + 2 {
        text.close();
    }
    text.open("if (best == n)");
    let given = load_expr(&source, &linear_index(&dense_strides(&counts), "w"));
    text.line(format!("const {} given = {given};", compute_type(opaque.element(1)?)?));
    let reduced = region::emit(text, op.module(), scatter, &["value".to_owned(), "given".to_owned()], "g")?;
    let reduced = reduced.first().ok_or_else(|| opaque.unsupported())?;
    text.line(format!("value = {};", rounded(sums, reduced.clone())?));
    for _ in 0..=rank {
        text.close();
    }
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
