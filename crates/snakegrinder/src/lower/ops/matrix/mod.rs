//! Products of matrices and vectors.

mod contract;
mod einsum;
mod solve;

use self::contract::{Pairing, contract};
use super::prelude::*;

pub(super) use self::contract::{Pairing as DotPairing, contract as dot, contract_as as dot_as};

pub(super) const TABLES: &[&[Op]] = &[TABLE, einsum::TABLE, solve::TABLE];

const TABLE: &[Op] = &[
    op("aten._trilinear.default", trilinear),
    op("aten.addbmm.default", addbmm),
    op("aten.addmm.default", |cx, args| plus_product(cx, args, "mat1", "mat2")).also(&["aten.addmm.dtype"]),
    op("aten.addmv.default", |cx, args| plus_product(cx, args, "mat", "vec")),
    op("aten.addr.default", addr),
    op("aten.baddbmm.default", |cx, args| plus_product(cx, args, "batch1", "batch2"))
        .also(&["aten.baddbmm.dtype"]),
    op("aten.bilinear.default", bilinear),
    op("aten.bmm.default", |cx, args| plain(cx, args, "self", "mat2")).also(&[
        "aten.bmm.dtype",
        "aten.mm.default",
        "aten.mm.dtype",
    ]),
    op("aten.dot.default", |cx, args| plain(cx, args, "self", "tensor")),
    op("aten.inner.default", inner),
    op("aten.linalg_multi_dot.default", multi_dot),
    op("aten.linalg_vecdot.default", vecdot),
    op("aten.linear.default", linear),
    op("aten.matmul.default", |cx, args| plain(cx, args, "self", "other"))
        .also(&["aten.linalg_matmul.default", "aten.vdot.default"]),
    op("aten.mv.default", |cx, args| plain(cx, args, "self", "vec")),
    op("aten.outer.default", outer).also(&["aten.ger.default"]),
];

fn plain(cx: &mut Cx<'_>, args: &Args<'_>, a: &str, b: &str) -> Lowered<Outcome> {
    let (a, b) = (args.tensor(a)?, args.tensor(b)?);
    if a.dtype.is_complex() && args.node.target.contains("vdot") {
        return refuse("vdot of complex numbers");
    }
    let product = matmul(cx, &a, &b)?;
    let dtype = args.opt_dtype("out_dtype")?.unwrap_or(a.dtype);
    one(cx.convert(&product, dtype)?)
}

/// `matmul`, with sums in the type that PyTorch sums in: the caller rounds.
pub(super) fn matmul(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
    if a.dtype != b.dtype {
        return refuse(format!("a product of {} and {}", a.dtype, b.dtype));
    }
    let (rank_a, rank_b) = (a.rank(), b.rank());
    if rank_a == 0 || rank_b == 0 {
        return refuse("a matrix product of scalars");
    }
    // The dimension of `b` that is summed: its last but one, or its only one.
    let sum_b = rank_b.saturating_sub(2);
    if rank_b <= 2 {
        return contract(cx, a, b, &Pairing::summing(&[rank_a - 1], &[sum_b]));
    }
    if rank_a == 1 {
        return contract(cx, a, b, &Pairing::summing(&[0], &[sum_b]));
    }
    let (batch_a, batch_b) = (&a.dims[..rank_a - 2], &b.dims[..rank_b - 2]);
    let batch = cx.broadcast_shape(&[batch_a, batch_b])?;
    let [a, b] = [a, b].map(|x| {
        let dims: Vec<Size> = batch.iter().chain(&x.dims[x.rank() - 2..]).cloned().collect();
        cx.expand_to(x, &dims)
    });
    let (a, b) = (a?, b?);
    let batch: Vec<usize> = (0..batch.len()).collect();
    let pairing = Pairing { batch: (&batch, &batch), sum: (&[a.rank() - 1], &[b.rank() - 2]) };
    contract(cx, &a, &b, &pairing)
}

/// `input @ weight.T + bias`.
fn linear(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, weight, bias) = (args.tensor("input")?, args.tensor("weight")?, args.opt_tensor("bias")?);
    if x.rank() == 0 || weight.rank() == 0 {
        return refuse("a matrix product of scalars");
    }
    let pairing = Pairing { batch: (&[], &[]), sum: (&[x.rank() - 1], &[weight.rank() - 1]) };
    let mut product = contract(cx, &x, &weight, &pairing)?;
    if let Some(bias) = bias {
        let bias = cx.convert(&bias, product.dtype)?;
        let bias = cx.expand_to(&bias, &product.dims)?;
        product = cx.add(&product, &bias)?;
    }
    one(cx.convert(&product, x.dtype)?)
}

/// `beta * self + alpha * (a @ b)`; with `beta` of zero `self` does not matter, not even its NaNs.
fn plus_product(cx: &mut Cx<'_>, args: &Args<'_>, a: &str, b: &str) -> Lowered<Outcome> {
    let (x, a, b) = (args.tensor("self")?, args.tensor(a)?, args.tensor(b)?);
    let product = matmul(cx, &a, &b)?;
    one(accumulated(cx, args, &x, &product)?)
}

fn accumulated(cx: &mut Cx<'_>, args: &Args<'_>, x: &Tensor, product: &Tensor) -> Lowered<Tensor> {
    let (alpha, beta) = (args.opt_number("alpha")?, args.opt_number("beta")?);
    let mut result = times(cx, product, alpha.as_ref())?;
    if beta.as_ref().and_then(Number::as_f64) != Some(0.0) {
        let wide = cx.convert(x, result.dtype)?;
        let wide = cx.expand_to(&wide, &result.dims)?;
        let part = times(cx, &wide, beta.as_ref())?;
        result = cx.add(&part, &result)?;
    }
    let dtype = args.opt_dtype("out_dtype")?.unwrap_or(x.dtype);
    cx.convert(&result, dtype)
}

fn times(cx: &mut Cx<'_>, x: &Tensor, factor: Option<&Number>) -> Lowered<Tensor> {
    match factor {
        None => Ok(x.clone()),
        Some(number) if number.as_f64() == Some(1.0) => Ok(x.clone()),
        Some(number) => {
            let factor = cx.fill(x.dtype, &x.dims.clone(), number)?;
            cx.mul(x, &factor)
        }
    }
}

fn addbmm(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, a, b) = (args.tensor("self")?, args.tensor("batch1")?, args.tensor("batch2")?);
    let pairing = Pairing::summing(&[0, 2], &[0, 1]);
    let product = contract(cx, &a, &b, &pairing)?;
    one(accumulated(cx, args, &x, &product)?)
}

fn addr(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, a, b) = (args.tensor("self")?, args.tensor("vec1")?, args.tensor("vec2")?);
    let product = contract(cx, &a, &b, &Pairing::summing(&[], &[]))?;
    one(accumulated(cx, args, &x, &product)?)
}

fn outer(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = (args.tensor("self")?, args.tensor("vec2")?);
    let dtype = promote(a.dtype, b.dtype)?;
    let (a, b) = (cx.convert(&a, dtype)?, cx.convert(&b, dtype)?);
    let dims = [a.dim(0), b.dim(0)];
    let (a, b) = (cx.broadcast(&a, &dims, &[0])?, cx.broadcast(&b, &dims, &[1])?);
    one(cx.mul(&a, &b)?)
}

fn inner(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = (args.tensor("self")?, args.tensor("other")?);
    if a.rank() == 0 || b.rank() == 0 {
        let both = cx.broadcast_all(&[a, b])?;
        return one(cx.mul(&both[0], &both[1])?);
    }
    let product = contract(cx, &a, &b, &Pairing::summing(&[a.rank() - 1], &[b.rank() - 1]))?;
    one(cx.convert(&product, a.dtype)?)
}

fn vecdot(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let both = cx.broadcast_all(&[args.tensor("x")?, args.tensor("y")?])?;
    let (a, b) = (&both[0], &both[1]);
    if a.dtype.is_complex() {
        return refuse("vecdot of complex numbers");
    }
    let axis = cx.axis(args.int_or("dim", -1)?, a.rank())?;
    let rest: Vec<usize> = (0..a.rank()).filter(|&at| at != axis).collect();
    let product = contract(cx, a, b, &Pairing { batch: (&rest, &rest), sum: (&[axis], &[axis]) })?;
    one(cx.convert(&product, a.dtype)?)
}

/// `x1 @ weight[o] @ x2 + bias[o]`.
fn bilinear(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b, weight) = (args.tensor("input1")?, args.tensor("input2")?, args.tensor("weight")?);
    let bias = args.opt_tensor("bias")?;
    let last = a.rank().saturating_sub(1);
    // [batch…, out, in2]
    let half = contract(cx, &a, &weight, &Pairing::summing(&[last], &[1]))?;
    let half = cx.convert(&half, a.dtype)?;
    let batch: Vec<usize> = (0..last).collect();
    let pairing = Pairing { batch: (&batch, &batch), sum: (&[last + 1], &[last]) };
    let mut product = contract(cx, &half, &b, &pairing)?;
    if let Some(bias) = bias {
        let bias = cx.convert(&bias, product.dtype)?;
        let bias = cx.expand_to(&bias, &product.dims)?;
        product = cx.add(&product, &bias)?;
    }
    one(cx.convert(&product, a.dtype)?)
}

/// The product of three tensors, each with new dimensions, summed over some of them.
fn trilinear(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.ignore(&["unroll_dim"]);
    let mut operands = Vec::new();
    for (name, expand) in [("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")] {
        let mut x = args.tensor(name)?;
        let mut added = args.ints(expand)?;
        let rank = x.rank() + added.len();
        added.sort_unstable();
        for axis in cx.axes(&added, rank)? {
            if axis > x.rank() {
                return refuse("a new dimension behind one that is not there");
            }
            x = cx.unsqueeze(&x, axis)?;
        }
        operands.push(x);
    }
    let dtype = operands[0].dtype;
    let operands = operands.iter().map(|x| cx.convert(x, opmath(dtype)));
    let operands: Vec<Tensor> = operands.collect::<Lowered<_>>()?;
    let wide = cx.broadcast_all(&operands)?;
    let product = cx.mul(&wide[0], &wide[1])?;
    let product = cx.mul(&product, &wide[2])?;
    let axes = cx.axes(&args.ints("sumdim")?, product.rank())?;
    let total = cx.sum(&product, &axes)?;
    one(cx.convert(&total, dtype)?)
}

/// A chain of products; the first and the last may be vectors.
fn multi_dot(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let mut tensors = args.tensors("tensors")?.into_iter();
    let Some(mut product) = tensors.next() else { return refuse("a product of nothing") };
    for next in tensors {
        let wide = matmul(cx, &product, &next)?;
        product = cx.convert(&wide, next.dtype)?;
    }
    one(product)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn three_tensors_are_multiplied_and_summed() {
        let ints = |values: &[i64]| Plain(json!({"as_ints": values}));
        let arguments = vec![
            ("i1", Floats(&[1, 2], vec![1.0, 2.0])),
            ("i2", Floats(&[2], vec![3.0, 4.0])),
            ("i3", Floats(&[2], vec![5.0, 6.0])),
            ("expand1", ints(&[])),
            ("expand2", ints(&[0])),
            ("expand3", ints(&[0])),
            ("sumdim", ints(&[1])),
        ];
        // 1·3·5 + 2·4·6
        assert_eq!(evaluated("aten._trilinear.default", arguments, &[(F32, &[1])]), [[63.0]]);
    }

    #[test]
    fn chains_may_begin_and_end_with_vectors() {
        let chain = List(vec![
            Floats(&[2], vec![1.0, 2.0]),
            Floats(&[2, 2], vec![1.0, 0.0, 0.0, 3.0]),
            Floats(&[2], vec![5.0, 7.0]),
        ]);
        assert_eq!(
            evaluated("aten.linalg_multi_dot.default", vec![("tensors", chain)], &[(F32, &[])]),
            [[47.0]]
        );
    }
}
