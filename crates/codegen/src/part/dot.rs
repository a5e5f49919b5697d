//! Products of integers: a thread sums all products of one element of the result.

use warpforge_fusion::view::dense_strides;
use warpforge_tensor::ElementType;

use super::Cut;
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::single::Element;
use crate::steps::loaded;
use crate::types::computed;

pub(super) fn emit(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let Some(target) = cut.result(0).filter(|&id| !cut.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let numbers = cut.op.dot_dims().ok_or_else(|| cut.unknown())?;
    let of = cut.graph.node(target).element;
    let integers = [of, cut.element(0)?, cut.element(1)?];
    if !integers.iter().all(|element| matches!(element, ElementType::Int(_))) {
        return Err(cut.unknown());
    }
    let sides = [
        (&numbers.lhs_batching, &numbers.lhs_contracting),
        (&numbers.rhs_batching, &numbers.rhs_contracting),
    ];
    let mut element = Element::new(cut.graph, cut.cluster, target, cut.options);
    let mut places = [Vec::new(), Vec::new()];
    // The result has the batch, then the free dimensions of the left operand and those of the right.
    let mut next = numbers.lhs_batching.len();
    for (at, (batching, contracting)) in sides.into_iter().enumerate() {
        let dims = cut.dims(at)?;
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
            places[at].push(format!("{name} * {stride}"));
        }
    }
    let (ty, index) = (computed(of)?, element.index);
    let pointers = [cut.read(&mut element.draft, 0)?, cut.read(&mut element.draft, 1)?];
    let dims = cut.dims(0)?;
    let text = &mut element.draft.text;
    text.line(format!("{ty} value = 0;"));
    for (at, &dim) in numbers.lhs_contracting.iter().enumerate() {
        let size = dims.get(dim as usize).ok_or_else(|| cut.unknown())?;
        text.open(format!("for ({index} k{at} = 0; k{at} < {size}; ++k{at})"));
    }
    let [left, right] =
        [0, 1].map(|at| format!("wf_convert<{ty}>({})", loaded(&pointers[at], &sum(&places[at]))));
    text.line(format!("value = wf_add(value, wf_mul({left}, {right}));"));
    for _ in &numbers.lhs_contracting {
        text.close();
    }
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
