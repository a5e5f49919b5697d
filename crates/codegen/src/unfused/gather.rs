//! Gather.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::view::dense_strides;
use warpforge_ir::attr::GatherDims;

use super::element_kernel::ElementKernel;
use crate::index::sum;
use crate::kernel::Unsupported;
use crate::steps::load_expr;
use crate::types::compute_type;

pub(super) fn value(
    element: &mut ElementKernel<'_>,
    operands: &[Operand],
    numbers: &GatherDims,
    window: &[usize],
) -> Result<String, Unsupported> {
    let [source, indices] = operands else { return Err(Unsupported::new("a gather without its operands")) };
    let graph = element.builder.graph;
    let node = graph.node(element.cluster.output);
    let sizes = |dims: &[i64]| dims.iter().map(|&dim| dim as usize).collect::<Vec<usize>>();
    let (offset_dims, collapsed) = (sizes(&numbers.offset_dims), sizes(&numbers.collapsed_slice_dims));
    let batching = sizes(&numbers.operand_batching_dims);
    let indices_batching = sizes(&numbers.start_indices_batching_dims);
    let vector_dim = numbers.index_vector_dim as usize;
    let (from, where_to) = (element.builder.read(source.value)?, element.builder.read(indices.value)?);
    let index = element.index;
    // Output dimensions that enumerate windows, in the order of the index dimensions without the index vector.
    let batch: Vec<usize> = (0..node.dims.len()).filter(|at| !offset_dims.contains(at)).collect();
    let index_dims: Vec<usize> = (0..indices.view.dims.len()).filter(|&at| at != vector_dim).collect();
    let strides = dense_strides(&indices.view.dims);
    let terms: Vec<String> =
        index_dims.iter().zip(&batch).map(|(&dim, at)| format!("i{at} * {}", strides[dim])).collect();
    let base = sum(&terms);
    let text = &mut element.builder.text;
    text.line(format!("const {index} base = {base};"));
    let source_strides = dense_strides(&source.view.dims);
    let mut place: Vec<String> = Vec::new();
    let mut offsets = offset_dims.iter();
    for (dim, &size) in source.view.dims.iter().enumerate() {
        let stride = source_strides[dim];
        if let Some(at) = numbers.start_index_map.iter().position(|&mapped| mapped as usize == dim) {
            let step = if vector_dim < strides.len() { strides[vector_dim] } else { 0 };
            let begin = load_expr(&where_to, &sum(&["base".to_owned(), (at as isize * step).to_string()]));
            let last = size.saturating_sub(window[dim]);
            text.line(format!("const {index} g{dim} = ({index})wf_clamp({begin}, {last});"));
            place.push(format!("g{dim} * {stride}"));
        }
        if let Some(at) = batching.iter().position(|&batched| batched == dim) {
            let position = index_dims.iter().position(|&known| known == indices_batching[at]);
            let at = position.and_then(|position| batch.get(position));
            let at = at.ok_or_else(|| Unsupported::new("a gather with unknown batches"))?;
            place.push(format!("i{at} * {stride}"));
        }
        if !collapsed.contains(&dim) && !batching.contains(&dim) {
            let at = offsets.next().ok_or_else(|| Unsupported::new("a gather without offsets"))?;
            place.push(format!("i{at} * {stride}"));
        }
    }
    let ty = compute_type(node.element)?;
    text.line(format!("const {ty} value = {};", load_expr(&from, &sum(&place))));
    Ok("value".to_owned())
}
