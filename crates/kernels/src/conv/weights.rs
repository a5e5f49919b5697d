//! The weights of a convolution, packed group by group.

use warpforge_tensor::ElementType;

use super::winograd::Transformed;
use crate::gemm::{Gemm, GemmError, Operand, PackedRhs};
use crate::pool::Pool;

/// Weights in memory. The output channels of a group follow those of the group before it.
#[derive(Debug, Clone)]
pub struct Weights {
    /// The weight of the window's first element, the first input and the first output channel.
    pub data: *const u8,
    /// The type of the elements.
    pub element: ElementType,
    /// From one element of the window to the next along each spatial dimension, in elements; negative ones turn the
    /// window round.
    pub window_strides: Vec<isize>,
    /// From one input channel of a group to the next, in elements.
    pub input_stride: usize,
    /// From one output channel to the next, in elements.
    pub output_stride: usize,
}

// SAFETY: weights are read only, and who packs them promises that nobody writes to them meanwhile.
unsafe impl Sync for Weights {}

/// Weights as the kernels of one convolution read them.
#[derive(Debug)]
pub struct PackedWeights {
    pub(super) form: Form,
}

/// What weights have been made into.
#[derive(Debug)]
pub(super) enum Form {
    /// One operand for each group.
    Groups(Vec<PackedRhs>),
    /// Operands of the products that are fewer than the taps.
    Transformed(Transformed),
}

impl PackedWeights {
    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Groups(groups) => groups.iter().map(PackedRhs::bytes).sum(),
            Form::Transformed(weights) => weights.bytes(),
        }
    }
}

/// Packs the weights of one group: `taps` are the sizes of the window.
///
/// # Safety
///
/// The address is good for all elements of the window and so many channels.
pub(super) unsafe fn pack_group(
    gemm: &Gemm,
    weights: &Weights,
    window: &[usize],
    channels: usize,
    outputs: std::ops::Range<usize>,
    pool: Option<&Pool>,
) -> Result<PackedRhs, GemmError> {
    let bytes = weights.element.byte_width();
    let step = |elements: isize| elements.wrapping_mul(bytes as isize);
    let base = weights.data.wrapping_offset(step((outputs.start * weights.output_stride) as isize));
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
    let operands: Vec<Operand> = (0..taps).map(operand).collect();
    // SAFETY: as the caller promises for each tap.
    unsafe { gemm.pack_rhs_of(&operands, channels, outputs.len(), pool) }
}
