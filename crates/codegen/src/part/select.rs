//! Elements of a source put where windows of an operand select: the gradient of pooling.
//!
//! A thread has an element of the operand and goes through the windows that it is in, in their order: nothing meets, and
//! every run gives the same.

use warpforge_fusion::view::dense_strides;

use super::{Cut, region};
use crate::index::place;
use crate::kernel::{Emitted, Unsupported};
use crate::single::Element;
use crate::steps::loaded;
use crate::types::{computed, rounded};

pub(super) fn emit(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let op = cut.op;
    let Some(target) = cut.result(0).filter(|&id| !cut.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let (Some(select), Some(scatter)) = (op.region_block(0), op.region_block(1)) else {
        return Err(cut.unknown());
    };
    let (dims, counts) = (cut.dims(0)?, cut.dims(1)?);
    let rank = dims.len();
    let list = |name| op.attr_i64s(name).map_or_else(|| vec![1; rank], <[i64]>::to_vec);
    let (sizes, steps) = (list("window_dimensions"), list("window_strides"));
    let padding: Vec<i64> = match op.attr_rows("padding") {
        Some(rows) => rows.iter().filter_map(|row| row.first().copied()).collect(),
        None => vec![0; rank],
    };
    if [sizes.len(), steps.len(), padding.len(), counts.len()] != [rank; 4] {
        return Err(cut.unknown());
    }
    let mut element = Element::over(cut.graph, cut.cluster, target, dims.clone(), cut.options);
    let index = element.index;
    let (operand, source, init) = (
        cut.read(&mut element.draft, 0)?,
        cut.read(&mut element.draft, 1)?,
        cut.read(&mut element.draft, 2)?,
    );
    let (of, sums) = (cut.element(0)?, cut.graph.node(target).element);
    let text = &mut element.draft.text;
    text.line(format!("{} value = wf_convert<{0}>({});", computed(sums)?, loaded(&init, "0")));
    // From the last place in a window to the first: the windows then come in their order.
    for at in 0..rank {
        text.open(format!("for (int o{at} = {}; o{at} >= 0; --o{at})", sizes[at] - 1));
        text.line(format!("const {index} t{at} = i{at} + {} - o{at};", padding[at]));
        text.line(format!("const {index} w{at} = t{at} / {};", steps[at]));
        let (step, count) = (steps[at], counts[at]);
        text.line(format!("if (t{at} < 0 || t{at} % {step} != 0 || w{at} >= {count}) continue;"));
    }
    text.line(format!("{index} best = -1;"));
    text.line(format!("{} most = 0;", computed(of)?));
    let mut inside = Vec::new();
    for at in 0..rank {
        text.open(format!("for (int v{at} = 0; v{at} < {}; ++v{at})", sizes[at]));
        text.line(format!("const {index} x{at} = w{at} * {} + v{at} - ({});", steps[at], padding[at]));
        inside.push(format!("x{at} >= 0 && x{at} < {}", dims[at]));
    }
    let condition = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
    text.open(format!("if ({condition})"));
    text.line(format!("const {index} candidate = {};", place(&dense_strides(&dims), "x")));
    text.line(format!("const {} other = {};", computed(of)?, loaded(&operand, "candidate")));
    let chosen = region::emit(text, op.module(), select, &["most".to_owned(), "other".to_owned()], "s")?;
    let keeps = chosen.first().ok_or_else(|| cut.unknown())?;
    text.open(format!("if (best < 0 || !({keeps}))"));
    text.line("best = candidate;");
    text.line("most = other;");
    for _ in 0..rank + 2 {
        text.close();
    }
    text.open("if (best == n)");
    let given = loaded(&source, &place(&dense_strides(&counts), "w"));
    text.line(format!("const {} given = {given};", computed(cut.element(1)?)?));
    let reduced = region::emit(text, op.module(), scatter, &["value".to_owned(), "given".to_owned()], "g")?;
    let reduced = reduced.first().ok_or_else(|| cut.unknown())?;
    text.line(format!("value = {};", rounded(sums, reduced.clone())?));
    for _ in 0..=rank {
        text.close();
    }
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
