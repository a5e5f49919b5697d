//! Reductions by any region, of several values at once: a thread reduces all elements of one result.

use warpforge_fusion::view::dense_strides;

use super::{Cut, region};
use crate::kernel::{Emitted, Unsupported};
use crate::single::Element;
use crate::steps::loaded;
use crate::types::computed;

pub(super) fn emit(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let (op, count) = (cut.op, cut.op.result_count());
    let axes: Vec<usize> =
        op.attr_i64s("dimensions").ok_or_else(|| cut.unknown())?.iter().map(|&axis| axis as usize).collect();
    let Some(target) = (0..count).find_map(|at| cut.result(at)) else { return Ok(Emitted::default()) };
    if cut.graph.node(target).is_empty() {
        return Ok(Emitted::default());
    }
    let block = op.region_block(0).ok_or_else(|| cut.unknown())?;
    let dims = cut.dims(0)?;
    let strides = dense_strides(&dims);
    let mut element = Element::new(cut.graph, cut.cluster, target, cut.options);
    let mut names = Vec::new();
    for at in 0..count {
        let init = loaded(&cut.read(&mut element.draft, count + at)?, "0");
        element.draft.text.line(format!("{} f{at} = {init};", computed(cut.element(at)?)?));
        names.push(format!("f{at}"));
    }
    let mut place = vec!["0".to_owned()];
    let mut kept = 0;
    for (dim, stride) in strides.iter().enumerate() {
        if axes.contains(&dim) {
            element
                .draft
                .text
                .open(format!("for ({0} x{dim} = 0; x{dim} < {1}; ++x{dim})", element.index, dims[dim]));
            place.push(format!("x{dim} * {stride}"));
        } else {
            place.push(format!("i{kept} * {stride}"));
            kept += 1;
        }
    }
    let place = place.join(" + ");
    for at in 0..count {
        let value = loaded(&cut.read(&mut element.draft, at)?, &place);
        element.draft.text.line(format!("const {} e{at} = {value};", computed(cut.element(at)?)?));
        names.push(format!("e{at}"));
    }
    let results = region::emit(&mut element.draft.text, op.module(), block, &names, "t")?;
    for (at, result) in results.iter().enumerate() {
        element.draft.text.line(format!("const {} g{at} = {result};", computed(cut.element(at)?)?));
    }
    for at in 0..results.len() {
        element.draft.text.line(format!("f{at} = g{at};"));
    }
    for _ in &axes {
        element.draft.text.close();
    }
    for at in 0..count {
        if let Some(id) = cut.result(at) {
            element.store(id, "n", &format!("f{at}"))?;
        }
    }
    Ok(Emitted { kernels: vec![element.done()?], scratch: Vec::new() })
}
