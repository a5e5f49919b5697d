//! Operations of detectors, as torchvision computes them on CPUs: RoIAlign, its gradient, and non-maximum suppression.
//!
//! Coordinates are rounded to the element type after every step, as torchvision's are: whether a sample is outside of the
//! image depends on it. Sums are of binary64 and rounded once.

use warpforge_ir::calls::{KnownCall, RoiAlign};
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use crate::Value;
use crate::cx::Cx;
use crate::error::{Result, invalid};

/// Evaluates a call of this file.
pub(super) fn evaluate(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let call =
        KnownCall::of(cx.op).ok_or_else(|| invalid("the call lacks a setting, or its types do not fit"))?;
    let (element, shape) = (cx.result_element(0)?, cx.result_shape(0)?);
    let (first, second) = (cx.tensor(0)?, cx.tensor(1)?);
    let values = match call {
        KnownCall::RoiAlign(align) => forward(align, first, second, &shape),
        KnownCall::RoiAlignBackward(align) => backward(align, first, second, &shape),
        KnownCall::Nms { iou_threshold } => suppress(first, second, iou_threshold),
    };
    Ok(vec![Tensor::from_scalars(element, shape, values)?.into()])
}

/// Rounds to an element type.
fn rounding(element: ElementType) -> fn(f64) -> f64 {
    match element {
        ElementType::F32 => |value| f64::from(value as f32),
        _ => |value| value,
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.iter().map(Scalar::to_f64).collect()
}

/// One axis of a region: where its bins begin and how large they are.
struct Axis {
    start: f64,
    bin: f64,
    /// The samples of a bin.
    samples: f64,
    /// The elements of the features.
    size: usize,
    round: fn(f64) -> f64,
}

impl Axis {
    /// The elements, with their parts, that the samples of a bin are interpolated from.
    fn samples(&self, bin: usize) -> Vec<[(usize, f64); 2]> {
        let round = self.round;
        let place = |sample: f64| {
            let offset = round(round(sample + 0.5) * self.bin);
            let begins = round(self.start + round(bin as f64 * self.bin));
            round(begins + round(offset / self.samples))
        };
        // Samples outside of the features count as zero. Only as many as fit beside the features are looked at: a region may be of
        // any size.
        let step = self.bin / self.samples;
        let begins = self.start + bin as f64 * self.bin;
        let (mut first, mut count) = (0.0, self.samples);
        if step > 0.0 {
            first = ((-2.0 - begins) / step).floor().max(0.0);
            count = (self.samples - first).min(((self.size as f64 + 4.0) / step).ceil() + 2.0);
        }
        let count = if count.is_finite() { count as usize } else { 0 };
        let mut found = Vec::new();
        for sample in 0..count {
            let at = place(first + sample as f64);
            if at < -1.0 || at > self.size as f64 {
                continue;
            }
            let at = at.max(0.0);
            let low = at as usize;
            found.push(if low + 1 >= self.size {
                [(self.size - 1, 1.0), (self.size - 1, 0.0)]
            } else {
                let part = round(at - low as f64);
                [(low, round(1.0 - part)), (low + 1, part)]
            });
        }
        found
    }
}

/// A region: the image that it is of, and its axes.
struct Region {
    image: Option<usize>,
    rows: Axis,
    columns: Axis,
    /// The samples of a bin.
    count: f64,
}

impl Region {
    fn new(
        align: RoiAlign,
        region: &[f64],
        sizes: [usize; 3],
        bins: [usize; 2],
        round: fn(f64) -> f64,
    ) -> Self {
        let [images, height, width] = sizes;
        let scale = round(align.spatial_scale);
        let offset = if align.aligned { 0.5 } else { 0.0 };
        let place = |value: f64| round(round(value * scale) - offset);
        let axis = |start: f64, end: f64, size: usize, bins: usize| {
            let (start, end) = (place(start), place(end));
            let length = round(end - start);
            let length = if align.aligned { length } else { length.max(1.0) };
            let bin = round(length / bins as f64);
            let samples = align.sampling_ratio.map_or_else(|| bin.ceil().max(0.0), f64::from);
            Axis { start, bin, samples, size, round }
        };
        let rows = axis(region[2], region[4], height, bins[0]);
        let columns = axis(region[1], region[3], width, bins[1]);
        let image = region[0].trunc();
        let image = (image >= 0.0 && image < images as f64).then_some(image as usize);
        let count = (rows.samples * columns.samples).max(1.0);
        Self { image, rows, columns, count }
    }

    /// The elements of a plane, with their parts, that a bin is the sum of.
    fn elements(&self, row: usize, column: usize) -> Vec<(usize, f64)> {
        let (down, across) = (self.rows.samples(row), self.columns.samples(column));
        let mut found = Vec::new();
        for below in &down {
            for beside in &across {
                for (y, of_row) in below {
                    for (x, of_column) in beside {
                        let part = (self.rows.round)(of_row * of_column);
                        found.push((y * self.columns.size + x, part));
                    }
                }
            }
        }
        found
    }
}

/// Sizes of features and of what is pooled from them.
struct Sizes {
    images: usize,
    channels: usize,
    height: usize,
    width: usize,
    bins: [usize; 2],
}

impl Sizes {
    fn new(features: &[usize], pooled: &[usize]) -> Self {
        Self {
            images: features[0],
            channels: features[1],
            height: features[2],
            width: features[3],
            bins: [pooled[2], pooled[3]],
        }
    }

    /// Calls a function with each bin: its place in the pooled values, the place of its plane in the features, its elements
    /// and their number.
    fn each_bin(
        &self,
        align: RoiAlign,
        regions: &Tensor,
        mut visit: impl FnMut(usize, usize, &[(usize, f64)], f64),
    ) {
        let round = rounding(regions.element_type());
        let sizes = [self.images, self.height, self.width];
        let [rows, columns] = self.bins;
        for (index, region) in numbers(regions).chunks_exact(5).enumerate() {
            let region = Region::new(align, region, sizes, self.bins, round);
            let Some(image) = region.image else { continue };
            for row in 0..rows {
                for column in 0..columns {
                    let elements = region.elements(row, column);
                    for channel in 0..self.channels {
                        let bin = ((index * self.channels + channel) * rows + row) * columns + column;
                        let plane = (image * self.channels + channel) * self.height * self.width;
                        visit(bin, plane, &elements, region.count);
                    }
                }
            }
        }
    }
}

fn forward(align: RoiAlign, features: &Tensor, regions: &Tensor, result: &Shape) -> Vec<Scalar> {
    let sizes = Sizes::new(features.dims(), result.dims());
    let values = numbers(features);
    let mut pooled = vec![0.0; result.num_elements()];
    sizes.each_bin(align, regions, |bin, plane, elements, count| {
        let sum: f64 = elements.iter().map(|&(place, part)| part * values[plane + place]).sum();
        pooled[bin] = sum / count;
    });
    pooled.into_iter().map(Scalar::Float).collect()
}

fn backward(align: RoiAlign, gradient: &Tensor, regions: &Tensor, result: &Shape) -> Vec<Scalar> {
    let sizes = Sizes::new(result.dims(), gradient.dims());
    let values = numbers(gradient);
    let mut features = vec![0.0; result.num_elements()];
    sizes.each_bin(align, regions, |bin, plane, elements, count| {
        for &(place, part) in elements {
            features[plane + place] += part * values[bin] / count;
        }
    });
    features.into_iter().map(Scalar::Float).collect()
}

/// The places of the boxes that are kept, then -1.
fn suppress(boxes: &Tensor, scores: &Tensor, threshold: f64) -> Vec<Scalar> {
    let round = rounding(boxes.element_type());
    let (boxes, scores) = (numbers(boxes), numbers(scores));
    let boxes: Vec<&[f64]> = boxes.chunks_exact(4).collect();
    let area = |of: &[f64]| round(round(of[2] - of[0]) * round(of[3] - of[1]));
    let overlap = |a: &[f64], b: &[f64]| {
        let width = round(a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
        let height = round(a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
        let both = round(width * height);
        round(both / round(round(area(a) + area(b)) - both))
    };
    // From the highest score down, NaN first; equal ones keep their order.
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (scores[a], scores[b]);
        b.partial_cmp(&a).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
    });
    let mut kept: Vec<usize> = Vec::new();
    for index in order {
        // An overlap that is not a number suppresses nothing.
        if !kept.iter().any(|&better| overlap(boxes[better], boxes[index]) > threshold) {
            kept.push(index);
        }
    }
    let kept = kept.into_iter().map(|index| Scalar::Int(index as i128));
    kept.chain(std::iter::repeat(Scalar::Int(-1))).take(boxes.len()).collect()
}
