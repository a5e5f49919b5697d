//! Slices whose place is known when they are taken.

use warpforge_fusion::view::dense_strides;

use super::Cut;
use crate::index::{place, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::single::Element;
use crate::steps::loaded;
use crate::types::computed;

/// A part of the operand, from where the indices say.
pub(super) fn slice(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let Some(target) = cut.result(0).filter(|&id| !cut.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let (dims, size) = (cut.dims(0)?, cut.graph.node(target).dims.clone());
    let mut element = Element::new(cut.graph, cut.cluster, target, cut.options);
    let strides = dense_strides(&dims);
    let mut terms = vec![place(&strides, "i")];
    for at in 0..dims.len() {
        let start = loaded(&cut.read(&mut element.draft, 1 + at)?, "0");
        terms.push(format!("wf_clamp({start}, {}) * {}", dims[at] - size[at], strides[at]));
    }
    let source = cut.read(&mut element.draft, 0)?;
    let ty = computed(cut.graph.node(target).element)?;
    element.draft.text.line(format!("const {ty} value = {};", loaded(&source, &sum(&terms))));
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}

/// The operand with a part of it replaced.
pub(super) fn update(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let Some(target) = cut.result(0).filter(|&id| !cut.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let (dims, size) = (cut.dims(0)?, cut.dims(1)?);
    let mut element = Element::new(cut.graph, cut.cluster, target, cut.options);
    let mut inside = vec!["true".to_owned()];
    for at in 0..dims.len() {
        let start = loaded(&cut.read(&mut element.draft, 2 + at)?, "0");
        let moved =
            format!("const {} t{at} = i{at} - wf_clamp({start}, {});", element.index, dims[at] - size[at]);
        element.draft.text.line(moved);
        inside.push(format!("t{at} >= 0 && t{at} < {}", size[at]));
    }
    let (old, new) = (cut.read(&mut element.draft, 0)?, cut.read(&mut element.draft, 1)?);
    let new = loaded(&new, &place(&dense_strides(&size), "t"));
    let ty = computed(cut.graph.node(target).element)?;
    let line = format!("const {ty} value = {} ? {new} : {};", inside.join(" && "), loaded(&old, "n"));
    element.draft.text.line(line);
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
