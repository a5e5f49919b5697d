//! Operations of detectors on regions of images: RoIAlign, its gradient, and non-maximum suppression.

mod align;
mod suppress;

use warpforge_ir::calls::KnownCall;
use warpforge_tensor::{ElementType, FloatType};

use super::element_kernel::UnfusedKernel;
use crate::kernel::{Emitted, Unsupported};

pub(super) fn emit(kernel: &UnfusedKernel<'_>, call: KnownCall) -> Result<Emitted, Unsupported> {
    match call {
        KnownCall::RoiAlign(align) => align::forward(kernel, align),
        KnownCall::RoiAlignBackward(align) => align::backward(kernel, align),
        KnownCall::Nms { iou_threshold } => suppress::emit(kernel, iou_threshold),
    }
}

/// The type that numbers of this element type are stored and computed in.
fn float_type(kernel: &UnfusedKernel<'_>) -> Result<&'static str, Unsupported> {
    match kernel.element(0)? {
        ElementType::Float(FloatType::F32) => Ok("float"),
        ElementType::Float(FloatType::F64) => Ok("double"),
        _ => Err(kernel.unsupported()),
    }
}
