//! Updates whose windows may overlap partially: applied with atomic compare-and-swap in unspecified order.

use super::geometry::{ScatterGeometry, copy};
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::{load_expr, store_expr};
use crate::types::{compute_type, storage_type};
use crate::unfused::element_kernel::ElementKernel;
use crate::unfused::scalar_function;

pub(super) fn emit(geometry: &ScatterGeometry<'_>) -> Result<Emitted, Unsupported> {
    let ScatterGeometry { kernel, target, combine, dims, windows, numbered, along, .. } = geometry;
    let mut element = ElementKernel::with_dims(kernel.request, kernel.operand(2)?, dims.clone());
    let index = element.index;
    let indices = kernel.read(&mut element.builder, 1)?;
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
    let of = kernel.request.graph.node(*target).element;
    let (ty, computed) = (storage_type(of)?, compute_type(of)?);
    let update = load_expr(&kernel.read(&mut element.builder, 2)?, "n");
    let to = element.builder.write(*target)?;
    let text = &mut element.builder.text;
    text.open(format!("if ({})", inside.join(" && ")));
    text.line(format!("const {computed} update = {update};"));
    text.line(format!("{ty}* const spot = {to} + ({});", sum(&place)));
    // Concurrent updates retry until the compare-and-swap succeeds.
    text.line(format!("{ty} found = *spot;"));
    text.open("for (;;)");
    text.line(format!("const {computed} old = wf_get(found);"));
    let result = scalar_function::emit_one(text, combine, ["old", "update"], "t")?;
    text.line(format!("const {ty} wanted = {};", store_expr(of, &result)?));
    text.line(format!("const {ty} before = wf_exchange_if(spot, found, wanted);"));
    text.line("if (wf_same(before, found)) break;");
    text.line("found = before;");
    text.close();
    text.close();
    let scattered = element.done()?;
    Ok(Emitted { kernels: vec![copy(kernel, *target)?, scattered], scratch: Vec::new() })
}
