//! Products and convolutions with what is done to their results.

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};

use super::body::Body;
use super::operand::Operand;
use crate::graph::NodeId;
use crate::precision::quantize::QuantizedWeights;

/// A product or a convolution with its epilogue.
#[derive(Debug, Clone)]
pub struct Contraction {
    /// The node.
    pub node: NodeId,
    /// What it takes.
    pub operands: [Operand; 2],
    /// What the right-hand operand is before it is widened, where the device reads it so; the operand is the codes.
    pub weights: Option<QuantizedWeights>,
    /// What is done to the result; it is the body's load number [`Epilogue::tile`].
    pub epilogue: Option<Epilogue>,
}

/// A loop over the result of a product.
#[derive(Debug, Clone)]
pub struct Epilogue {
    /// The loop; its domain has the dimensions of the result's rows, then those of its columns.
    pub body: Body,
    /// Which of its loads is the result.
    pub tile: usize,
    /// How many dimensions of the domain are those of rows.
    pub rows: usize,
    /// The form that it has, where libraries of matrix products have it too.
    pub form: Option<EpilogueForm>,
}

/// An activation of the sum of the tile, a bias and a residual, each but the tile where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpilogueForm {
    /// A value with one element per column.
    pub bias: Option<NodeId>,
    /// A value of the tile's shape.
    pub residual: Option<NodeId>,
    /// What is done to the sum. Gradients of activations are of the tile alone.
    pub activation: Option<Activation>,
}

/// What an epilogue ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The larger of the sum and zero.
    Relu,
    /// GELU by the hyperbolic tangent.
    GeluTanh,
    /// The tile where a condition holds, else zero.
    ReluGradient(ReluMask),
    /// The tile times the slope of GELU by the hyperbolic tangent.
    GeluTanhGradient {
        /// Where the slope is taken, a value of the tile's shape.
        x: NodeId,
    },
}

/// The condition under which the gradient of ReLU passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReluMask {
    /// The value compared with zero, of the tile's shape.
    pub of: NodeId,
    /// How.
    pub direction: ComparisonDirection,
    /// By which order.
    pub order: ComparisonType,
    /// Whether zero is the left operand.
    pub zero_first: bool,
    /// Whether the gradient passes where the comparison is true.
    pub passes: bool,
}
