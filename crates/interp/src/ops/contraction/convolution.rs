//! Convolutions: sums over a window and the features of a group.

use warpforge_ir::attr::ConvDims;
use warpforge_tensor::{Scalar, Shape, Tensor};

use super::super::quantized::expressed;
use super::super::shape::padded;
use super::product::{Places, Product, Side};
use super::{finish, offsets, operands};
use crate::Value;
use crate::cx::{Cx, missing, to_usizes};
use crate::error::{Result, invalid};
use crate::native::lanes::{Window, WindowAxis};

pub(super) fn convolution(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let spatial = cx.op.conv_dims().ok_or_else(|| missing("dimension_numbers"))?.input_spatial.len();
    let padding = cx.pairs_or_zero("padding", spatial)?;
    convolved(cx, &padding)
}

pub(super) fn dynamic_conv(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let padding: Vec<(i64, i64)> =
        cx.operand_i64s(2)?.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    convolved(cx, &padding)
}

/// Dimension numbers as positions. A kernel has its output features where the others have batches.
struct Layout {
    batch: usize,
    feature: usize,
    spatial: Vec<usize>,
}

impl Layout {
    fn new(rank: usize, batch: i64, feature: i64, spatial: &[i64]) -> Result<Self> {
        let all = to_usizes(&[&[batch, feature], spatial].concat())?;
        let mut sorted = all.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank) {
            return Err(invalid("the dimension numbers of the convolution do not cover the dimensions"));
        }
        Ok(Self { batch: all[0], feature: all[1], spatial: all[2..].to_vec() })
    }

    fn spatial_sizes(&self, tensor: &Tensor) -> Vec<usize> {
        self.spatial.iter().map(|&axis| tensor.dims()[axis]).collect()
    }
}

/// How a window moves along one dimension.
#[derive(Clone, Copy)]
struct Motion {
    stride: i64,
    padding: (i64, i64),
    base_dilation: i64,
    window_dilation: i64,
    reversed: bool,
}

/// What the attributes of a convolution say.
struct Attributes {
    input: Layout,
    kernel: Layout,
    output: Layout,
    motions: Vec<Motion>,
    feature_groups: usize,
    batch_groups: usize,
}

impl Attributes {
    fn new(cx: &Cx<'_, '_, '_>, padding: &[(i64, i64)], ranks: (usize, usize)) -> Result<Self> {
        let dims: &ConvDims = cx.op.conv_dims().ok_or_else(|| missing("dimension_numbers"))?;
        let count = dims.input_spatial.len();
        let strides = cx.i64s_or("window_strides", count, 1)?;
        let lhs_dilation = cx.i64s_or("lhs_dilation", count, 1)?;
        let rhs_dilation = cx.i64s_or("rhs_dilation", count, 1)?;
        let reversal =
            cx.op.attr_bools("window_reversal").map_or_else(|| vec![false; count], <[bool]>::to_vec);
        let lists = [&strides, &lhs_dilation, &rhs_dilation];
        if padding.len() != count
            || reversal.len() != count
            || lists.iter().any(|list| list.iter().any(|&value| value < 1))
        {
            return Err(misfit());
        }
        let motion = |axis: usize| Motion {
            stride: strides[axis],
            padding: padding[axis],
            base_dilation: lhs_dilation[axis],
            window_dilation: rhs_dilation[axis],
            reversed: reversal[axis],
        };
        let groups = to_usizes(&[cx.i64("feature_group_count")?, cx.i64("batch_group_count")?])?;
        Ok(Self {
            input: Layout::new(ranks.0, dims.input_batch, dims.input_feature, &dims.input_spatial)?,
            kernel: Layout::new(
                ranks.1,
                dims.kernel_output_feature,
                dims.kernel_input_feature,
                &dims.kernel_spatial,
            )?,
            output: Layout::new(ranks.0, dims.output_batch, dims.output_feature, &dims.output_spatial)?,
            motions: (0..count).map(motion).collect(),
            feature_groups: groups[0],
            batch_groups: groups[1],
        })
    }

    /// The sizes of the result.
    fn output_sizes(&self, lhs: &Tensor, rhs: &Tensor) -> Result<Vec<i64>> {
        let (batches, features) = (lhs.dims()[self.input.batch], rhs.dims()[self.kernel.batch]);
        let groups = self.feature_groups.saturating_mul(self.batch_groups);
        let kernel_features = rhs.dims()[self.kernel.feature];
        if groups == 0
            || (self.feature_groups > 1 && self.batch_groups > 1)
            || kernel_features.checked_mul(self.feature_groups) != Some(lhs.dims()[self.input.feature])
            || !features.is_multiple_of(groups)
            || !batches.is_multiple_of(self.batch_groups)
        {
            return Err(misfit());
        }
        let mut sizes = vec![0; lhs.shape().rank()];
        sizes[self.output.batch] = (batches / self.batch_groups) as i64;
        sizes[self.output.feature] = features as i64;
        let (base, window) = (self.input.spatial_sizes(lhs), self.kernel.spatial_sizes(rhs));
        for (axis, motion) in self.motions.iter().enumerate() {
            let dilated = extent_of(base[axis], motion.base_dilation);
            let extent = extent_of(window[axis], motion.window_dilation);
            let padded = dilated.saturating_add(motion.padding.0).saturating_add(motion.padding.1);
            sizes[self.output.spatial[axis]] =
                if extent > padded { 0 } else { (padded - extent) / motion.stride + 1 };
        }
        Ok(sizes)
    }
}

fn misfit() -> crate::Error {
    invalid("the window or the groups of the convolution do not fit the operands")
}

/// The size of a dimension whose elements are spread apart.
fn extent_of(size: usize, dilation: i64) -> i64 {
    if size == 0 { 0 } else { (size as i64 - 1).saturating_mul(dilation).saturating_add(1) }
}

/// A convolution is a product of matrices for each group: output features by input positions, summed over the places of
/// the window and the features of the group.
fn convolved(cx: &mut Cx<'_, '_, '_>, padding: &[(i64, i64)]) -> Result<Vec<Value>> {
    let (lhs, rhs) = operands(cx)?;
    let attributes = Attributes::new(cx, padding, (lhs.shape().rank(), rhs.shape().rank()))?;
    let shape = cx.shape_from(&attributes.output_sizes(&lhs, &rhs)?)?;
    let element = expressed(cx.result_type(0)?)?;
    // Without elements there is nothing to sum, however long the dimensions beside the empty one are.
    if shape.num_elements() == 0 || lhs.is_empty() || rhs.is_empty() {
        return finish(cx, &Tensor::zeros(element, shape)?);
    }
    let lhs = dilated(cx, &attributes, lhs)?;
    let Attributes { kernel, output, .. } = &attributes;
    let groups = attributes.feature_groups * attributes.batch_groups;
    let features = rhs.dims()[kernel.batch] / groups;
    let in_order = |layout: &Layout| [layout.spatial.clone(), vec![layout.feature]].concat();
    let weights = Side {
        tensor: &rhs,
        batches: steps(groups, features * rhs.shape().strides()[kernel.batch]),
        lanes: steps(features, rhs.shape().strides()[kernel.batch]),
        depths: offsets(rhs.shape(), &in_order(kernel))?,
        window: None,
    };
    let images = images(&attributes, &lhs, &rhs, &shape)?;
    let places = Places {
        batches: steps(groups, features * shape.strides()[output.feature]),
        rows: steps(features, shape.strides()[output.feature]),
        columns: offsets(&shape, &[vec![output.batch], output.spatial.clone()].concat())?,
    };
    let product = Product { lhs: weights, rhs: images, places, element, shape };
    let result = product.compute(cx.machine)?;
    finish(cx, &result)
}

/// The input with zeros between its elements.
fn dilated(cx: &Cx<'_, '_, '_>, attributes: &Attributes, lhs: Tensor) -> Result<Tensor> {
    if attributes.motions.iter().all(|motion| motion.base_dilation == 1) {
        return Ok(lhs);
    }
    let rank = lhs.shape().rank();
    let mut interior = vec![0; rank];
    for (&axis, motion) in attributes.input.spatial.iter().zip(&attributes.motions) {
        interior[axis] = motion.base_dilation - 1;
    }
    let edges = vec![0; rank];
    padded(cx, &lhs, Scalar::zero(lhs.element_type()), (&edges, &edges, &interior))
}

fn steps(count: usize, step: usize) -> Vec<i64> {
    (0..count).map(|at| (at * step) as i64).collect()
}

/// The input as lanes: one for each place of the output in a batch, with the elements of its window.
fn images<'a>(attributes: &Attributes, lhs: &'a Tensor, rhs: &Tensor, out: &Shape) -> Result<Side<'a>> {
    let Attributes { input, kernel, output, .. } = attributes;
    let strides = lhs.shape().strides();
    let batch_size = lhs.dims()[input.batch] / attributes.batch_groups;
    let group_step = match attributes.batch_groups {
        1 => rhs.dims()[kernel.feature] * strides[input.feature],
        _ => batch_size * strides[input.batch],
    };
    let (window, base) = (kernel.spatial_sizes(rhs), input.spatial_sizes(lhs));
    // Lanes go through batches, then places; depths through the places of the window, then features.
    let spatial = output.spatial.iter().map(|&axis| out.dims()[axis]);
    let lane_shape = Shape::new([batch_size].into_iter().chain(spatial).collect::<Vec<_>>())?;
    let depth_shape =
        Shape::new(window.iter().copied().chain([rhs.dims()[kernel.feature]]).collect::<Vec<_>>())?;
    let mut lanes = Vec::with_capacity(lane_shape.num_elements());
    let mut depths = Vec::with_capacity(depth_shape.num_elements());
    let mut axes: Vec<WindowAxis> = Vec::new();
    for &size in &base {
        axes.push(WindowAxis { starts: Vec::new(), steps: Vec::new(), extent: size as i64 });
    }
    let mut indices = lane_shape.indices();
    while let Some(index) = indices.advance() {
        let mut offset = (index[0] * strides[input.batch]) as i64;
        for (axis, motion) in attributes.motions.iter().enumerate() {
            let start =
                (index[axis + 1] as i64).saturating_mul(motion.stride).saturating_sub(motion.padding.0);
            axes[axis].starts.push(start);
            // Far outside this says nothing, and nothing is read there.
            offset = offset.wrapping_add(start.wrapping_mul(strides[input.spatial[axis]] as i64));
        }
        lanes.push(offset);
    }
    let mut indices = depth_shape.indices();
    while let Some(index) = indices.advance() {
        let mut offset = (index[window.len()] * strides[input.feature]) as i64;
        for (axis, motion) in attributes.motions.iter().enumerate() {
            let at = if motion.reversed { window[axis] - 1 - index[axis] } else { index[axis] };
            let step = (at as i64).saturating_mul(motion.window_dilation);
            axes[axis].steps.push(step);
            offset = offset.wrapping_add(step.wrapping_mul(strides[input.spatial[axis]] as i64));
        }
        depths.push(offset);
    }
    Ok(Side {
        tensor: lhs,
        batches: steps(attributes.feature_groups * attributes.batch_groups, group_step),
        lanes,
        depths,
        window: Some(Window::new(axes)),
    })
}
