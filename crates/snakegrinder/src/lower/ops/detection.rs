//! Operations of torchvision's detectors: RoIAlign, its gradient, and non-maximum suppression. Each is a custom call that the
//! engines have kernels for: see [`warpforge_ir::calls`].

use warpforge_ir::calls::{KnownCall, RoiAlign};

use super::prelude::*;
use crate::lower::value::tensor_type;

pub(super) const TABLE: &[Op] = &[
    op("torchvision._roi_align_backward.default", backward),
    op("torchvision.nms.default", nms),
    op("torchvision.roi_align.default", forward),
];

/// A call of two tensors that gives one of a type.
fn call(
    cx: &mut Cx<'_>,
    call: KnownCall,
    operands: [&Tensor; 2],
    dtype: ElementType,
    dims: &[Size],
) -> Lowered<Tensor> {
    for operand in operands {
        cx.known(&operand.dims)?;
        if !matches!(operand.dtype, ElementType::F32 | ElementType::F64) {
            return refuse(format!("regions of {}", operand.dtype));
        }
    }
    if operands[0].dtype != operands[1].dtype {
        return refuse("regions of another type than what they are of");
    }
    let operands = operands.map(|operand| operand.id);
    let ty = tensor_type(dtype, dims).into();
    let id = cx.b.op_as(OpKind::CustomCall, &operands, call.attributes(), ty)?;
    Ok(cx.tensor(id, dtype, dims))
}

/// The arguments that both directions have: how features are read, and the bins.
fn align(args: &Args<'_>) -> Lowered<(RoiAlign, [Size; 2])> {
    const MOST_SAMPLES: i64 = 256;
    let ratio = args.int("sampling_ratio")?;
    if ratio > MOST_SAMPLES {
        return refuse(format!("{ratio} samples of a bin along each side"));
    }
    let align = RoiAlign {
        spatial_scale: args.float_or("spatial_scale", 1.0)?,
        sampling_ratio: u32::try_from(ratio).ok().filter(|&ratio| ratio > 0),
        aligned: args.bool_or("aligned", false)?,
    };
    let bins = [args.size("pooled_height")?, args.size("pooled_width")?];
    if bins.iter().any(|size| size.as_int().is_none_or(|size| size < 1)) {
        return refuse("a number of bins that is not known, or none");
    }
    Ok((align, bins))
}

/// Regions as a list of five numbers each.
fn regions(args: &Args<'_>) -> Lowered<Tensor> {
    let regions = args.tensor("rois")?;
    if regions.rank() != 2 || !regions.dim(1).is(5) {
        return refuse("regions that are not five numbers each");
    }
    Ok(regions)
}

fn forward(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (features, regions) = (args.tensor("input")?, regions(args)?);
    let (align, [rows, columns]) = align(args)?;
    if features.rank() != 4 || features.dim(2).is(0) || features.dim(3).is(0) {
        return refuse("features that are no images");
    }
    let dims = [regions.dim(0), features.dim(1), rows, columns];
    one(call(cx, KnownCall::RoiAlign(align), [&features, &regions], features.dtype, &dims)?)
}

fn backward(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (gradient, regions) = (args.tensor("grad")?, regions(args)?);
    let (align, [rows, columns]) = align(args)?;
    let dims = [args.size("batch_size")?, args.size("channels")?, args.size("height")?, args.size("width")?];
    let sizes = cx.known(&dims)?;
    if sizes[..2].iter().any(|&size| size < 0) || sizes[2..].iter().any(|&size| size < 1) {
        return refuse("features that are no images");
    }
    if *gradient.dims != [regions.dim(0), dims[1].clone(), rows, columns] {
        return refuse("a gradient that is not of the regions' bins");
    }
    one(call(cx, KnownCall::RoiAlignBackward(align), [&gradient, &regions], gradient.dtype, &dims)?)
}

/// The places of the boxes that are kept. PyTorch's result has as many elements as boxes are kept, which only the data says;
/// here it has as many as there are boxes, the rest of them -1.
fn nms(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (boxes, scores) = (args.tensor("dets")?, args.tensor("scores")?);
    let threshold = args.float_or("iou_threshold", 0.5)?;
    if boxes.rank() != 2 || !boxes.dim(1).is(4) || *scores.dims != [boxes.dim(0)] {
        return refuse("boxes that are not four numbers and a score each");
    }
    if let Some(reader) = args.readers(0).find(|target| !target.ends_with("aten.sym_size.int")) {
        return refuse(format!(
            "how many boxes are kept depends on the data, and {reader} uses them; make the places of the boxes an output of \
             the graph, which has -1 after the last"
        ));
    }
    let dims = [boxes.dim(0)];
    let call =
        call(cx, KnownCall::Nms { iou_threshold: threshold }, [&boxes, &scores], ElementType::I64, &dims);
    one(call?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::I64, Given::*, evaluated};

    #[test]
    fn the_boxes_that_are_kept_come_first_and_the_rest_is_minus_one() {
        let boxes = vec![0.0, 0.0, 10.0, 10.0, 0.0, 0.0, 10.0, 9.0, 20.0, 0.0, 30.0, 10.0];
        let arguments = vec![
            ("dets", Floats(&[3, 4], boxes)),
            ("scores", Floats(&[3], vec![0.5, 0.9, 0.7])),
            ("iou_threshold", Plain(json!({"as_float": 0.5}))),
        ];
        assert_eq!(evaluated("torchvision.nms.default", arguments, &[(I64, &[3])]), [[1.0, 2.0, -1.0]]);
    }
}
