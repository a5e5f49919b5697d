//! Gradients of normalisations.

use super::super::prelude::*;
use super::super::reduction::mean_of;
use super::masked;

pub(super) const TABLE: &[Op] = &[
    op("aten.native_batch_norm_backward.default", batch_norm),
    op("aten.native_group_norm_backward.default", group_norm),
    op("aten.native_layer_norm_backward.default", layer_norm),
];

/// The gradient by `x` of `(x - mean(x)) / deviation(x)` along dimensions, from that of the normalised values.
fn by_input(
    cx: &mut Cx<'_>,
    g: &Tensor,
    normal: &Tensor,
    inverse: &Tensor,
    axes: &[usize],
) -> Lowered<Tensor> {
    let mean = mean_of(cx, g, axes)?;
    let mean = cx.spread(&mean, &g.dims, axes)?;
    let centred = cx.sub(g, &mean)?;
    let product = cx.mul(g, normal)?;
    let part = mean_of(cx, &product, axes)?;
    let part = cx.spread(&part, &g.dims, axes)?;
    let part = cx.mul(normal, &part)?;
    let rest = cx.sub(&centred, &part)?;
    cx.mul(&rest, inverse)
}

/// `(x - mean) * inverse`, with the inverse deviation in the shape of `x`.
fn normalized(cx: &mut Cx<'_>, x: &Tensor, mean: &Tensor, inverse: &Tensor) -> Lowered<Tensor> {
    let distance = cx.sub(x, mean)?;
    cx.mul(&distance, inverse)
}

/// `g` times the weight along some dimensions, if there is one.
fn weighted(cx: &mut Cx<'_>, g: &Tensor, weight: Option<&Tensor>, map: &[usize]) -> Lowered<Tensor> {
    match weight {
        None => Ok(g.clone()),
        Some(weight) => {
            let weight = cx.convert(weight, g.dtype)?;
            let weight = cx.broadcast(&weight, &g.dims, map)?;
            cx.mul(g, &weight)
        }
    }
}

/// The gradients by input, weight and bias in the types that these have.
fn finished(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    gradients: [Tensor; 3],
    input: &Tensor,
    weight: Option<&Tensor>,
) -> Lowered<Outcome> {
    let own = weight.map_or(input.dtype, |weight| weight.dtype);
    let [input_gradient, weight_gradient, bias_gradient] = gradients;
    let gradients = [
        cx.convert(&input_gradient, input.dtype)?,
        cx.convert(&weight_gradient, own)?,
        cx.convert(&bias_gradient, own)?,
    ];
    masked(args, gradients)
}

fn batch_norm(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x, weight) = (args.tensor("grad_out")?, args.tensor("input")?, args.opt_tensor("weight")?);
    let training = args.bool_or("train", false)?;
    let eps = args.float_or("eps", 1e-5)?;
    let running = (args.opt_tensor("running_mean")?, args.opt_tensor("running_var")?);
    let saved = (args.opt_tensor("save_mean")?, args.opt_tensor("save_invstd")?);
    if x.rank() < 2 {
        return refuse("channels of something that has none");
    }
    let dtype = opmath(x.dtype);
    let (g, wide) = (cx.convert(&g, dtype)?, cx.convert(&x, dtype)?);
    let axes: Vec<usize> = (0..x.rank()).filter(|&axis| axis != 1).collect();
    let (mean, inverse) = match (training, saved, running) {
        (true, (Some(mean), Some(inverse)), _) => (cx.convert(&mean, dtype)?, cx.convert(&inverse, dtype)?),
        (false, _, (Some(mean), Some(variance))) => {
            let variance = cx.convert(&variance, dtype)?;
            let shifted = cx.with_number(OpKind::Add, &variance, eps)?;
            (cx.convert(&mean, dtype)?, cx.unary(OpKind::Rsqrt, &shifted)?)
        }
        _ => return refuse("neither saved nor running statistics"),
    };
    let (mean, inverse) = (cx.spread(&mean, &x.dims, &axes)?, cx.spread(&inverse, &x.dims, &axes)?);
    let normal = normalized(cx, &wide, &mean, &inverse)?;
    let inner = weighted(cx, &g, weight.as_ref(), &[1])?;
    let input_gradient =
        if training { by_input(cx, &inner, &normal, &inverse, &axes)? } else { cx.mul(&inner, &inverse)? };
    let product = cx.mul(&g, &normal)?;
    let gradients = [input_gradient, cx.sum(&product, &axes)?, cx.sum(&g, &axes)?];
    finished(cx, args, gradients, &x, weight.as_ref())
}

fn layer_norm(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_out")?, args.tensor("input")?);
    let (mean, inverse) = (args.tensor("mean")?, args.tensor("rstd")?);
    let weight = args.opt_tensor("weight")?;
    args.ignore(&["bias"]);
    let Some(lead) = x.rank().checked_sub(args.sizes("normalized_shape")?.len()) else {
        return refuse("more dimensions to normalise than there are");
    };
    let (outer, inner): (Vec<usize>, Vec<usize>) = (0..x.rank()).partition(|&axis| axis < lead);
    let dtype = opmath(x.dtype);
    let [g, wide, mean, inverse] = [&g, &x, &mean, &inverse].map(|tensor| cx.convert(tensor, dtype));
    let (g, wide) = (g?, wide?);
    let (mean, inverse) = (cx.expand_to(&mean?, &x.dims)?, cx.expand_to(&inverse?, &x.dims)?);
    let normal = normalized(cx, &wide, &mean, &inverse)?;
    let scaled = weighted(cx, &g, weight.as_ref(), &inner)?;
    let product = cx.mul(&g, &normal)?;
    let gradients =
        [by_input(cx, &scaled, &normal, &inverse, &inner)?, cx.sum(&product, &outer)?, cx.sum(&g, &outer)?];
    finished(cx, args, gradients, &x, weight.as_ref())
}

fn group_norm(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_out")?, args.tensor("input")?);
    let (mean, inverse) = (args.tensor("mean")?, args.tensor("rstd")?);
    let weight = args.opt_tensor("weight")?;
    let groups = args.int("group")?;
    // The sizes repeat what the input's shape says.
    args.ignore(&["N", "C", "HxW"]);
    if x.rank() < 2 {
        return refuse("channels of something that has none");
    }
    let Some(each) = x.dim(1).floor_div(&Size::Int(groups)) else { return refuse("no groups") };
    let split = [x.dim(0), Size::Int(groups), each, Size::product(&x.dims[2..])];
    let dtype = opmath(x.dtype);
    let [g, wide] = [&g, &x].map(|tensor| {
        let tensor = cx.convert(tensor, dtype)?;
        cx.reshape(&tensor, &split)
    });
    let (g, wide) = (g?, wide?);
    let inner = [2, 3];
    let [mean, inverse] = [&mean, &inverse].map(|tensor| {
        let tensor = cx.convert(tensor, dtype)?;
        cx.spread(&tensor, &split, &inner)
    });
    let (mean, inverse) = (mean?, inverse?);
    let normal = normalized(cx, &wide, &mean, &inverse)?;
    let weight_split = match &weight {
        None => None,
        Some(weight) => Some(cx.reshape(weight, &split[1..3])?),
    };
    let scaled = weighted(cx, &g, weight_split.as_ref(), &[1, 2])?;
    let input_gradient = by_input(cx, &scaled, &normal, &inverse, &inner)?;
    let input_gradient = cx.reshape(&input_gradient, &x.dims)?;
    let product = cx.mul(&g, &normal)?;
    let [weight_gradient, bias_gradient] = [&product, &g].map(|tensor| {
        let total = cx.sum(tensor, &[0, 3])?;
        cx.reshape(&total, &[x.dim(1)])
    });
    finished(cx, args, [input_gradient, weight_gradient?, bias_gradient?], &x, weight.as_ref())
}
