//! Variadic reductions with any region: each thread reduces all elements of one output element.

use warpforge_fusion::view::dense_strides;

use super::{OpaqueKernel, region};
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::compute_type;
use crate::unfused::ElementKernel;

pub(super) fn emit(opaque: &OpaqueKernel<'_>) -> Result<Emitted, Unsupported> {
    let (op, count) = (opaque.op, opaque.op.result_count());
    let axes: Vec<usize> = op
        .attr_i64s("dimensions")
        .ok_or_else(|| opaque.unsupported())?
        .iter()
        .map(|&axis| axis as usize)
        .collect();
    let Some(target) = (0..count).find_map(|at| opaque.result(at)) else { return Ok(Emitted::default()) };
    if opaque.graph.node(target).is_empty() {
        return Ok(Emitted::default());
    }
    let block = op.region_block(0).ok_or_else(|| opaque.unsupported())?;
    let dims = opaque.dims(0)?;
    let strides = dense_strides(&dims);
    let mut element = ElementKernel::new(opaque.graph, opaque.cluster, target, opaque.options);
    let mut names = Vec::new();
    for at in 0..count {
        let init = load_expr(&opaque.read(&mut element.builder, count + at)?, "0");
        element.builder.text.line(format!("{} f{at} = {init};", compute_type(opaque.element(at)?)?));
        names.push(format!("f{at}"));
    }
    let mut place = vec!["0".to_owned()];
    let mut kept = 0;
    for (dim, stride) in strides.iter().enumerate() {
        if axes.contains(&dim) {
            element
                .builder
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
        let value = load_expr(&opaque.read(&mut element.builder, at)?, &place);
        element.builder.text.line(format!("const {} e{at} = {value};", compute_type(opaque.element(at)?)?));
        names.push(format!("e{at}"));
    }
    let results = region::emit(&mut element.builder.text, op.module(), block, &names, "t")?;
    for (at, result) in results.iter().enumerate() {
        element.builder.text.line(format!("const {} g{at} = {result};", compute_type(opaque.element(at)?)?));
    }
    for at in 0..results.len() {
        element.builder.text.line(format!("f{at} = g{at};"));
    }
    for _ in &axes {
        element.builder.text.close();
    }
    for at in 0..count {
        if let Some(id) = opaque.result(at) {
            element.store(id, "n", &format!("f{at}"))?;
        }
    }
    Ok(Emitted { kernels: vec![element.done()?], scratch: Vec::new() })
}
