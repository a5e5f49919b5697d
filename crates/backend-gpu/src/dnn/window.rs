//! Convolutions and their gradients: which pass, and the windows.

/// A pass of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConvPass {
    /// From the input to the output.
    Forward,
    /// From the gradient of the output to that of the input.
    DataGradient,
    /// From the input and the gradient of the output to that of the weights.
    WeightGradient,
}

/// Window strides, padding and dilation, of the forward pass.
#[derive(Debug, Clone)]
pub(crate) struct ConvWindow {
    pub(crate) strides: Vec<i64>,
    pub(crate) before: Vec<i64>,
    pub(crate) after: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
}
