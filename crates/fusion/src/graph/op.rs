//! What a node computes.

use std::sync::Arc;

use warpforge_ir::attr::{ComparisonDirection, ComparisonType, GatherDims, ScatterDims};
use warpforge_ir::slice::Slice;
use warpforge_tensor::Tensor;
use warpforge_tensor::elementwise::Function;

use crate::view::LayoutOp;

/// What a reduction combines elements with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The largest; NaN if there is one.
    Max,
    /// The smallest; NaN if there is one.
    Min,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
}

impl ReduceKind {
    /// The function of two elements.
    #[must_use]
    pub fn function(self) -> Function {
        match self {
            ReduceKind::Add => Function::Add,
            ReduceKind::Multiply => Function::Multiply,
            ReduceKind::Max => Function::Maximum,
            ReduceKind::Min => Function::Minimum,
            ReduceKind::And => Function::And,
            ReduceKind::Or => Function::Or,
        }
    }
}

/// A matrix product of two operands in any order of their dimensions; the result has the batch dimensions, then the free
/// ones of the left operand, then those of the right.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Dot {
    /// Batch dimensions of the left operand.
    pub lhs_batch: Vec<usize>,
    /// Batch dimensions of the right operand.
    pub rhs_batch: Vec<usize>,
    /// Dimensions of the left operand that are summed over.
    pub lhs_contract: Vec<usize>,
    /// Dimensions of the right operand that are summed over.
    pub rhs_contract: Vec<usize>,
}

/// A convolution of an input `[batch, spatial…, channels]` with weights `[spatial…, channels / groups, channels out]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conv {
    /// The distance between windows.
    pub strides: Vec<usize>,
    /// Elements added (or, negative, cut) before and after.
    pub padding: Vec<(isize, isize)>,
    /// The distance between elements of the input: 1 is side by side.
    pub base_dilation: Vec<usize>,
    /// The distance between the elements of a window.
    pub window_dilation: Vec<usize>,
    /// In how many groups the channels are.
    pub groups: usize,
}

/// Windows over every dimension of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Window {
    /// Sizes of the window.
    pub dims: Vec<usize>,
    /// The distance between windows.
    pub strides: Vec<usize>,
    /// Elements added before and after.
    pub padding: Vec<(isize, isize)>,
    /// The distance between elements of the input.
    pub base_dilation: Vec<usize>,
    /// The distance between the elements of a window.
    pub window_dilation: Vec<usize>,
}

/// An operation cut out of its module, which the reference evaluates.
#[derive(Debug)]
pub struct OpaqueOp {
    /// What it is called: the operation's name.
    pub name: String,
    /// A module whose one function computes it.
    pub slice: Slice,
    /// The name of that function.
    pub function: String,
    /// What it is, where a backend may have a kernel for it.
    pub form: Option<Form>,
    /// For each operand of the operation, which input of the node it is.
    pub operands: Vec<usize>,
}

/// An operation that backends may have kernels for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Updates (the third operand) put into the first where the second says; what lies outside is left out.
    Scatter(ScatterDims, Update),
    /// A part of the first operand, of the sizes of the result, from where the others say, moved inside.
    DynamicSlice,
    /// The first operand with the second in it, where the others say, moved inside.
    DynamicUpdate,
    /// All operands along a dimension in the order of one of them; equal elements keep their order.
    Sort {
        /// The dimension.
        axis: usize,
        /// Which operand says the order.
        key: usize,
        /// How.
        order: Order,
    },
}

/// What a scatter does with an element that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The update takes its place.
    Set,
    /// Both are reduced to one.
    Reduce(ReduceKind),
}

/// When an element comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The larger comes first.
    pub descending: bool,
    /// Floats are in the order of IEEE 754's totalOrder.
    pub total: bool,
    /// Every NaN is larger than all numbers, and they are equal.
    pub nan_is_largest: bool,
}

/// What a node computes from its inputs.
#[derive(Debug, Clone)]
pub enum Op {
    /// An argument of the function that a run gives.
    Argument(usize),
    /// Known when compiling: a weight or a constant.
    Constant(Tensor),
    /// An operation on each element. All inputs have the sizes of the result.
    Elementwise(Function),
    /// A comparison of each element.
    Compare(ComparisonDirection, ComparisonType),
    /// The index along a dimension.
    Iota(usize),
    /// The same elements elsewhere. An operand that repeats has no dimension of size 1 for it.
    Layout(LayoutOp),
    /// The second input, a scalar, around and between the elements of the first.
    Pad {
        /// Elements before.
        low: Vec<isize>,
        /// Elements after.
        high: Vec<isize>,
        /// Elements between.
        interior: Vec<usize>,
    },
    /// The inputs one after the other along a dimension.
    Concat(usize),
    /// The elements along these dimensions reduced.
    Reduce(ReduceKind, Vec<usize>),
    /// A matrix product.
    Dot(Dot),
    /// A convolution.
    Conv(Conv),
    /// The elements of each window reduced, from an initial value on, a scalar, which padding has too.
    ReduceWindow(ReduceKind, Window, Tensor),
    /// Windows of the first input, of these sizes, where the second says.
    Gather(GatherDims, Vec<usize>),
    /// Something that the reference evaluates, unless a backend has a kernel for its form; its results are [`Op::Result`] nodes.
    Opaque(Arc<OpaqueOp>),
    /// A result of a [`Op::Opaque`] node.
    Result(usize),
}

impl Op {
    /// A short name for people.
    #[must_use]
    pub fn name(&self) -> String {
        let short = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
        match self {
            Op::Argument(at) => format!("argument {at}"),
            Op::Constant(_) => "constant".to_owned(),
            Op::Elementwise(function) => function.name().to_owned(),
            Op::Compare(direction, _) => format!("compare {direction:?}").to_lowercase(),
            Op::Iota(_) => "iota".to_owned(),
            Op::Layout(LayoutOp::Transpose(_)) => "transpose".to_owned(),
            Op::Layout(LayoutOp::Reshape(_)) => "reshape".to_owned(),
            Op::Layout(LayoutOp::Broadcast { .. }) => "broadcast".to_owned(),
            Op::Layout(LayoutOp::Slice { .. }) => "slice".to_owned(),
            Op::Layout(LayoutOp::Reverse(_)) => "reverse".to_owned(),
            Op::Pad { .. } => "pad".to_owned(),
            Op::Concat(_) => "concatenate".to_owned(),
            Op::Reduce(kind, _) => format!("reduce {}", kind.function().name()),
            Op::Dot(_) => "dot".to_owned(),
            Op::Conv(_) => "convolution".to_owned(),
            Op::ReduceWindow(kind, ..) => format!("reduce_window {}", kind.function().name()),
            Op::Gather(..) => "gather".to_owned(),
            Op::Opaque(part) => short(&part.name),
            Op::Result(at) => format!("result {at}"),
        }
    }
}
