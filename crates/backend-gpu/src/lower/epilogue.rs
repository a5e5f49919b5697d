//! Epilogues of the BLAS libraries.

use warpforge_fusion::cluster::{self as fusion, Contraction, Epilogue, ReluMask};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_tensor::{ElementType, FloatType};

use super::relu;
use crate::blas::{Activation, ScaleMode};

/// Scales of the left and the right operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperandScales {
    pub(super) values: [NodeId; 2],
    pub(super) mode: ScaleMode,
    /// Whether sums may keep fewer bits.
    pub(super) fast: bool,
}

/// A GEMM epilogue of a BLAS library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LibraryEpilogue {
    /// A value with one element per column.
    pub(super) bias: Option<NodeId>,
    /// An added value of the result's shape.
    pub(super) residual: Option<NodeId>,
    /// What operands are multiplied by.
    pub(super) scales: Option<OperandScales>,
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
        Self {
            bias: None,
            residual: None,
            scales: None,
            aux: None,
            relu_mask: None,
            activation: Activation::None,
            output,
        }
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

/// The epilogue of a GEMM that the library supports.
pub(super) fn of_library(
    graph: &Graph,
    contraction: &Contraction,
    epilogue: &Epilogue,
    output: NodeId,
    optional: OptionalEpilogues,
) -> Option<LibraryEpilogue> {
    let form = epilogue.form?;
    let element = graph.node(output).element;
    let operand = graph.node(contraction.operands[0].value).element;
    let wide = graph.node(contraction.node).element;
    let residual_fits = form.residual.is_none_or(|id| graph.node(id).element == element);
    if ![operand, wide].contains(&element) || !residual_fits {
        return None;
    }
    let sum = LibraryEpilogue { bias: form.bias, residual: form.residual, ..LibraryEpilogue::none(output) };
    let columns: usize = epilogue.body.dims[epilogue.rows..].iter().product();
    let unbatched = || matches!(&graph.node(contraction.node).op, Op::Dot(dot) if dot.lhs_batch.is_empty());
    match form.activation {
        None => Some(sum),
        Some(fusion::Activation::Relu) => Some(LibraryEpilogue { activation: Activation::Relu, ..sum }),
        Some(fusion::Activation::GeluTanh) => (optional.gelu && is_narrow(element))
            .then_some(LibraryEpilogue { activation: Activation::Gelu, ..sum }),
        Some(fusion::Activation::ReluGradient(mask)) => {
            let fits = optional.relu_gradient
                && unbatched()
                && relu::is_float(element)
                && relu::is_float(graph.node(mask.of).element)
                && columns.is_multiple_of(relu::LINE);
            let activation = Activation::ReluGradient;
            fits.then_some(LibraryEpilogue { relu_mask: Some(mask), activation, ..sum })
        }
        Some(fusion::Activation::GeluTanhGradient { x }) => {
            // The library needs a multiple of eight columns and the result's type.
            let fits = optional.gelu
                && unbatched()
                && is_narrow(element)
                && graph.node(x).element == element
                && columns.is_multiple_of(8);
            let activation = Activation::GeluGradient;
            fits.then_some(LibraryEpilogue { aux: Some(x), activation, ..sum })
        }
    }
}

fn is_narrow(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16))
}
