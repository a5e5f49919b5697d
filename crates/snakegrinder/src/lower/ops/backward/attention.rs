//! The gradient of scaled dot-product attention.

use super::super::attention::{Scores, scores};
use super::super::matrix::{DotPairing, dot};
use super::super::prelude::*;
use super::super::reduction::{Softmax, softmax_of};
use super::softmax::softmax_gradient;

pub(super) const TABLE: &[Op] =
    &[op("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", attention)];

/// The gradients by queries, keys and values. The weights are computed again from queries and keys: what the forward
/// pass saves, the logarithm of their sums, is there to save memory, and graphs that PyTorch decomposed have something
/// else in its place.
fn attention(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, q) = (args.tensor("grad_out")?, args.tensor("query")?);
    let (k, v) = (args.tensor("key")?, args.tensor("value")?);
    args.ignore(&["out", "logsumexp"]);
    if args.float_or("dropout_p", 0.0)? != 0.0 {
        return refuse("attention with dropout draws random numbers");
    }
    let how = Scores {
        mask: args.opt_tensor("attn_mask")?,
        causal: args.bool_or("is_causal", false)?,
        scale: args.opt_float("scale")?,
    };
    let heads = |x: &Tensor| x.rank().checked_sub(2).map(|count| x.dims[..count].to_vec());
    if heads(&q).is_none() || [&g, &k, &v].iter().any(|x| heads(x) != heads(&q)) {
        return refuse("queries and keys of different heads");
    }
    let dtype = opmath(q.dtype);
    let [g, q_wide, k_wide, v_wide] = [&g, &q, &k, &v].map(|x| cx.convert(x, dtype));
    let (g, q_wide, k_wide, v_wide) = (g?, q_wide?, k_wide?, v_wide?);
    let rank = q.rank();
    let batch: Vec<usize> = (0..rank - 2).collect();
    let (rows, columns) = ([rank - 2], [rank - 1]);
    let product = |cx: &mut Cx<'_>, a: &Tensor, b: &Tensor, sum: (&[usize], &[usize])| {
        dot(cx, a, b, &DotPairing { batch: (&batch, &batch), sum })
    };
    let (scores, scale) = scores(cx, &q_wide, &k_wide, &how)?;
    let shares = softmax_of(cx, &scores, &columns, Softmax::Safe)?;
    let by_value = product(cx, &shares, &g, (&rows, &rows))?;
    let by_share = product(cx, &g, &v_wide, (&columns, &columns))?;
    let by_score = softmax_gradient(cx, &by_share, &shares, &columns)?;
    let by_score = cx.with_number(OpKind::Multiply, &by_score, scale)?;
    let by_query = product(cx, &by_score, &k_wide, (&columns, &rows))?;
    let by_key = product(cx, &by_score, &q_wide, (&rows, &rows))?;
    let narrow =
        [(by_query, &q), (by_key, &k), (by_value, &v)].map(|(gradient, of)| cx.convert(&gradient, of.dtype));
    narrow.into_iter().map(|gradient| Ok(gradient?.into())).collect()
}
