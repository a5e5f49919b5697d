//! Rows of a table, reduced bag by bag.

use super::super::matrix::{DotPairing, dot};
use super::super::prelude::*;
use super::rows::take_rows;
use crate::lower::cx::lowest;

pub(super) const TABLE: &[Op] = &[op("aten._embedding_bag.default", bags).also(&[
    "aten._embedding_bag_forward_only.default",
    "aten.embedding_bag.default",
    "aten.embedding_bag.padding_idx",
])];

/// How the rows of a bag are reduced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Sum,
    Mean,
    Max,
}

/// The reduced rows of each bag. The other results are for a backward pass, and left out where nothing uses them.
fn bags(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (weight, indices) = (args.tensor("weight")?, args.tensor("indices")?);
    let offsets = args.tensor("offsets")?;
    args.ignore(&["scale_grad_by_freq", "sparse"]);
    let mode = match args.int_or("mode", 0)? {
        0 => Mode::Sum,
        1 => Mode::Mean,
        2 => Mode::Max,
        other => return refuse(format!("the way {other} to reduce a bag")),
    };
    let factors = args.opt_tensor("per_sample_weights")?;
    if indices.rank() != 1 || offsets.rank() != 1 || weight.rank() != 2 {
        return refuse("bags of other than rows");
    }
    if (1..4).any(|position| args.is_used(position)) {
        return refuse("what a backward pass of bags needs");
    }
    let padding = args.opt_int("padding_idx")?;
    let inside = members(cx, &indices, &offsets, args.bool_or("include_last_offset", false)?)?;
    let places = cx.convert(&indices, ElementType::I64)?;
    let inside = match padding {
        Some(padding) if padding >= 0 || args.node.target.ends_with("padding_idx") => {
            let padding = if padding < 0 { padding + cx.known(&[weight.dim(0)])?[0] } else { padding };
            let real = cx.compare_number(Cmp::Ne, &places, padding)?;
            let real = cx.broadcast(&real, &inside.dims.clone(), &[1])?;
            cx.and(&inside, &real)?
        }
        _ => inside,
    };
    let rows = take_rows(cx, &weight, 0, &places)?;
    let rows = cx.convert(&rows, opmath(weight.dtype))?;
    let rows = match factors {
        Some(factors) => {
            let factors = cx.convert(&factors, rows.dtype)?;
            let factors = cx.broadcast(&factors, &rows.dims.clone(), &[0])?;
            cx.mul(&rows, &factors)?
        }
        None => rows,
    };
    let reduced = match mode {
        Mode::Max => largest(cx, &inside, &rows)?,
        Mode::Sum | Mode::Mean => {
            let taken = cx.convert(&inside, rows.dtype)?;
            let sum = dot(cx, &taken, &rows, &DotPairing::summing(&[1], &[0]))?;
            if mode == Mode::Sum { sum } else { mean(cx, &taken, &sum)? }
        }
    };
    let reduced = cx.convert(&reduced, weight.dtype)?;
    Ok(vec![reduced.into(), Value::None, Value::None, Value::None])
}

/// Which bag has which index: a bag begins at its offset and ends where the next one begins.
fn members(cx: &mut Cx<'_>, indices: &Tensor, offsets: &Tensor, with_end: bool) -> Lowered<Tensor> {
    let offsets = cx.convert(offsets, ElementType::I64)?;
    let (count, all) = (offsets.dim(0), indices.dim(0));
    let (starts, ends) = if with_end {
        let bags = count.sub(&Size::Int(1));
        (cx.slice(&offsets, 0, &Size::Int(0), &bags, 1)?, cx.slice(&offsets, 0, &Size::Int(1), &count, 1)?)
    } else {
        let rest = cx.slice(&offsets, 0, &Size::Int(1), &count, 1)?;
        let end = cx.fill(ElementType::I64, &[Size::Int(1)], &Number::Int(all.clone()))?;
        (offsets.clone(), cx.concatenate(&[rest, end], 0)?)
    };
    let dims = [starts.dim(0), all];
    let place = cx.iota(ElementType::I64, &dims, 1)?;
    let (start, end) = (cx.broadcast(&starts, &dims, &[0])?, cx.broadcast(&ends, &dims, &[0])?);
    let (after, before) = (cx.compare(Cmp::Ge, &place, &start)?, cx.compare(Cmp::Lt, &place, &end)?);
    cx.and(&after, &before)
}

/// The largest of each column; 0 for a bag with nothing in it.
fn largest(cx: &mut Cx<'_>, inside: &Tensor, rows: &Tensor) -> Lowered<Tensor> {
    let dims = [inside.dim(0), inside.dim(1), rows.dim(1)];
    let each = cx.broadcast(rows, &dims, &[1, 2])?;
    let taken = cx.broadcast(inside, &dims, &[0, 1])?;
    let low = cx.splat_like(&each, lowest(rows.dtype))?;
    let each = cx.select(&taken, &each, &low)?;
    let found = cx.maximum_of(&each, &[1])?;
    let any = cx.reduce(OpKind::Or, inside, &[1], Scalar::Bool(false))?;
    let any = cx.broadcast(&any, &found.dims.clone(), &[0])?;
    let zero = cx.splat_like(&found, 0.0)?;
    cx.select(&any, &found, &zero)
}

/// The sums divided by how many were summed, at least one.
fn mean(cx: &mut Cx<'_>, taken: &Tensor, sum: &Tensor) -> Lowered<Tensor> {
    let count = cx.sum(taken, &[1])?;
    let count = cx.with_number(OpKind::Maximum, &count, 1.0)?;
    let count = cx.broadcast(&count, &sum.dims.clone(), &[0])?;
    cx.div(sum, &count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Code::Unused, Given::*, evaluated};

    /// The first bag has rows 2 and 0, the second nothing, the third row 1 and the padding row 2.
    fn reduced(mode: i64, padding: i64) -> Vec<f64> {
        let arguments = vec![
            ("weight", Floats(&[3, 2], vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0])),
            ("indices", Ints(&[4], vec![2, 0, 1, 2])),
            ("offsets", Ints(&[3], vec![0, 2, 2])),
            ("mode", Plain(json!({"as_int": mode}))),
            ("padding_idx", Plain(json!({"as_int": padding}))),
        ];
        let results: [(_, &[usize]); 4] = [(F32, &[3, 2]), (Unused, &[4]), (Unused, &[3]), (Unused, &[3])];
        evaluated("aten._embedding_bag_forward_only.default", arguments, &results).remove(0)
    }

    #[test]
    fn rows_are_folded_bag_by_bag() {
        assert_eq!(reduced(0, -1), [6.0, -8.0, 0.0, 0.0, 8.0, -2.0]);
        assert_eq!(reduced(1, -1), [3.0, -4.0, 0.0, 0.0, 4.0, -1.0]);
        assert_eq!(reduced(2, -1), [5.0, -2.0, 0.0, 0.0, 5.0, 4.0]);
        assert_eq!(reduced(1, 2), [1.0, -2.0, 0.0, 0.0, 3.0, 4.0]);
    }
}
