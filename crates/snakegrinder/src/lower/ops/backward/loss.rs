//! Gradients of losses.

use super::super::loss::{Chosen, Reduction};
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.binary_cross_entropy_backward.default", binary_cross_entropy),
    op("aten.huber_loss_backward.default", |cx, args| {
        let delta = args.float_or("delta", 1.0)?;
        by_difference(cx, args, |cx, x| {
            let low = cx.with_number(OpKind::Maximum, x, -delta)?;
            cx.with_number(OpKind::Minimum, &low, delta)
        })
    }),
    op("aten.mse_loss_backward.default", |cx, args| {
        by_difference(cx, args, |cx, x| cx.with_number(OpKind::Multiply, x, 2.0))
    }),
    op("aten.nll_loss2d_backward.default", nll_loss).also(&["aten.nll_loss_backward.default"]),
    op("aten.smooth_l1_loss_backward.default", |cx, args| {
        let beta = args.float_or("beta", 1.0)?;
        by_difference(cx, args, |cx, x| {
            let sign = cx.unary(OpKind::Sign, x)?;
            let slope = cx.with_number(OpKind::Divide, x, beta)?;
            let size = cx.unary(OpKind::Abs, x)?;
            let small = cx.compare_number(Cmp::Lt, &size, beta)?;
            cx.select(&small, &slope, &sign)
        })
    }),
    op("aten.soft_margin_loss_backward.default", |cx, args| {
        of_elements(cx, args, |cx, x, t| {
            let product = cx.mul(x, t)?;
            let negative = cx.neg(&product)?;
            let share = cx.unary(OpKind::Logistic, &negative)?;
            let slope = cx.mul(t, &share)?;
            cx.neg(&slope)
        })
    }),
];

/// The slope of each element's loss times the gradient of the loss, which is that of a mean or a sum or of elements.
fn of_elements(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    slope: impl FnOnce(&mut Cx<'_>, &Tensor, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let (g, x, t) = (args.tensor("grad_output")?, args.tensor("self")?, args.tensor("target")?);
    let reduction = Reduction::read(args)?;
    let dtype = x.dtype;
    let all = cx.unify(&[g.into(), x.into(), t.into()], opmath(dtype))?;
    let [g, x, t] = all.as_slice() else { return refuse("the gradient of a loss of two tensors") };
    let slope = slope(cx, x, t)?;
    let mut gradient = cx.mul(&slope, g)?;
    if reduction == Reduction::Mean {
        let count = cx.fill(gradient.dtype, &gradient.dims, &Number::Int(gradient.numel()))?;
        gradient = cx.div(&gradient, &count)?;
    }
    one(cx.convert(&gradient, dtype)?)
}

fn by_difference(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    slope: impl FnOnce(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    of_elements(cx, args, |cx, x, t| {
        let difference = cx.sub(x, t)?;
        slope(cx, &difference)
    })
}

fn binary_cross_entropy(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    const EPS: f64 = 1e-12;
    let weight = args.opt_tensor("weight")?;
    of_elements(cx, args, |cx, x, t| {
        let difference = cx.sub(x, t)?;
        let ones = cx.splat_like(x, 1.0)?;
        let rest = cx.sub(&ones, x)?;
        let product = cx.mul(&rest, x)?;
        let product = cx.with_number(OpKind::Maximum, &product, EPS)?;
        let slope = cx.div(&difference, &product)?;
        match &weight {
            None => Ok(slope),
            Some(weight) => {
                let weight = cx.convert(weight, slope.dtype)?;
                let weight = cx.expand_to(&weight, &slope.dims)?;
                cx.mul(&slope, &weight)
            }
        }
    })
}

/// `-weight` at each sample's class, times the gradient of its loss.
fn nll_loss(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x, total) = (args.tensor("grad_output")?, args.tensor("self")?, args.tensor("total_weight")?);
    let reduction = Reduction::read(args)?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let chosen = Chosen::read(cx, args, &wide)?;
    let mut g = cx.convert(&g, wide.dtype)?;
    if reduction == Reduction::Mean {
        let total = cx.convert(&total, wide.dtype)?;
        g = cx.div(&g, &total)?;
    }
    let g = cx.expand_to(&g, &chosen.class.dims)?;
    let each = cx.mul(&g, &chosen.weight)?;
    let each = cx.neg(&each)?;
    let map: Vec<usize> = (0..x.rank()).filter(|&axis| axis != chosen.axis).collect();
    let each = cx.broadcast(&each, &x.dims, &map)?;
    let class = cx.broadcast(&chosen.class, &x.dims, &map)?;
    let place = cx.iota(ElementType::I64, &x.dims, chosen.axis)?;
    let own = cx.compare(Cmp::Eq, &class, &place)?;
    let zero = cx.splat_like(&each, 0.0)?;
    let gradient = cx.select(&own, &each, &zero)?;
    one(cx.convert(&gradient, x.dtype)?)
}
