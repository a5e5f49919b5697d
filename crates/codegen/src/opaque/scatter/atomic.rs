//! Updates whose windows may overlap partially: applied with atomic compare-and-swap in unspecified order.

use super::{ScatterGeometry, copy};
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::opaque::region;
use crate::steps::{load_expr, store_expr};
use crate::types::{compute_type, storage_type};
use crate::unfused::ElementKernel;

pub(super) fn emit(geometry: &ScatterGeometry<'_>) -> Result<Emitted, Unsupported> {
    let ScatterGeometry { opaque, target, dims, windows, numbered, along, .. } = geometry;
    let block = opaque.op.region_block(0).ok_or_else(|| opaque.unsupported())?;
    let mut element = ElementKernel::with_dims(
        opaque.graph,
        opaque.cluster,
        opaque.operand(2)?,
        dims.clone(),
        opaque.options,
    );
    let index = element.index;
    let indices = opaque.read(&mut element.builder, 1)?;
    for (at, dim) in numbered.iter().enumerate() {
        element.builder.text.line(format!("const {index} n{at} = i{dim};"));
    }
    element.builder.text.line(format!("const {index} base = {};", windows.linear_index(0, "n")));
    let strides = geometry.strides();
    let (mut inside, mut place) = (vec!["true".to_owned()], Vec::new());
    for (dim, one) in along.iter().enumerate() {
        let begin = geometry.window_start(one, &indices, "base");
        let parts = [begin, one.window.map_or_else(|| "0".to_owned(), |window| format!("i{window}"))];
        element.builder.text.line(format!("const long long x{dim} = {};", sum(&parts)));
        inside.push(format!("x{dim} >= 0 && x{dim} < {}", one.size));
        place.push(format!("x{dim} * {}", strides[dim]));
    }
    let of = opaque.graph.node(*target).element;
    let (ty, computed) = (storage_type(of)?, compute_type(of)?);
    let update = load_expr(&opaque.read(&mut element.builder, 2)?, "n");
    let to = element.builder.write(*target)?;
    let text = &mut element.builder.text;
    text.open(format!("if ({})", inside.join(" && ")));
    text.line(format!("const {computed} update = {update};"));
    text.line(format!("{ty}* const spot = {to} + ({});", sum(&place)));
    // Concurrent updates retry until the compare-and-swap succeeds.
    text.line(format!("{ty} found = *spot;"));
    text.open("for (;;)");
    text.line(format!("const {computed} old = wf_get(found);"));
    let names = ["old".to_owned(), "update".to_owned()];
    let results = region::emit(text, opaque.op.module(), block, &names, "t")?;
    let result = results.first().ok_or_else(|| opaque.unsupported())?;
    text.line(format!("const {ty} wanted = {};", store_expr(of, result)?));
    text.line(format!("const {ty} before = wf_exchange_if(spot, found, wanted);"));
    text.line("if (wf_same(before, found)) break;");
    text.line("found = before;");
    text.close();
    text.close();
    let scattered = element.done()?;
    Ok(Emitted { kernels: vec![copy(opaque, *target)?, scattered], scratch: Vec::new() })
}
