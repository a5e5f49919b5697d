//! Epilogues of the BLAS libraries.

use warpforge_fusion::cluster::{Body, BodyOp, Contraction, Epilogue};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

use super::body::{converted, is_like_tile, is_per_column, is_whole, is_zero};
use super::relu::{self, ReluMask};
use crate::blas::Activation;

/// A GEMM epilogue of a BLAS library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LibraryEpilogue {
    /// A value with one element per column.
    pub(super) bias: Option<NodeId>,
    /// An added value of the result's shape.
    pub(super) residual: Option<NodeId>,
    /// The auxiliary input of an activation gradient.
    pub(super) aux: Option<NodeId>,
    /// The bit mask of a ReLU gradient.
    pub(super) relu_mask: Option<ReluMask>,
    pub(super) activation: Activation,
    /// The output.
    pub(super) output: NodeId,
}

impl LibraryEpilogue {
    /// No epilogue.
    pub(super) fn none(output: NodeId) -> Self {
        Self { bias: None, residual: None, aux: None, relu_mask: None, activation: Activation::None, output }
    }

    /// Whether at most a residual is added, which every library supports.
    pub(super) fn is_sum(&self) -> bool {
        self.bias.is_none() && self.activation == Activation::None
    }
}

/// Optional epilogues that the library may refuse.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionalEpilogues {
    /// GELU and its gradient.
    pub(super) gelu: bool,
    /// The gradient of ReLU.
    pub(super) relu_gradient: bool,
}

/// Matches an epilogue loop that the library supports.
pub(super) fn match_library(
    graph: &Graph,
    contraction: &Contraction,
    epilogue: &Epilogue,
    output: NodeId,
    optional: OptionalEpilogues,
) -> Option<LibraryEpilogue> {
    let body = &epilogue.body;
    let whole = graph.node(output);
    let operand = graph.node(contraction.operands[0].value).element;
    let wide = graph.node(contraction.node).element;
    if !is_whole(graph, body, output) || ![operand, wide].contains(&whole.element) {
        return None;
    }
    let mut fused = LibraryEpilogue::none(output);
    let mut at = converted(body, body.steps.len().checked_sub(1)?)?;
    if let BodyOp::Elementwise(Function::Maximum) = body.steps[at].op {
        let inputs = &body.steps[at].inputs;
        let zero = inputs.iter().position(|&input| is_zero(body, input))?;
        fused.activation = Activation::Relu;
        at = *inputs.get(1 - zero)?;
    } else if let Some(fused) = gradient(graph, contraction, epilogue, fused, at, optional) {
        return Some(fused);
    } else if optional.gelu
        && is_narrow(whole.element)
        && let Some([x]) = operands(body, at, Function::GeluTanh)
    {
        (fused.activation, at) = (Activation::Gelu, x);
    }
    let mut terms = vec![at];
    let mut tile = false;
    while let Some(at) = terms.pop() {
        let step = &body.steps[converted(body, at)?];
        match &step.op {
            BodyOp::Elementwise(Function::Add) => terms.extend(&step.inputs),
            // A zero bias, as in untrained models.
            BodyOp::Constant(_) if is_zero(body, at) => {}
            // Twice the tile is not supported.
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
    // The tile must be part of the sum.
    tile.then_some(fused)
}

/// The operands of a step, where it is this function of f32.
fn operands<const N: usize>(body: &Body, at: usize, function: Function) -> Option<[usize; N]> {
    let step = &body.steps[at];
    let is = matches!(step.op, BodyOp::Elementwise(known) if known == function)
        && step.element == ElementType::F32;
    step.inputs.clone().try_into().ok().filter(|_| is)
}

/// The result times the derivative of an activation, for unbatched GEMMs.
fn gradient(
    graph: &Graph,
    contraction: &Contraction,
    epilogue: &Epilogue,
    fused: LibraryEpilogue,
    at: usize,
    optional: OptionalEpilogues,
) -> Option<LibraryEpilogue> {
    let body = &epilogue.body;
    let element = graph.node(fused.output).element;
    let columns: usize = body.dims[epilogue.rows..].iter().product();
    if !matches!(&graph.node(contraction.node).op, Op::Dot(dot) if dot.lhs_batch.is_empty()) {
        return None;
    }
    if optional.relu_gradient
        && relu::is_float(element)
        && columns.is_multiple_of(relu::LINE)
        && let Some(relu_mask) = relu::gradient(graph, epilogue, at)
    {
        return Some(LibraryEpilogue {
            relu_mask: Some(relu_mask),
            activation: Activation::ReluGradient,
            ..fused
        });
    }
    let [given, x] =
        operands(body, at, Function::GeluTanhGradient).filter(|_| optional.gelu && is_narrow(element))?;
    let BodyOp::Load(load) = body.steps[converted(body, x)?].op else { return None };
    let aux = body.loads[load].value;
    // The library needs a multiple of eight columns and the result's type.
    let fits = is_like_tile(graph, epilogue, &body.loads[load])
        && graph.node(aux).element == element
        && columns.is_multiple_of(8);
    let only_product =
        matches!(body.steps[converted(body, given)?].op, BodyOp::Load(load) if load == epilogue.tile);
    (fits && only_product).then_some(LibraryEpilogue {
        aux: Some(aux),
        activation: Activation::GeluGradient,
        ..fused
    })
}

fn is_narrow(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16))
}
