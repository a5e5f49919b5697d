//! Operations of detectors on regions of images: RoIAlign, its gradient, and non-maximum suppression.

mod align;
mod suppress;

use warpforge_ir::calls::KnownCall;

use super::element_kernel::UnfusedKernel;
use crate::kernel::{Emitted, Unsupported};

pub(super) fn emit(kernel: &UnfusedKernel<'_>, call: KnownCall) -> Result<Emitted, Unsupported> {
    match call {
        KnownCall::RoiAlign(align) => align::forward(kernel, align),
        KnownCall::RoiAlignBackward(align) => align::backward(kernel, align),
        KnownCall::Nms { iou_threshold } => suppress::emit(kernel, iou_threshold),
    }
}
