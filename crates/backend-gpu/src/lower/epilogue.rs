//! Epilogues that the vendor's libraries have.

use warpforge_fusion::cluster::{Body, BodyOp, Contraction, Epilogue, Load};
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType};

use super::gelu;
use super::relu::{self, Gate};
use crate::products::Activation;

/// What the library of products does to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fused {
    /// A value with a number for each column.
    pub(super) bias: Option<NodeId>,
    /// A value like the result that is added.
    pub(super) residual: Option<NodeId>,
    /// A value like the result that the activation takes too.
    pub(super) beside: Option<NodeId>,
    /// Where the result passes, for the gradient of ReLU.
    pub(super) gate: Option<Gate>,
    pub(super) activation: Activation,
    /// Where the result goes.
    pub(super) output: NodeId,
}

impl Fused {
    /// Nothing.
    pub(super) fn none(output: NodeId) -> Self {
        Self { bias: None, residual: None, beside: None, gate: None, activation: Activation::None, output }
    }

    /// Whether nothing is done but that a value like the result is added, which every library has.
    pub(super) fn is_sum(&self) -> bool {
        self.bias.is_none() && self.activation == Activation::None
    }
}

/// What the library may be asked for besides sums and ReLU.
#[derive(Debug, Clone, Copy)]
pub(super) struct More {
    /// GELU and its gradient.
    pub(super) gelu: bool,
    /// The gradient of ReLU.
    pub(super) relu_gradient: bool,
}

/// A loop over a product's result as the library's own, when it is one.
pub(super) fn of_library(
    graph: &Graph,
    product: &Contraction,
    epilogue: &Epilogue,
    output: NodeId,
    more: More,
) -> Option<Fused> {
    let body = &epilogue.body;
    let whole = graph.node(output);
    let operand = graph.node(product.operands[0].value).element;
    let wide = graph.node(product.node).element;
    if !is_whole(graph, body, output) || ![operand, wide].contains(&whole.element) {
        return None;
    }
    let mut fused = Fused::none(output);
    let mut at = converted(body, body.steps.len().checked_sub(1)?)?;
    if let BodyOp::Elementwise(OpKind::Maximum) = body.steps[at].op {
        let inputs = &body.steps[at].inputs;
        let zero = inputs.iter().position(|&input| is_zero(body, input))?;
        fused.activation = Activation::Relu;
        at = *inputs.get(1 - zero)?;
    } else if let Some(fused) = gradient(graph, product, epilogue, fused, at, more) {
        return Some(fused);
    } else if more.gelu
        && is_narrow(whole.element)
        && let Some(x) = gelu::of(body, at)
    {
        (fused.activation, at) = (Activation::Gelu, x);
    }
    let mut terms = vec![at];
    let mut tile = false;
    while let Some(at) = terms.pop() {
        let step = &body.steps[converted(body, at)?];
        match &step.op {
            BodyOp::Elementwise(OpKind::Add) => terms.extend(&step.inputs),
            // A bias of zeros, as models have before they are trained.
            BodyOp::Constant(_) if is_zero(body, at) => {}
            // A tile that is added to itself has no such form.
            BodyOp::Load(load) if *load == epilogue.tile && tile => return None,
            BodyOp::Load(load) if *load == epilogue.tile => tile = true,
            BodyOp::Load(load) => {
                let load = &body.loads[*load];
                if is_per_column(graph, epilogue, load) && fused.bias.is_none() {
                    fused.bias = Some(load.value);
                } else if is_like_tile(graph, epilogue, load)
                    && fused.residual.is_none()
                    && graph.node(load.value).element == whole.element
                {
                    fused.residual = Some(load.value);
                } else {
                    return None;
                }
            }
            _ => return None,
        }
    }
    // A tile that is not there has no such form either.
    tile.then_some(fused)
}

/// The result alone, times the slope of an activation elsewhere: what the library has of that for single products.
fn gradient(
    graph: &Graph,
    product: &Contraction,
    epilogue: &Epilogue,
    fused: Fused,
    at: usize,
    more: More,
) -> Option<Fused> {
    let body = &epilogue.body;
    let element = graph.node(fused.output).element;
    let columns: usize = body.dims[epilogue.rows..].iter().product();
    if !matches!(&graph.node(product.node).op, Op::Dot(dot) if dot.lhs_batch.is_empty()) {
        return None;
    }
    if more.relu_gradient
        && relu::is_float(element)
        && columns.is_multiple_of(relu::LINE)
        && let Some(gate) = relu::gradient(graph, epilogue, at)
    {
        return Some(Fused { gate: Some(gate), activation: Activation::ReluGradient, ..fused });
    }
    let [given, x] = gelu::gradient(body, at).filter(|_| more.gelu && is_narrow(element))?;
    let BodyOp::Load(load) = body.steps[converted(body, x)?].op else { return None };
    let beside = body.loads[load].value;
    // The library wants lines of a multiple of eight, and the result's type.
    let fits = is_like_tile(graph, epilogue, &body.loads[load])
        && graph.node(beside).element == element
        && columns.is_multiple_of(8);
    let only_product =
        matches!(body.steps[converted(body, given)?].op, BodyOp::Load(load) if load == epilogue.tile);
    (fits && only_product).then_some(Fused {
        beside: Some(beside),
        activation: Activation::GeluGradient,
        ..fused
    })
}

fn is_narrow(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16))
}

/// Whether a loop gives every element of its output, in the order of its domain.
pub(super) fn is_whole(graph: &Graph, body: &Body, output: NodeId) -> bool {
    body.output.is_dense() && body.output.len() == graph.node(output).len()
}

/// The step behind conversions between types of floats: libraries compute in f32 whatever the operands are.
pub(super) fn converted(body: &Body, mut at: usize) -> Option<usize> {
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16))
    };
    while let BodyOp::Elementwise(OpKind::Convert) = body.steps[at].op {
        let &input = body.steps[at].inputs.first()?;
        if !float(body.steps[at].element) || !float(body.steps[input].element) {
            return None;
        }
        at = input;
    }
    Some(at)
}

/// Whether a load has one number for each column, from its value's first on.
pub(super) fn is_per_column(graph: &Graph, epilogue: &Epilogue, load: &Load) -> bool {
    let View { dims, strides, offset } = &load.view;
    let columns =
        View { offset: 0, dims: dims[epilogue.rows..].to_vec(), strides: strides[epilogue.rows..].to_vec() };
    let rows_repeat =
        dims[..epilogue.rows].iter().zip(strides).all(|(&dim, &stride)| dim == 1 || stride == 0);
    *offset == 0 && rows_repeat && columns.is_dense() && graph.node(load.value).len() == columns.len()
}

/// Whether a load has an element for each of the tile's, in the same order.
pub(super) fn is_like_tile(graph: &Graph, epilogue: &Epilogue, load: &Load) -> bool {
    let tile = &epilogue.body.loads[epilogue.tile];
    load.view == tile.view && graph.node(load.value).len() == graph.node(tile.value).len()
}

/// The number of a constant step.
pub(super) fn number(body: &Body, step: usize) -> Option<f64> {
    match &body.steps[step].op {
        BodyOp::Constant(tensor) if !tensor.is_empty() => {
            matches!(tensor.element_type(), ElementType::Float(_)).then(|| tensor.get(0).to_f64())
        }
        _ => None,
    }
}

/// Whether a step is the number zero.
pub(super) fn is_zero(body: &Body, step: usize) -> bool {
    converted(body, step).and_then(|step| number(body, step)) == Some(0.0)
}
