//! Scaled dot-product attention.

use super::matrix::{DotPairing, dot};
use super::prelude::*;
use super::reduction::{Softmax, softmax_of};

pub(super) const TABLE: &[Op] = &[
    op("aten._scaled_dot_product_flash_attention_for_cpu.default", |cx, args| {
        let found = attention(cx, args)?;
        Ok(vec![found.result.into(), found.logsumexp.into()])
    }),
    op("aten.scaled_dot_product_attention.default", |cx, args| one(attention(cx, args)?.result)),
];

struct Attention {
    result: Tensor,
    /// The logarithm of the sum of exponentials of each row of scores.
    logsumexp: Tensor,
}

/// `softmax(scale * q @ k.T + mask) @ v`, computed in `f32` for narrower types. A row whose scores are all masked gives
/// zeros.
fn attention(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Attention> {
    let (q, k, v) = (args.tensor("query")?, args.tensor("key")?, args.tensor("value")?);
    let mask = args.opt_tensor("attn_mask")?;
    let causal = args.bool_or("is_causal", false)?;
    let grouped = args.bool_or("enable_gqa", false)?;
    let scale = args.opt_float("scale")?;
    if args.float_or("dropout_p", 0.0)? != 0.0 {
        return refuse("attention with dropout draws random numbers");
    }
    let rank = q.rank();
    if rank < 2 || k.rank() < 2 || v.rank() < 2 {
        return refuse("attention needs matrices");
    }
    let dtype = opmath(q.dtype);
    let [q_wide, k_wide, v_wide] = [&q, &k, &v].map(|x| cx.convert(x, dtype));
    let (q_wide, mut k_wide, mut v_wide) = (q_wide?, k_wide?, v_wide?);
    if grouped && rank >= 3 {
        k_wide = repeated_heads(cx, &k_wide, &q.dim(rank - 3))?;
        v_wide = repeated_heads(cx, &v_wide, &q.dim(rank - 3))?;
    }
    let (q_wide, k_wide, v_wide) = same_batch(cx, &q_wide, &k_wide, &v_wide)?;
    let how = Scores { mask, causal, scale };
    let (scores, _) = scores(cx, &q_wide, &k_wide, &how)?;
    let rank = q_wide.rank();
    let batch: Vec<usize> = (0..rank - 2).collect();
    let last = [rank - 1];
    let shares = softmax_of(cx, &scores, &last, Softmax::Safe)?;
    let logsumexp = row_logsumexp(cx, &scores, rank - 1)?;
    let pairing = DotPairing { batch: (&batch, &batch), sum: (&last, &[rank - 2]) };
    let result = dot(cx, &shares, &v_wide, &pairing)?;
    Ok(Attention { result: cx.convert(&result, q.dtype)?, logsumexp })
}

/// How queries and keys become scores.
pub(super) struct Scores {
    /// Truth values that say which are seen, or numbers to add.
    pub(super) mask: Option<Tensor>,
    /// Whether each query sees only the keys up to its own place.
    pub(super) causal: bool,
    /// The factor; by the size of the queries where it is left out.
    pub(super) scale: Option<f64>,
}

/// The scores of queries and keys of one batch shape, and the factor that was used.
pub(super) fn scores(cx: &mut Cx<'_>, q: &Tensor, k: &Tensor, how: &Scores) -> Lowered<(Tensor, f64)> {
    let rank = q.rank();
    let batch: Vec<usize> = (0..rank - 2).collect();
    let last = [rank - 1];
    let scale = match how.scale {
        Some(scale) => scale,
        None => 1.0 / (cx.known(&[q.dim(rank - 1)])?[0] as f64).sqrt(),
    };
    let scores = dot(cx, q, k, &DotPairing { batch: (&batch, &batch), sum: (&last, &last) })?;
    let mut scores = cx.with_number(OpKind::Multiply, &scores, scale)?;
    if how.causal {
        let visible = cx.index_mask(&scores.dims.clone(), rank - 2, rank - 1, Cmp::Le, &Size::Int(0))?;
        scores = masked(cx, &scores, &visible)?;
    }
    match &how.mask {
        None => {}
        Some(mask) if mask.dtype == ElementType::Bool => {
            let visible = cx.expand_to(mask, &scores.dims)?;
            scores = masked(cx, &scores, &visible)?;
        }
        Some(mask) => {
            let mask = cx.convert(mask, scores.dtype)?;
            let mask = cx.expand_to(&mask, &scores.dims)?;
            scores = cx.add(&scores, &mask)?;
        }
    }
    Ok((scores, scale))
}

fn masked(cx: &mut Cx<'_>, scores: &Tensor, visible: &Tensor) -> Lowered<Tensor> {
    let nothing = cx.splat_like(scores, f64::NEG_INFINITY)?;
    cx.select(visible, scores, &nothing)
}

/// Each head of keys or values repeated for the heads of queries that share it.
fn repeated_heads(cx: &mut Cx<'_>, x: &Tensor, heads: &Size) -> Lowered<Tensor> {
    let Some(axis) = x.rank().checked_sub(3) else { return refuse("no heads") };
    let own = x.dim(axis);
    if own == *heads {
        return Ok(x.clone());
    }
    let Some(times) = heads.floor_div(&own) else { return refuse("no heads") };
    let mut wide = x.dims.to_vec();
    wide.insert(axis + 1, times);
    let map: Vec<usize> = (0..x.rank()).map(|at| if at <= axis { at } else { at + 1 }).collect();
    let spread = cx.broadcast(x, &wide, &map)?;
    let mut dims = x.dims.to_vec();
    dims[axis] = heads.clone();
    cx.reshape(&spread, &dims)
}

/// Brings the dimensions before the matrices to one shape.
fn same_batch(cx: &mut Cx<'_>, q: &Tensor, k: &Tensor, v: &Tensor) -> Lowered<(Tensor, Tensor, Tensor)> {
    let lead = |x: &Tensor| x.dims[..x.rank() - 2].to_vec();
    let batch = cx.broadcast_shape(&[&lead(q), &lead(k), &lead(v)])?;
    let mut expanded = [q, k, v].map(|x| {
        let dims: Vec<Size> = batch.iter().chain(&x.dims[x.rank() - 2..]).cloned().collect();
        cx.expand_to(x, &dims)
    });
    let [q, k, v] = &mut expanded;
    Ok((q.clone()?, k.clone()?, v.clone()?))
}

fn row_logsumexp(cx: &mut Cx<'_>, scores: &Tensor, axis: usize) -> Lowered<Tensor> {
    let top = cx.maximum_of(scores, &[axis])?;
    let finite = cx.unary_to(OpKind::IsFinite, &top, ElementType::Bool)?;
    let zero = cx.splat_like(&top, 0.0)?;
    let shift = cx.select(&finite, &top, &zero)?;
    let spread = cx.spread(&shift, &scores.dims, &[axis])?;
    let difference = cx.sub(scores, &spread)?;
    let parts = cx.unary(OpKind::Exponential, &difference)?;
    let total = cx.sum(&parts, &[axis])?;
    let log = cx.unary(OpKind::Log, &total)?;
    cx.add(&log, &shift)
}
