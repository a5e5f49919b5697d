//! Few updates: each output element scans all windows in order.

use warpforge_fusion::view::dense_strides;

use super::geometry::ScatterGeometry;
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::compute_type;
use crate::unfused::element_kernel::ElementKernel;
use crate::unfused::scalar_function;

pub(super) fn emit(geometry: &ScatterGeometry<'_>) -> Result<Emitted, Unsupported> {
    let ScatterGeometry { kernel, target, combine, dims, windows, along, .. } = geometry;
    let sizes = along.iter().map(|along| along.size).collect();
    let mut element = ElementKernel::with_dims(kernel.request, *target, sizes);
    let index = element.index;
    let operand = kernel.read(&mut element.builder, 0)?;
    let indices = kernel.read(&mut element.builder, 1)?;
    let updates = kernel.read(&mut element.builder, 2)?;
    let ty = compute_type(kernel.request.graph.node(*target).element)?;
    let text = &mut element.builder.text;
    text.line(format!("{ty} value = {};", load_expr(&operand, "n")));
    text.open(format!("for ({index} u = 0; u < {}; ++u)", windows.len()));
    windows.split(text, "u", "n", index);
    text.line(format!("const {index} base = {};", windows.linear_index(0, "n")));
    let strides = dense_strides(dims);
    let mut place = vec![windows.linear_index(1, "n")];
    let mut inside = vec!["true".to_owned()];
    for (dim, one) in along.iter().enumerate() {
        text.line(format!(
            "const long long t{dim} = i{dim} - ({});",
            geometry.window_start(one, &indices, "base")
        ));
        match one.window {
            Some(window) => {
                inside.push(format!("t{dim} >= 0 && t{dim} < {}", dims[window]));
                place.push(format!("t{dim} * {}", strides[window]));
            }
            None => inside.push(format!("t{dim} == 0")),
        }
    }
    text.open(format!("if ({})", inside.join(" && ")));
    let update = compute_type(kernel.element(2)?)?;
    text.line(format!("const {update} update = {};", load_expr(&updates, &sum(&place))));
    let result = scalar_function::emit_one(text, combine, ["value", "update"], "t_")?;
    text.line(format!("value = {result};"));
    text.close();
    text.close();
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
