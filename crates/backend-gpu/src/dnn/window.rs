//! Convolution windows.

/// Window strides, padding and dilation.
#[derive(Debug, Clone)]
pub(crate) struct ConvWindow {
    pub(crate) strides: Vec<i64>,
    pub(crate) before: Vec<i64>,
    pub(crate) after: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
}
