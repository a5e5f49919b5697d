//! Convolutions.

use warpforge_ir::Attribute;
use warpforge_ir::attr::{ConvDims, DenseElements};

use super::prelude::*;
use crate::lower::refusal::Refusal;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[
    op("aten._convolution.default", |cx, args| {
        args.ignore(&["benchmark", "deterministic", "cudnn_enabled", "allow_tf32"]);
        general(cx, args)
    }),
    op("aten.conv1d.default", |cx, args| forward(cx, args, 1)).also(&["aten.conv1d.padding"]),
    op("aten.conv2d.default", |cx, args| forward(cx, args, 2)).also(&["aten.conv2d.padding"]),
    op("aten.conv3d.default", |cx, args| forward(cx, args, 3)).also(&["aten.conv3d.padding"]),
    op("aten.conv_transpose1d.default", |cx, args| transposed(cx, args, 1)),
    op("aten.conv_transpose2d.input", |cx, args| transposed(cx, args, 2)),
    op("aten.conv_transpose3d.input", |cx, args| transposed(cx, args, 3)),
    op("aten.convolution.default", general),
];

/// How a convolution moves over its input.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Distance of windows.
    pub(super) strides: Vec<i64>,
    /// Elements added before and after.
    pub(super) padding: Vec<(i64, i64)>,
    /// Distance of the input's elements.
    pub(super) input_dilation: Vec<i64>,
    /// Distance of the kernel's elements.
    pub(super) kernel_dilation: Vec<i64>,
    /// Groups of features.
    pub(super) groups: i64,
}

fn general(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let spatial = args.tensor("weight")?.rank().saturating_sub(2);
    if args.bool_or("transposed", false)? {
        return transposed(cx, args, spatial);
    }
    if args.opt_ints("output_padding")?.is_some_and(|padding| padding.iter().any(|&size| size != 0)) {
        return refuse("an output padding of a convolution that is not transposed");
    }
    forward(cx, args, spatial)
}

fn forward(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (x, weight, bias) = (args.tensor("input")?, args.tensor("weight")?, args.opt_tensor("bias")?);
    let strides = args.ints_for("stride", spatial, 1)?;
    let dilation = args.ints_for("dilation", spatial, 1)?;
    let padding = match args.get("padding") {
        Some(Value::Str(mode)) => named_padding(cx, mode, &weight, &dilation)?,
        _ => args.ints_for("padding", spatial, 0)?.into_iter().map(|size| (size, size)).collect(),
    };
    let window = Window {
        strides,
        padding,
        input_dilation: vec![1; spatial],
        kernel_dilation: dilation,
        groups: args.int_or("groups", 1)?,
    };
    batched(cx, &x, spatial, |cx, x| {
        let product = convolve(cx, x, &weight, &window, false)?;
        with_bias(cx, &product, bias.as_ref(), x.dtype)
    })
}

/// `same` pads so that the output is as large as the input, with what cannot be halved at the end.
fn named_padding(cx: &Cx<'_>, mode: &str, weight: &Tensor, dilation: &[i64]) -> Lowered<Vec<(i64, i64)>> {
    let kernel = cx.known(weight.dims.get(2..).unwrap_or_default())?;
    match mode {
        "valid" => Ok(vec![(0, 0); kernel.len()]),
        "same" => Ok(kernel
            .iter()
            .zip(dilation)
            .map(|(&size, &distance)| {
                let total = distance * (size - 1);
                (total / 2, total - total / 2)
            })
            .collect()),
        other => refuse(format!("the padding `{other}`")),
    }
}

/// The gradient of a convolution by its input: windows that write instead of reading.
fn transposed(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (x, weight, bias) = (args.tensor("input")?, args.tensor("weight")?, args.opt_tensor("bias")?);
    let strides = args.ints_for("stride", spatial, 1)?;
    let dilation = args.ints_for("dilation", spatial, 1)?;
    let padding = args.ints_for("padding", spatial, 0)?;
    let output_padding = args.ints_for("output_padding", spatial, 0)?;
    let groups = args.int_or("groups", 1)?;
    let kernel = cx.known(weight.dims.get(2..).unwrap_or_default())?;
    if kernel.len() != spatial {
        return refuse(format!("a kernel of {} dimensions", weight.rank()));
    }
    let padding = (0..spatial)
        .map(|at| {
            let reach = dilation[at] * (kernel[at] - 1) - padding[at];
            (reach, reach + output_padding[at])
        })
        .collect();
    let window = Window {
        strides: vec![1; spatial],
        padding,
        input_dilation: strides,
        kernel_dilation: dilation,
        groups,
    };
    let flipped = transposed_kernel(cx, &weight, groups)?;
    batched(cx, &x, spatial, |cx, x| {
        let product = convolve(cx, x, &flipped, &window, true)?;
        with_bias(cx, &product, bias.as_ref(), x.dtype)
    })
}

/// `[in, out / groups, …]` to `[in / groups, out, …]`, reversed in space.
pub(super) fn transposed_kernel(cx: &mut Cx<'_>, weight: &Tensor, groups: i64) -> Lowered<Tensor> {
    let spatial: Vec<usize> = (2..weight.rank()).collect();
    let flipped = if spatial.is_empty() { weight.clone() } else { cx.reverse(weight, &spatial)? };
    if groups == 1 {
        return Ok(flipped);
    }
    let Some(each) = weight.dim(0).floor_div(&Size::Int(groups)) else { return refuse("no groups") };
    let mut split = vec![Size::Int(groups), each.clone(), weight.dim(1)];
    split.extend_from_slice(&weight.dims[2..]);
    let parts = cx.reshape(&flipped, &split)?;
    let mut order: Vec<usize> = (0..split.len()).collect();
    order.swap(0, 1);
    let transposed = cx.transpose(&parts, &order)?;
    let mut dims = vec![each, weight.dim(1).mul(&Size::Int(groups))];
    dims.extend_from_slice(&weight.dims[2..]);
    cx.reshape(&transposed, &dims)
}

/// PyTorch takes inputs without a batch dimension too.
fn batched(
    cx: &mut Cx<'_>,
    x: &Tensor,
    spatial: usize,
    compute: impl FnOnce(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    if x.rank() == spatial + 2 {
        return one(compute(cx, x)?);
    }
    if x.rank() != spatial + 1 {
        return refuse(format!("an input of {} dimensions", x.rank()));
    }
    let with_batch = cx.unsqueeze(x, 0)?;
    let result = compute(cx, &with_batch)?;
    let dims = result.dims[1..].to_vec();
    one(cx.reshape(&result, &dims)?)
}

fn with_bias(
    cx: &mut Cx<'_>,
    product: &Tensor,
    bias: Option<&Tensor>,
    dtype: ElementType,
) -> Lowered<Tensor> {
    let sum = match bias {
        None => product.clone(),
        Some(bias) => {
            let bias = cx.convert(bias, product.dtype)?;
            let bias = cx.broadcast(&bias, &product.dims.clone(), &[1])?;
            cx.add(product, &bias)?
        }
    };
    cx.convert(&sum, dtype)
}

/// The convolution itself, with sums in the type that PyTorch sums in. `swapped` kernels have the input's features first.
pub(super) fn convolve(
    cx: &mut Cx<'_>,
    x: &Tensor,
    weight: &Tensor,
    window: &Window,
    swapped: bool,
) -> Lowered<Tensor> {
    if x.dtype != weight.dtype {
        return refuse(format!("a convolution of {} with {}", x.dtype, weight.dtype));
    }
    let spatial = window.strides.len();
    if weight.rank() != spatial + 2 {
        return refuse(format!("a kernel of {} dimensions", weight.rank()));
    }
    let kernel = cx.known(&weight.dims[2..])?;
    let (features, inputs) = if swapped { (1, 0) } else { (0, 1) };
    let mut dims = vec![x.dim(0), weight.dim(features)];
    for (at, size) in kernel.iter().enumerate() {
        let spread = x.dim(at + 2).sub(&Size::Int(1)).mul(&Size::Int(window.input_dilation[at]));
        let (low, high) = window.padding[at];
        let reach = window.kernel_dilation[at] * (size - 1) + 1;
        let room = spread.add(&Size::Int(1 + low + high - reach));
        let Some(steps) = room.floor_div(&Size::Int(window.strides[at])) else {
            return refuse("a stride of 0");
        };
        dims.push(steps.add(&Size::Int(1)));
    }
    let places: Vec<i64> = (2..spatial as i64 + 2).collect();
    let numbers = ConvDims {
        input_batch: 0,
        input_feature: 1,
        input_spatial: places.clone(),
        kernel_input_feature: inputs as i64,
        kernel_output_feature: features as i64,
        kernel_spatial: places.clone(),
        output_batch: 0,
        output_feature: 1,
        output_spatial: places,
    };
    let padding: Vec<i64> = window.padding.iter().flat_map(|&(low, high)| [low, high]).collect();
    let padding =
        DenseElements::i64s(&[spatial as u64, 2], &padding).map_err(|error| Refusal(error.to_string()))?;
    let attrs = [
        ("window_strides", Attribute::i64s(window.strides.as_slice())),
        ("padding", padding.into()),
        ("lhs_dilation", Attribute::i64s(window.input_dilation.as_slice())),
        ("rhs_dilation", Attribute::i64s(window.kernel_dilation.as_slice())),
        ("dimension_numbers", Attribute::Conv(numbers.into())),
        ("feature_group_count", Attribute::i64(window.groups)),
        ("batch_group_count", Attribute::i64(1)),
    ];
    let dtype = opmath(x.dtype);
    let id = cx.b.op_as(OpKind::Convolution, &[x.id, weight.id], attrs, value_type(dtype, &dims))?;
    Ok(cx.tensor(id, dtype, dims))
}
