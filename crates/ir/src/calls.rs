//! Custom calls that have a meaning here: operations of detectors that StableHLO does not have.
//!
//! A call is `stablehlo.custom_call` with one of these targets and the typed interface (`api_version = 4`), whose
//! configuration is a dictionary:
//!
//! | target | operands | result |
//! | --- | --- | --- |
//! | `torchvision.roi_align` | features `[batch, channels, height, width]`, regions `[count, 5]` | `[count, channels, rows, columns]` |
//! | `torchvision.roi_align_backward` | the gradient of that result, regions | that of the features |
//! | `torchvision.nms` | boxes `[count, 4]`, scores `[count]` | `[count]` of 64-bit integers |
//!
//! A region is the number of its image, then left, top, right and bottom; one of an image that the batch does not have
//! gives zeros. `nms` gives the places of the boxes that are kept, highest score first, then -1.

use crate::{Attribute, Dict, ElementType, OpKind, OpRef, TensorType, Type};

const ROI_ALIGN: &str = "torchvision.roi_align";
const ROI_ALIGN_BACKWARD: &str = "torchvision.roi_align_backward";
const NMS: &str = "torchvision.nms";

/// The most samples of a bin along one side.
const MOST_SAMPLES: i64 = 256;

/// How RoIAlign reads features: the mean of samples in each bin of a region, each interpolated between four elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoiAlign {
    /// What the coordinates of regions are multiplied by to be those of the features.
    pub spatial_scale: f64,
    /// Samples of a bin along each side; none takes as many as there are elements.
    pub sampling_ratio: Option<u32>,
    /// Whether coordinates are of the centres of elements.
    pub aligned: bool,
}

/// A custom call that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnownCall {
    /// Features of regions.
    RoiAlign(RoiAlign),
    /// The gradient of the features.
    RoiAlignBackward(RoiAlign),
    /// Non-maximum suppression: boxes that overlap a better one by more than the threshold are left out.
    Nms {
        /// The greatest intersection over union.
        iou_threshold: f64,
    },
}

impl KnownCall {
    /// The call that an operation is: its target is known, its configuration complete, and its types fit.
    #[must_use]
    pub fn of(op: OpRef<'_>) -> Option<Self> {
        let target = op.attr_str("call_target_name").filter(|_| op.is(OpKind::CustomCall))?;
        let config = op.attr("backend_config").and_then(Attribute::as_dict)?;
        let float = |name: &str| match config.get(name) {
            Some(Attribute::Float(value, _)) => Some(*value),
            _ => None,
        };
        let align = || {
            let ratio = config.get("sampling_ratio").and_then(Attribute::as_i64)?;
            if ratio > MOST_SAMPLES {
                return None;
            }
            Some(RoiAlign {
                spatial_scale: float("spatial_scale")?,
                sampling_ratio: u32::try_from(ratio).ok().filter(|&ratio| ratio > 0),
                aligned: config.get("aligned").and_then(Attribute::as_bool)?,
            })
        };
        let call = match target {
            ROI_ALIGN => Self::RoiAlign(align()?),
            ROI_ALIGN_BACKWARD => Self::RoiAlignBackward(align()?),
            NMS => Self::Nms { iou_threshold: float("iou_threshold")? },
            _ => return None,
        };
        let operands = [op.operand_tensor(0)?, op.operand_tensor(1)?];
        let fits = op.operands().len() == 2 && op.result_count() == 1;
        (fits && call.fits(operands, op.result_tensor(0)?)?).then_some(call)
    }

    /// The target of the call.
    #[must_use]
    pub fn target(self) -> &'static str {
        match self {
            Self::RoiAlign(_) => ROI_ALIGN,
            Self::RoiAlignBackward(_) => ROI_ALIGN_BACKWARD,
            Self::Nms { .. } => NMS,
        }
    }

    /// The attributes of the operation.
    #[must_use]
    pub fn attributes(self) -> [(&'static str, Attribute); 3] {
        let float = |value: f64| Attribute::Float(value, Type::scalar(ElementType::F64));
        let mut config = Dict::new();
        match self {
            Self::RoiAlign(align) | Self::RoiAlignBackward(align) => {
                let ratio = align.sampling_ratio.map_or(-1, i64::from);
                config.set("spatial_scale", float(align.spatial_scale));
                config.set("sampling_ratio", Attribute::i64(ratio));
                config.set("aligned", Attribute::Bool(align.aligned));
            }
            Self::Nms { iou_threshold } => {
                config.set("iou_threshold", float(iou_threshold));
            }
        }
        [
            ("call_target_name", Attribute::string(self.target())),
            ("api_version", Attribute::i32(4)),
            ("backend_config", Attribute::Dict(config)),
        ]
    }

    /// Whether operands and result are of the types that the call has; none where a size is not known.
    fn fits(self, operands: [&TensorType; 2], result: &TensorType) -> Option<bool> {
        let element = operands[0].element().plain()?;
        let [first, second] = [operands[0].shape_usize()?, operands[1].shape_usize()?];
        let given = result.shape_usize()?;
        let floats = matches!(element, ElementType::F32 | ElementType::F64)
            && operands[1].element().plain() == Some(element);
        let of = |features: &[usize], pooled: &[usize]| match (features, pooled, &second[..]) {
            ([_, channels, height, width], [count, of_each, rows, columns], [regions, 5]) => {
                let same = count == regions && channels == of_each;
                same && [height, width, rows, columns].iter().all(|&&size| size > 0)
            }
            _ => false,
        };
        let same_element = result.element().plain() == Some(element);
        Some(match self {
            Self::RoiAlign(_) => floats && same_element && of(&first, &given),
            Self::RoiAlignBackward(_) => floats && same_element && of(&given, &first),
            Self::Nms { .. } => {
                let indices = result.element().plain() == Some(ElementType::I64);
                let [count, 4] = first[..] else { return Some(false) };
                floats && indices && second == [count] && given == [count]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;
    use crate::build::Builder;

    fn made(call: KnownCall, operands: [(&[u64], ElementType); 2], result: Type) -> Option<KnownCall> {
        let mut module = Module::new();
        let block = module.body();
        let values = operands.map(|(dims, element)| module.add_argument(block, Type::tensor(dims, element)));
        let mut builder = Builder::at(&mut module, block);
        let op = builder
            .create(OpKind::CustomCall, &values, call.attributes(), vec![], Some(&[result]))
            .expect("a valid call");
        KnownCall::of(module.op(op))
    }

    #[test]
    fn a_call_is_known_again_where_its_types_fit() {
        let f32 = ElementType::F32;
        let align = RoiAlign { spatial_scale: 0.25, sampling_ratio: Some(2), aligned: true };
        let (features, regions, pooled) = (&[2, 3, 8, 9][..], &[5, 5][..], &[5, 3, 7, 7][..]);
        let forward = KnownCall::RoiAlign(align);
        assert_eq!(
            made(forward, [(features, f32), (regions, f32)], Type::tensor(pooled, f32)),
            Some(forward)
        );
        let backward = KnownCall::RoiAlignBackward(RoiAlign { sampling_ratio: None, ..align });
        let given = made(backward, [(pooled, f32), (regions, f32)], Type::tensor(features, f32));
        assert_eq!(given, Some(backward));
        let nms = KnownCall::Nms { iou_threshold: 0.5 };
        let indices = Type::tensor(&[6], ElementType::I64);
        assert_eq!(made(nms, [(&[6, 4], f32), (&[6], f32)], indices.clone()), Some(nms));
        // Other sizes and types.
        assert_eq!(made(nms, [(&[6, 5], f32), (&[6], f32)], indices.clone()), None);
        assert_eq!(made(nms, [(&[6, 4], f32), (&[6], ElementType::F64)], indices), None);
        assert_eq!(made(forward, [(features, f32), (&[4, 5], f32)], Type::tensor(pooled, f32)), None);
        assert_eq!(made(forward, [(features, f32), (regions, f32)], Type::tensor(&[5, 3, 0, 7], f32)), None);
    }
}
