//! Queries on loop bodies.

use warpforge_fusion::cluster::{Body, BodyOp, Epilogue, Load};
use warpforge_fusion::{Graph, NodeId, View};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

/// Whether a loop writes its whole output in order.
pub(super) fn is_whole(graph: &Graph, body: &Body, output: NodeId) -> bool {
    body.output.is_dense() && body.output.len() == graph.node(output).len()
}

/// The step before float conversions: libraries compute in f32.
pub(super) fn converted(body: &Body, mut at: usize) -> Option<usize> {
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16))
    };
    while let BodyOp::Elementwise(Function::Convert) = body.steps[at].op {
        let &input = body.steps[at].inputs.first()?;
        if !float(body.steps[at].element) || !float(body.steps[input].element) {
            return None;
        }
        at = input;
    }
    Some(at)
}

/// Whether a load has one element per column.
pub(super) fn is_per_column(graph: &Graph, epilogue: &Epilogue, load: &Load) -> bool {
    let View { dims, strides, offset } = &load.view;
    let columns =
        View { offset: 0, dims: dims[epilogue.rows..].to_vec(), strides: strides[epilogue.rows..].to_vec() };
    let rows_repeat =
        dims[..epilogue.rows].iter().zip(strides).all(|(&dim, &stride)| dim == 1 || stride == 0);
    *offset == 0 && rows_repeat && columns.is_dense() && graph.node(load.value).len() == columns.len()
}

/// Whether a load has the shape and order of the tile.
pub(super) fn is_like_tile(graph: &Graph, epilogue: &Epilogue, load: &Load) -> bool {
    let tile = &epilogue.body.loads[epilogue.tile];
    load.view == tile.view && graph.node(load.value).len() == graph.node(tile.value).len()
}

/// The value of a constant step.
pub(super) fn constant_value(body: &Body, step: usize) -> Option<f64> {
    match &body.steps[step].op {
        BodyOp::Constant(tensor) if !tensor.is_empty() => {
            matches!(tensor.element_type(), ElementType::Float(_)).then(|| tensor.get(0).to_f64())
        }
        _ => None,
    }
}

/// Whether a step is the constant zero.
pub(super) fn is_zero(body: &Body, step: usize) -> bool {
    converted(body, step).and_then(|step| constant_value(body, step)) == Some(0.0)
}
