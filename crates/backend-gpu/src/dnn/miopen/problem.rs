//! Convolution problems.

use warpforge_tensor::ElementType;

use crate::dnn::window::ConvWindow;
use crate::driver::Address;

/// Shape and strides, NCHW order.
#[derive(Debug, Clone)]
pub(crate) struct TensorLayout {
    pub(crate) dims: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// A convolution.
#[derive(Debug, Clone)]
pub(crate) struct ConvProblem {
    pub(crate) element: ElementType,
    pub(crate) input: TensorLayout,
    pub(crate) weights: TensorLayout,
    pub(crate) output: TensorLayout,
    pub(crate) window: ConvWindow,
    pub(crate) groups: usize,
    /// Whether solutions that round below their type are excluded.
    pub(crate) exact: bool,
    /// Whether a bias per channel is added.
    pub(crate) bias: bool,
    /// Whether ReLU is applied.
    pub(crate) relu: bool,
}

/// Addresses of a convolution's tensors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConvBuffers {
    pub(crate) input: Address,
    pub(crate) weights: Address,
    pub(crate) bias: Address,
    pub(crate) output: Address,
    /// Workspace address and size.
    pub(crate) workspace: (Address, usize),
}
