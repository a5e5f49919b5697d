//! The weights of a convolution.

use warpforge_tensor::ElementType;

use crate::gemm::Operand;

/// Weights in memory. The output channels of a group follow those of the group before it.
#[derive(Debug, Clone)]
pub struct Weights {
    /// The weight of the window's first element, the first input and the first output channel.
    pub data: *const u8,
    /// The type of the elements.
    pub element: ElementType,
    /// Window strides along each spatial dimension, in elements; negative ones reverse the window.
    pub window_strides: Vec<isize>,
    /// From one input channel of a group to the next, in elements.
    pub input_stride: usize,
    /// From one output channel to the next, in elements.
    pub output_stride: usize,
}

// SAFETY: weights are read only, and the caller guarantees that nothing writes to them during the call.
unsafe impl Sync for Weights {}

/// The weights of the group whose first output channel is `first`, a matrix for each tap of a window of sizes `window`.
pub(super) fn taps_of_group(weights: &Weights, window: &[usize], first: usize) -> Vec<Operand> {
    let bytes = weights.element.byte_width();
    let step = |elements: isize| elements.wrapping_mul(bytes as isize);
    let base = weights.data.wrapping_offset(step((first * weights.output_stride) as isize));
    let taps: usize = window.iter().product();
    let operand = |tap: usize| {
        let mut left = tap;
        let mut data = base;
        for (size, stride) in window.iter().zip(&weights.window_strides).rev() {
            data = data.wrapping_offset(step((left % size) as isize * stride));
            left /= size;
        }
        Operand {
            data,
            element: weights.element,
            row_stride: weights.input_stride,
            column_stride: weights.output_stride,
        }
    };
    (0..taps).map(operand).collect()
}
