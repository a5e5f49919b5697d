//! Elements by their rank: medians and quantiles.

use super::super::indexing::gather_along;
use super::super::prelude::*;
use super::shaped;
use super::sort::{ranked, sort_along};

pub(super) const TABLE: &[Op] = &[
    op("aten.median.default", |cx, args| median_of_all(cx, args, Missing::Spreads)),
    op("aten.median.dim", |cx, args| median(cx, args, Missing::Spreads)),
    op("aten.nanmedian.default", |cx, args| median_of_all(cx, args, Missing::LeftOut)),
    op("aten.nanmedian.dim", |cx, args| median(cx, args, Missing::LeftOut)),
    op("aten.nanquantile.default", |cx, args| quantile(cx, args, Missing::LeftOut))
        .also(&["aten.nanquantile.scalar"]),
    op("aten.quantile.default", |cx, args| quantile(cx, args, Missing::Spreads))
        .also(&["aten.quantile.scalar"]),
];

/// What becomes of NaN.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// Where there is one, it is the result.
    Spreads,
    /// They do not count.
    LeftOut,
}

/// How many elements along a dimension are NaN, the dimension kept.
fn missing(cx: &mut Cx<'_>, x: &Tensor, axis: usize) -> Lowered<Tensor> {
    let unknown = cx.is_nan(x)?;
    let unknown = cx.convert(&unknown, ElementType::I64)?;
    let count = cx.sum(&unknown, &[axis])?;
    cx.keep_dims(&count, &x.dims, &[axis])
}

/// The middle element of a dimension and its place.
fn middle(cx: &mut Cx<'_>, x: &Tensor, axis: usize, how: Missing) -> Lowered<(Tensor, Tensor)> {
    let (values, places) = sort_along(cx, x, axis, false)?;
    let count = cx.known(&[x.dim(axis)])?[0];
    let missing = missing(cx, x, axis)?;
    let left = cx.neg(&missing)?;
    // NaN are sorted behind the others: the first of them is where these end.
    let left = cx.with_number(OpKind::Add, &left, count)?;
    let last = cx.with_number(OpKind::Subtract, &left, 1)?;
    let last = cx.with_number(OpKind::Maximum, &last, 0)?;
    let half = cx.with_number(OpKind::Divide, &last, 2)?;
    let at = match how {
        Missing::LeftOut => half,
        Missing::Spreads => {
            let any = cx.compare_number(Cmp::Gt, &missing, 0)?;
            cx.select(&any, &left, &half)?
        }
    };
    Ok((gather_along(cx, &values, axis, &at)?, gather_along(cx, &places, axis, &at)?))
}

fn median(cx: &mut Cx<'_>, args: &Args<'_>, how: Missing) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.rank() == 0 || !x.dtype.is_float() {
        return ranked(cx, args, |count| (count - 1) / 2);
    }
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let (value, place) = middle(cx, &x, axis, how)?;
    let mut dims = x.dims.to_vec();
    dims.remove(axis);
    let [value, place] = [value, place].map(|found| {
        let found = cx.reshape(&found, &dims)?;
        shaped(cx, args, &x, &found, &[axis])
    });
    Ok(vec![value?.into(), place?.into()])
}

fn median_of_all(cx: &mut Cx<'_>, args: &Args<'_>, how: Missing) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let flat = cx.reshape(&x, &[x.numel()])?;
    if x.dtype.is_float() {
        let (value, _) = middle(cx, &flat, 0, how)?;
        return one(cx.reshape(&value, &[])?);
    }
    let (values, _) = sort_along(cx, &flat, 0, false)?;
    let count = cx.known(&flat.dims)?[0];
    let middle = Size::Int((count - 1) / 2);
    let found = cx.slice(&values, 0, &middle, &middle.add(&Size::Int(1)), 1)?;
    one(cx.reshape(&found, &[])?)
}

/// Elements at parts of the way from the smallest to the largest.
fn quantile(cx: &mut Cx<'_>, args: &Args<'_>, how: Missing) -> Lowered<Outcome> {
    let whole = args.tensor("self")?;
    let parts = match args.get("q") {
        Some(Value::Tensor(parts)) => parts.clone(),
        _ => {
            let number = args.number("q")?;
            cx.fill(whole.dtype, &[], &number)?
        }
    };
    let keep = args.bool_or("keepdim", false)?;
    // The dimension comes last, and the parts take its place.
    let (x, axis) = match args.opt_int("dim")? {
        Some(dim) if whole.rank() > 0 => {
            let axis = cx.axis(dim, whole.rank())?;
            let order: Vec<usize> = (0..whole.rank()).filter(|&at| at != axis).chain([axis]).collect();
            (cx.transpose(&whole, &order)?, Some(axis))
        }
        _ => {
            args.ignore(&["dim"]);
            (cx.reshape(&whole, &[whole.numel()])?, None)
        }
    };
    let last = x.rank() - 1;
    let several = parts.rank() == 1;
    let flat = cx.reshape(&parts, &[parts.numel()])?;
    let found = interpolated(cx, &x, &flat, how, args.str_or("interpolation", "linear")?)?;
    let mut kept = whole.dims.to_vec();
    match axis {
        Some(axis) if keep => kept[axis] = Size::Int(1),
        Some(axis) => drop(kept.remove(axis)),
        None if keep => kept.fill(Size::Int(1)),
        None => kept.clear(),
    }
    // Several parts are a dimension in front.
    let order: Vec<usize> = std::iter::once(last).chain(0..last).collect();
    let found = cx.transpose(&found, &order)?;
    if several {
        kept.insert(0, flat.dim(0));
    }
    one(cx.reshape(&found, &kept)?)
}

/// The quantiles along the last dimension.
fn interpolated(cx: &mut Cx<'_>, x: &Tensor, parts: &Tensor, how: Missing, way: &str) -> Lowered<Tensor> {
    let last = x.rank() - 1;
    let count = cx.known(&[x.dim(last)])?[0];
    let (sorted, _) = sort_along(cx, x, last, false)?;
    let missing = missing(cx, x, last)?;
    let mut dims = x.dims.to_vec();
    dims[last] = parts.dim(0);
    let missing = cx.broadcast(&missing, &dims, &(0..=last).collect::<Vec<_>>())?;
    let parts = cx.convert(parts, x.dtype)?;
    let parts = cx.broadcast(&parts, &dims, &[last])?;
    let rank = match how {
        Missing::LeftOut => {
            let left = cx.neg(&missing)?;
            let left = cx.with_number(OpKind::Add, &left, count - 1)?;
            let left = cx.convert(&left, x.dtype)?;
            let rank = cx.mul(&parts, &left)?;
            cx.with_number(OpKind::Maximum, &rank, 0.0)?
        }
        Missing::Spreads => {
            let rank = cx.with_number(OpKind::Multiply, &parts, (count - 1) as f64)?;
            // NaN are sorted behind the others.
            let any = cx.compare_number(Cmp::Gt, &missing, 0)?;
            let end = cx.splat_like(&rank, (count - 1) as f64)?;
            cx.select(&any, &end, &rank)?
        }
    };
    let at = |cx: &mut Cx<'_>, kind: OpKind| {
        let place = cx.unary(kind, &rank)?;
        let index = cx.convert(&place, ElementType::I64)?;
        Ok::<_, crate::lower::refusal::Refusal>((place, gather_along(cx, &sorted, last, &index)?))
    };
    match way {
        "lower" => Ok(at(cx, OpKind::Floor)?.1),
        "higher" => Ok(at(cx, OpKind::Ceil)?.1),
        "nearest" => Ok(at(cx, OpKind::RoundNearestEven)?.1),
        "linear" | "midpoint" => {
            let ((place, below), (_, above)) = (at(cx, OpKind::Floor)?, at(cx, OpKind::Ceil)?);
            let share = match way {
                "midpoint" => cx.splat_like(&rank, 0.5)?,
                _ => cx.sub(&rank, &place)?,
            };
            between(cx, &below, &above, &share)
        }
        other => refuse(format!("the interpolation `{other}`")),
    }
}

/// A share of the way from one to another, counted from the nearer end.
fn between(cx: &mut Cx<'_>, below: &Tensor, above: &Tensor, share: &Tensor) -> Lowered<Tensor> {
    let way = cx.sub(above, below)?;
    let first = cx.mul(share, &way)?;
    let first = cx.add(below, &first)?;
    let ones = cx.splat_like(share, 1.0)?;
    let rest = cx.sub(&ones, share)?;
    let second = cx.mul(&way, &rest)?;
    let second = cx.sub(above, &second)?;
    let near = cx.compare_number(Cmp::Lt, share, 0.5)?;
    cx.select(&near, &first, &second)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code, Code::F32, Given::*, evaluated};

    fn rows() -> super::super::super::testing::Given {
        Floats(&[2, 4], vec![4.0, 1.0, 3.0, 2.0, 8.0, f32::NAN, 6.0, 7.0])
    }

    #[test]
    fn a_median_is_nan_where_there_is_one_and_it_counts() {
        let along = |target: &str| {
            let arguments = vec![("self", rows()), ("dim", Plain(json!({"as_int": 1})))];
            evaluated(target, arguments, &[(F32, &[2]), (Code::I64, &[2])])
        };
        let found = along("aten.median.dim");
        assert!(found[0][0] == 2.0 && found[0][1].is_nan(), "{found:?}");
        assert_eq!(found[1], [3.0, 1.0]);
        assert_eq!(along("aten.nanmedian.dim"), [[2.0, 7.0], [3.0, 3.0]]);
        let all = evaluated("aten.nanmedian.default", vec![("self", rows())], &[(F32, &[])]);
        assert_eq!(all, [[4.0]]);
    }

    #[test]
    fn quantiles_lie_between_elements() {
        let quantile = |target: &str, way: &str| {
            let arguments = vec![
                ("self", rows()),
                ("q", Floats(&[2], vec![0.0, 0.5])),
                ("dim", Plain(json!({"as_int": 1}))),
                ("interpolation", Plain(json!({"as_string": way}))),
            ];
            evaluated(target, arguments, &[(F32, &[2, 2])]).remove(0)
        };
        assert_eq!(quantile("aten.nanquantile.default", "linear"), [1.0, 6.0, 2.5, 7.0]);
        assert_eq!(quantile("aten.nanquantile.default", "higher"), [1.0, 6.0, 3.0, 7.0]);
        let found = quantile("aten.quantile.default", "lower");
        assert!(found[0] == 1.0 && found[2] == 2.0 && found[1].is_nan() && found[3].is_nan(), "{found:?}");
    }
}
