//! Gradients of the softmax and its logarithm.

use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._log_softmax_backward_data.default", |cx, args| {
        backward(cx, args, |cx, g, y, axes| {
            let total = cx.sum(g, axes)?;
            let total = cx.spread(&total, &g.dims, axes)?;
            let share = cx.unary(OpKind::Exponential, y)?;
            let back = cx.mul(&share, &total)?;
            cx.sub(g, &back)
        })
    }),
    op("aten._softmax_backward_data.default", |cx, args| backward(cx, args, softmax_gradient)),
];

fn backward(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    compute: impl FnOnce(&mut Cx<'_>, &Tensor, &Tensor, &[usize]) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let (g, y) = (args.tensor("grad_output")?, args.tensor("output")?);
    let axis = cx.axis(args.int("dim")?, y.rank())?;
    let dtype = args.opt_dtype("input_dtype")?.unwrap_or(g.dtype);
    let axes: Vec<usize> = if y.rank() == 0 { Vec::new() } else { vec![axis] };
    let (g, y) = (cx.convert(&g, opmath(g.dtype))?, cx.convert(&y, opmath(g.dtype))?);
    let gradient = compute(cx, &g, &y, &axes)?;
    one(cx.convert(&gradient, dtype)?)
}

/// `y (g - Σ g y)`.
pub(super) fn softmax_gradient(cx: &mut Cx<'_>, g: &Tensor, y: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
    let product = cx.mul(g, y)?;
    let total = cx.sum(&product, axes)?;
    let total = cx.spread(&total, &g.dims, axes)?;
    let back = cx.mul(y, &total)?;
    cx.sub(&product, &back)
}
