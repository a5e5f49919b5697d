//! Dynamic slices and updates.

use warpforge_fusion::view::dense_strides;

use super::element_kernel::{ElementKernel, UnfusedKernel};
use crate::index::{linear_index, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::compute_type;

/// `dynamic_slice`.
pub(super) fn slice(kernel: &UnfusedKernel<'_>) -> Result<Emitted, Unsupported> {
    let target = kernel.output();
    let (dims, size) = (kernel.dims(0)?, &kernel.request.graph.node(target).dims);
    let mut element = ElementKernel::new(kernel.request, target);
    let strides = dense_strides(dims);
    let mut terms = vec![linear_index(&strides, "i")];
    for at in 0..dims.len() {
        let start = load_expr(&kernel.read(&mut element.builder, 1 + at)?, "0");
        terms.push(format!("wf_clamp({start}, {}) * {}", dims[at] - size[at], strides[at]));
    }
    let source = kernel.read(&mut element.builder, 0)?;
    let ty = compute_type(kernel.request.graph.node(target).element)?;
    element.builder.text.line(format!("const {ty} value = {};", load_expr(&source, &sum(&terms))));
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}

/// `dynamic_update_slice`.
pub(super) fn update(kernel: &UnfusedKernel<'_>) -> Result<Emitted, Unsupported> {
    let target = kernel.output();
    let (dims, size) = (kernel.dims(0)?, kernel.dims(1)?);
    let mut element = ElementKernel::new(kernel.request, target);
    let mut inside = vec!["true".to_owned()];
    for at in 0..dims.len() {
        let start = load_expr(&kernel.read(&mut element.builder, 2 + at)?, "0");
        let moved =
            format!("const {} t{at} = i{at} - wf_clamp({start}, {});", element.index, dims[at] - size[at]);
        element.builder.text.line(moved);
        inside.push(format!("t{at} >= 0 && t{at} < {}", size[at]));
    }
    let (old, new) = (kernel.read(&mut element.builder, 0)?, kernel.read(&mut element.builder, 1)?);
    let new = load_expr(&new, &linear_index(&dense_strides(size), "t"));
    let ty = compute_type(kernel.request.graph.node(target).element)?;
    let line = format!("const {ty} value = {} ? {new} : {};", inside.join(" && "), load_expr(&old, "n"));
    element.builder.text.line(line);
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}

/// `dynamic_update_slice` whose result lies over its first operand: only the update is written.
pub(super) fn update_in_place(kernel: &UnfusedKernel<'_>) -> Result<Emitted, Unsupported> {
    let (target, update) = (kernel.output(), kernel.operand(1)?);
    let (dims, size) = (kernel.dims(0)?, kernel.dims(1)?);
    if kernel.request.graph.node(target).is_empty() || kernel.request.graph.node(update).is_empty() {
        return Ok(Emitted::default());
    }
    let strides = dense_strides(dims);
    let mut element = ElementKernel::with_dims(kernel.request, update, size.to_vec());
    let mut terms = vec![linear_index(&strides, "i")];
    for at in 0..dims.len() {
        let start = load_expr(&kernel.read(&mut element.builder, 2 + at)?, "0");
        terms.push(format!("wf_clamp({start}, {}) * {}", dims[at] - size[at], strides[at]));
    }
    let new = load_expr(&kernel.read(&mut element.builder, 1)?, "n");
    let ty = compute_type(kernel.request.graph.node(target).element)?;
    element.builder.text.line(format!("const {ty} value = {new};"));
    element.store(target, &sum(&terms), "value")?;
    let mut emitted = element.done()?;
    emitted.bytes = 2 * kernel.request.graph.node(update).bytes() as u64;
    Ok(Emitted { kernels: vec![emitted], scratch: Vec::new() })
}
