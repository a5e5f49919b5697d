//! Library calls: GEMMs, convolutions and attention.

use warpforge_fusion::cluster::{Kind, Operand};
use warpforge_fusion::{NodeId, View};
use warpforge_tensor::ElementType;

use crate::blas::{self, Activation, ComputeType, OperandSide};
use crate::dnn::{ConvPass, ConvWindow, Pointwise};

/// One call, by byte offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmSlice {
    pub(crate) lhs: usize,
    pub(crate) rhs: usize,
    pub(crate) out: usize,
}

/// A GEMM call.
#[derive(Debug, Clone)]
pub(crate) struct GemmCall {
    pub(crate) gemm: blas::Gemm,
    pub(crate) lhs: Operand,
    pub(crate) rhs: Operand,
    pub(crate) bias: Option<NodeId>,
    pub(crate) residual: Option<NodeId>,
    /// The scales of the left and the right operand.
    pub(crate) scales: Option<[NodeId; 2]>,
    /// The auxiliary input of the activation.
    pub(crate) aux: Option<NodeId>,
    /// The output of the bias gradient.
    pub(crate) bias_gradient: Option<NodeId>,
    pub(crate) output: NodeId,
    pub(crate) parts: Vec<GemmSlice>,
}

impl GemmCall {
    /// A cluster with the operands and outputs of the call, for memory planning.
    pub(super) fn as_kind(&self) -> Kind {
        let other = |&id: &NodeId| Operand { value: id, view: View::dense(&[]) };
        let scales = self.scales.iter().flatten();
        let others = self.bias.iter().chain(&self.residual).chain(&self.aux).chain(scales).map(other);
        let read = [self.lhs.clone(), self.rhs.clone()].into_iter().chain(others).collect();
        match self.bias_gradient {
            Some(bias_gradient) => Kind::Library(read, vec![self.output, bias_gradient]),
            None => Kind::Unfused(read),
        }
    }

    /// Adds a bias gradient, where the library may support it: a single call with unconverted operands.
    pub(super) fn add_bias_gradient(&mut self, side: OperandSide, of: NodeId, bias_gradient: NodeId) -> bool {
        let gemm = &mut self.gemm;
        let operand = if side == OperandSide::Left { &self.lhs } else { &self.rhs };
        let plain = gemm.bias.is_none() && !gemm.residual && gemm.activation == Activation::None;
        // It is undocumented whether operands rounded to tf32 are summed unrounded; bias gradients would lose too
        // many digits to cancellation.
        let plain = plain && gemm.compute_type != ComputeType::Tf32;
        let fits = plain && operand.value == of && gemm.batch == 1 && self.parts.len() == 1;
        if fits {
            (gemm.bias_gradient, self.bias_gradient) = (Some(side), Some(bias_gradient));
        }
        fits
    }
}

/// An operand of a chain operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ChainOperand {
    /// The convolution's result.
    Result,
    /// The result of an earlier chain operation.
    Op(usize),
    /// One element per channel.
    PerChannel(NodeId),
    /// A tensor of the result's shape.
    Full(NodeId),
    /// A scalar.
    Scalar(f32),
}

/// A chain operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChainOp {
    pub(crate) op: Pointwise,
    pub(crate) of: ChainOperand,
    pub(crate) with: Option<ChainOperand>,
}

/// A call of a convolution, or of a gradient of one.
#[derive(Debug, Clone)]
pub(crate) struct ConvCall {
    pub(crate) pass: ConvPass,
    /// The input of the forward pass, or its gradient, which the call writes.
    pub(crate) input: NodeId,
    /// Input shape: batch, spatial, channels.
    pub(crate) input_dims: Vec<usize>,
    /// The weights of the forward pass, or their gradient, which the call writes. Output channels first, input channels last, dense.
    pub(crate) weights: NodeId,
    pub(crate) weights_dims: Vec<usize>,
    /// Output shape: batch, spatial, channels.
    pub(crate) output_dims: Vec<usize>,
    /// The output of the forward pass, or its gradient, which gradients of the others read.
    pub(crate) output: NodeId,
    pub(crate) window: ConvWindow,
    pub(crate) chain: Vec<ChainOp>,
    /// Whether operands must not be rounded below their type.
    pub(crate) exact: bool,
}

impl ConvCall {
    /// What the call reads beside what its chain does.
    fn read(&self) -> [NodeId; 2] {
        match self.pass {
            ConvPass::Forward => [self.input, self.weights],
            ConvPass::DataGradient => [self.output, self.weights],
            ConvPass::WeightGradient => [self.input, self.output],
        }
    }

    /// A cluster with the operands and output of the call, for memory planning.
    pub(super) fn as_unfused(&self) -> Kind {
        let taken = |taken: ChainOperand| match taken {
            ChainOperand::PerChannel(id) | ChainOperand::Full(id) => Some(id),
            _ => None,
        };
        let others =
            self.chain.iter().flat_map(|link| [Some(link.of), link.with]).flatten().filter_map(taken);
        let all = self.read().into_iter().chain(others);
        Kind::Unfused(all.map(|value| Operand { value, view: View::dense(&[]) }).collect())
    }
}

/// The layout of an operand: batch, head, row, column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heads {
    pub(crate) value: NodeId,
    /// In elements.
    pub(crate) offset: usize,
    pub(crate) dims: [usize; 4],
    pub(crate) strides: [usize; 4],
}

impl Heads {
    /// Swaps rows and columns.
    pub(crate) fn transposed(mut self) -> Self {
        self.dims.swap(2, 3);
        self.strides.swap(2, 3);
        self
    }
}

/// A cuDNN attention call. Keys and values may have fewer heads than queries (grouped-query attention).
#[derive(Debug, Clone)]
pub(crate) struct AttentionCall {
    pub(crate) queries: Heads,
    pub(crate) keys: Heads,
    pub(crate) values: Heads,
    pub(crate) scale: f32,
    /// Whether queries see the keys up to their own index only.
    pub(crate) causal: bool,
    pub(crate) element: ElementType,
    pub(crate) output: NodeId,
    /// Strides of batch, head, row and column.
    pub(crate) output_strides: [usize; 4],
}

impl AttentionCall {
    /// A cluster with the operands and output of the call, for memory planning.
    pub(super) fn as_unfused(&self) -> Kind {
        let heads = [self.queries, self.keys, self.values].map(|heads| heads.value);
        Kind::Unfused(heads.map(|value| Operand { value, view: View::dense(&[]) }).to_vec())
    }
}
