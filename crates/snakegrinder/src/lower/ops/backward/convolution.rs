//! The gradients of a convolution.

use warpforge_ir::Attribute;
use warpforge_ir::attr::{ConvDims, DenseElements};

use super::super::convolution::{Window, convolve, transposed_kernel};
use super::super::prelude::*;
use crate::lower::refusal::Refusal;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[op("aten.convolution_backward.default", backward)];

/// The settings of the convolution that the gradients are of.
struct Settings {
    strides: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
}

/// The gradients by input, kernel and bias.
fn backward(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x, weight) = (args.tensor("grad_output")?, args.tensor("input")?, args.tensor("weight")?);
    let spatial = weight.rank().saturating_sub(2);
    let settings = Settings {
        strides: args.ints_for("stride", spatial, 1)?,
        padding: args.ints_for("padding", spatial, 0)?,
        dilation: args.ints_for("dilation", spatial, 1)?,
        groups: args.int_or("groups", 1)?,
    };
    let transposed = args.bool_or("transposed", false)?;
    // The shapes say what these do.
    args.ignore(&["bias_sizes", "output_padding"]);
    let asked = args.bools("output_mask")?;
    if x.rank() != spatial + 2 || g.rank() != spatial + 2 {
        return refuse(format!("the gradient of a convolution of {} dimensions", x.rank()));
    }
    let mut outcome = vec![Value::None, Value::None, Value::None];
    let [by_input, by_weight, by_bias] = outcome.as_mut_slice() else { return refuse("no gradients") };
    if asked.first() == Some(&true) {
        let gradient = if transposed {
            convolve(cx, &g, &weight, &settings.forward(), false)?
        } else {
            let kernel = transposed_kernel(cx, &weight, settings.groups)?;
            convolve(cx, &g, &kernel, &settings.backward(cx, &x, &g, &weight)?, true)?
        };
        *by_input = cx.convert(&gradient, x.dtype)?.into();
    }
    if asked.get(1) == Some(&true) {
        // A transposed convolution reads where the plain one writes.
        let (read, written) = if transposed { (&g, &x) } else { (&x, &g) };
        let gradient = by_kernel(cx, read, written, &weight, &settings)?;
        *by_weight = cx.convert(&gradient, weight.dtype)?.into();
    }
    if asked.get(2) == Some(&true) {
        let axes: Vec<usize> = (0..g.rank()).filter(|&axis| axis != 1).collect();
        let wide = cx.convert(&g, opmath(g.dtype))?;
        let total = cx.sum(&wide, &axes)?;
        *by_bias = cx.convert(&total, g.dtype)?.into();
    }
    Ok(outcome)
}

impl Settings {
    fn forward(&self) -> Window {
        Window {
            strides: self.strides.clone(),
            padding: self.padding.iter().map(|&size| (size, size)).collect(),
            input_dilation: vec![1; self.strides.len()],
            kernel_dilation: self.dilation.clone(),
            groups: self.groups,
        }
    }

    /// From the gradient of the output to the gradient of the input, which has the input's size.
    fn backward(&self, cx: &Cx<'_>, x: &Tensor, g: &Tensor, weight: &Tensor) -> Lowered<Window> {
        let kernel = cx.known(&weight.dims[2..])?;
        let mut padding = Vec::with_capacity(kernel.len());
        for (at, size) in kernel.iter().enumerate() {
            let reach = self.dilation[at] * (size - 1);
            let low = reach - self.padding[at];
            let spread = g.dim(at + 2).sub(&Size::Int(1)).mul(&Size::Int(self.strides[at]));
            let high = x.dim(at + 2).sub(&spread).add(&Size::Int(reach - 1 - low));
            padding.push((low, cx.known(&[high])?[0]));
        }
        Ok(Window {
            strides: vec![1; kernel.len()],
            padding,
            input_dilation: self.strides.clone(),
            kernel_dilation: self.dilation.clone(),
            groups: self.groups,
        })
    }
}

/// The gradient by the kernel: a convolution in which the batch is summed over and the gradient of the output is the
/// kernel.
fn by_kernel(
    cx: &mut Cx<'_>,
    x: &Tensor,
    g: &Tensor,
    weight: &Tensor,
    settings: &Settings,
) -> Lowered<Tensor> {
    let spatial = settings.strides.len();
    let kernel = cx.known(&weight.dims[2..])?;
    let mut padding = Vec::with_capacity(2 * spatial);
    for (at, window) in kernel.iter().enumerate().take(spatial) {
        let sizes = cx.known(&[x.dim(at + 2), g.dim(at + 2)])?;
        let span = settings.strides[at] * (sizes[1] - 1) + 1;
        let low = settings.padding[at];
        padding.extend([low, settings.dilation[at] * (window - 1) + span - sizes[0] - low]);
    }
    let padding =
        DenseElements::i64s(&[spatial as u64, 2], &padding).map_err(|error| Refusal(error.to_string()))?;
    let places: Vec<i64> = (2..spatial as i64 + 2).collect();
    let numbers = ConvDims {
        input_batch: 1,
        input_feature: 0,
        input_spatial: places.clone(),
        kernel_input_feature: 0,
        kernel_output_feature: 1,
        kernel_spatial: places.clone(),
        output_batch: 1,
        output_feature: 0,
        output_spatial: places,
    };
    let attrs = [
        ("window_strides", Attribute::i64s(settings.dilation.as_slice())),
        ("padding", padding.into()),
        ("lhs_dilation", Attribute::i64s(vec![1; spatial])),
        ("rhs_dilation", Attribute::i64s(settings.strides.as_slice())),
        ("dimension_numbers", Attribute::Conv(numbers.into())),
        ("feature_group_count", Attribute::i64(1)),
        ("batch_group_count", Attribute::i64(settings.groups)),
    ];
    let dtype = opmath(x.dtype);
    let g = cx.convert(g, x.dtype)?;
    let id = cx.b.op_as(OpKind::Convolution, &[x.id, g.id], attrs, value_type(dtype, &weight.dims))?;
    Ok(cx.tensor(id, dtype, weight.dims.clone()))
}
