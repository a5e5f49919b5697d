//! What a node computes.

use std::sync::Arc;

use warpforge_ir::attr::{ComparisonDirection, ComparisonType, GatherDims, ScatterDims};
use warpforge_ir::calls::KnownCall;
use warpforge_ir::slice::Slice;
use warpforge_tensor::Tensor;
use warpforge_tensor::elementwise::Function;

use super::scalar::{Combiner, Comparator, ReduceKind, ScalarFunction};
use crate::view::LayoutOp;

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
    /// Whether operands stay as they are in every precision: those of a Fourier transform, whose rounding a model does not expect.
    pub keeps_precision: bool,
    /// Whether sums of floats of 8 bits may keep fewer bits than f32, where hardware is faster so.
    pub imprecise_sums: bool,
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

impl Window {
    /// The windows over a tensor whose dimension `at` is dimension `permutation[at]` of this one's.
    pub(crate) fn transposed(&self, permutation: &[usize]) -> Self {
        let sizes = |of: &[usize]| permutation.iter().map(|&at| of[at]).collect();
        Self {
            dims: sizes(&self.dims),
            strides: sizes(&self.strides),
            padding: permutation.iter().map(|&at| self.padding[at]).collect(),
            base_dilation: sizes(&self.base_dilation),
            window_dilation: sizes(&self.window_dilation),
        }
    }
}

/// An operation as a module of its own, which the reference evaluates.
#[derive(Debug)]
pub struct OpaqueOp {
    /// What it is called: the operation's name.
    pub name: String,
    /// A module whose one function computes it.
    pub slice: Slice,
    /// The name of that function.
    pub function: String,
    /// For each operand of the operation, which input of the node it is.
    pub operands: Vec<usize>,
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
    /// Each element along this dimension a weighted sum of elements of the first input along it. The others are, tap by tap, a vector of
    /// indices, which are clamped, and one of weights. Only for devices with [`resampling`](crate::pipeline::Device::resamples).
    Resample(usize),
    /// The first input with updates (the third) combined into it, where the second says; what lies outside is left out.
    Scatter(ScatterDims, Combiner),
    /// A part of the first input, of the sizes of the result, from where the others say, moved inside.
    DynamicSlice,
    /// The first input with the second in it, where the others say, moved inside.
    DynamicUpdateSlice,
    /// Elements of the second input combined, where a function selects in each window of the first, into the third, a scalar, repeated.
    SelectAndScatter {
        /// Whether the first of two elements stays selected.
        select: Arc<ScalarFunction>,
        /// The windows.
        window: Window,
        /// What becomes of what is there and an element of the second input.
        scatter: Combiner,
    },
    /// All inputs along a dimension in an order; equal elements keep theirs. A tuple.
    Sort {
        /// The dimension.
        axis: usize,
        /// Which of two places comes first.
        comparator: Comparator,
    },
    /// Several inputs reduced together along these dimensions, from the initial values on, scalars, which are the second half of the inputs. A tuple.
    VariadicReduce(Arc<ScalarFunction>, Vec<usize>),
    /// A custom call that is known: an operation of detectors.
    Call(KnownCall),
    /// What no other operation is; the reference evaluates it. A tuple.
    Opaque(Arc<OpaqueOp>),
    /// A part of a tuple.
    Result(usize),
    /// A complex number of its two parts; only while a function is imported.
    Complex,
}

impl Op {
    /// Whether it gives a tuple, whose parts are [`Op::Result`] nodes; the node itself has no elements.
    #[must_use]
    pub fn is_tuple(&self) -> bool {
        matches!(self, Op::Sort { .. } | Op::VariadicReduce(..) | Op::Opaque(_))
    }

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
            Op::Resample(_) => "resample".to_owned(),
            Op::Scatter(..) => "scatter".to_owned(),
            Op::DynamicSlice => "dynamic_slice".to_owned(),
            Op::DynamicUpdateSlice => "dynamic_update_slice".to_owned(),
            Op::SelectAndScatter { .. } => "select_and_scatter".to_owned(),
            Op::Sort { .. } => "sort".to_owned(),
            Op::VariadicReduce(..) => "variadic_reduce".to_owned(),
            Op::Call(call) => short(call.target()),
            Op::Opaque(part) => short(&part.name),
            Op::Result(at) => format!("result {at}"),
            Op::Complex => "complex".to_owned(),
        }
    }
}
