//! Integer dot products: each thread computes one output element.

use warpforge_fusion::view::dense_strides;
use warpforge_tensor::ElementType;

use super::OpaqueKernel;
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::compute_type;
use crate::unfused::ElementKernel;

pub(super) fn emit(opaque: &OpaqueKernel<'_>) -> Result<Emitted, Unsupported> {
    let Some(target) = opaque.result(0).filter(|&id| !opaque.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let numbers = opaque.op.dot_dims().ok_or_else(|| opaque.unsupported())?;
    let of = opaque.graph.node(target).element;
    let integers = [of, opaque.element(0)?, opaque.element(1)?];
    if !integers.iter().all(|element| matches!(element, ElementType::Int(_))) {
        return Err(opaque.unsupported());
    }
    let sides = [
        (&numbers.lhs_batching, &numbers.lhs_contracting),
        (&numbers.rhs_batching, &numbers.rhs_contracting),
    ];
    let mut element = ElementKernel::new(opaque.graph, opaque.cluster, target, opaque.options);
    let mut geometry = [Vec::new(), Vec::new()];
    // Output dimensions: batch, free of the left operand, free of the right.
    let mut next = numbers.lhs_batching.len();
    for (at, (batching, contracting)) in sides.into_iter().enumerate() {
        let dims = opaque.dims(at)?;
        for (dim, stride) in dense_strides(&dims).into_iter().enumerate() {
            let among = |list: &[i64]| list.iter().position(|&one| one as usize == dim);
            let name = match (among(batching), among(contracting)) {
                (Some(batch), _) => format!("i{batch}"),
                (_, Some(summed)) => format!("k{summed}"),
                _ => {
                    next += 1;
                    format!("i{}", next - 1)
                }
            };
            geometry[at].push(format!("{name} * {stride}"));
        }
    }
    let (ty, index) = (compute_type(of)?, element.index);
    let pointers = [opaque.read(&mut element.builder, 0)?, opaque.read(&mut element.builder, 1)?];
    let dims = opaque.dims(0)?;
    let text = &mut element.builder.text;
    text.line(format!("{ty} value = 0;"));
    for (at, &dim) in numbers.lhs_contracting.iter().enumerate() {
        let size = dims.get(dim as usize).ok_or_else(|| opaque.unsupported())?;
        text.open(format!("for ({index} k{at} = 0; k{at} < {size}; ++k{at})"));
    }
    let [left, right] =
        [0, 1].map(|at| format!("wf_convert<{ty}>({})", load_expr(&pointers[at], &sum(&geometry[at]))));
    text.line(format!("value = wf_add(value, wf_mul({left}, {right}));"));
    for _ in &numbers.lhs_contracting {
        text.close();
    }
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
