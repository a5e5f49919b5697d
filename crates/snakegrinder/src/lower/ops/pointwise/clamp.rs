//! Keeping numbers in a range.

use super::super::prelude::*;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.clamp.Tensor", |cx, args| clamp(cx, args, Some("min"), Some("max"))).also(&[
        "aten.clamp.default",
        "aten.clip.Tensor",
        "aten.clip.default",
    ]),
    op("aten.clamp_max.Tensor", |cx, args| clamp(cx, args, None, Some("max")))
        .also(&["aten.clamp_max.default"]),
    op("aten.clamp_min.Tensor", |cx, args| clamp(cx, args, Some("min"), None))
        .also(&["aten.clamp_min.default"]),
    op("aten.nan_to_num.default", nan_to_num),
    op("aten.threshold.default", threshold),
];

fn clamp(cx: &mut Cx<'_>, args: &Args<'_>, min: Option<&str>, max: Option<&str>) -> Lowered<Outcome> {
    let x: Operand = args.tensor("self")?.into();
    let bound = |name: Option<&str>| match name.filter(|name| args.get(name).is_some()) {
        Some(name) => args.operand(name).map(Some),
        None => Ok(None),
    };
    let (min, max) = (bound(min)?, bound(max)?);
    let mut operands = vec![x];
    operands.extend([min.clone(), max.clone()].into_iter().flatten());
    let dtype = result_type(&operands)?;
    let mut unified = cx.unify(&operands, dtype)?.into_iter();
    let Some(mut result) = unified.next() else { return refuse("nothing to clamp") };
    for kind in [min.map(|_| OpKind::Maximum), max.map(|_| OpKind::Minimum)].into_iter().flatten() {
        if let Some(bound) = unified.next() {
            result = cx.binary(kind, &result, &bound)?;
        }
    }
    one(result)
}

/// Numbers up to a threshold replaced by a value; NaN stays.
fn threshold(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let (threshold, value) = (args.number("threshold")?, args.number("value")?);
    let (threshold, value) = (cx.fill(x.dtype, &x.dims, &threshold)?, cx.fill(x.dtype, &x.dims, &value)?);
    let low = cx.compare(Cmp::Le, &x, &threshold)?;
    one(cx.select(&low, &value, &x)?)
}

fn nan_to_num(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let (nan, above, below) = (args.opt_float("nan")?, args.opt_float("posinf")?, args.opt_float("neginf")?);
    let ElementType::Float(float) = x.dtype else { return one(x) };
    let largest = float.format().max_finite();
    let replace = |cx: &mut Cx<'_>, x: &Tensor, place: &Tensor, value: f64| {
        let value = cx.splat_like(x, value)?;
        cx.select(place, &value, x)
    };
    let unknown = cx.is_nan(&x)?;
    let high = cx.compare_number(Cmp::Eq, &x, f64::INFINITY)?;
    let low = cx.compare_number(Cmp::Eq, &x, f64::NEG_INFINITY)?;
    let result = replace(cx, &x, &unknown, nan.unwrap_or(0.0))?;
    let result = replace(cx, &result, &high, above.unwrap_or(largest))?;
    one(replace(cx, &result, &low, below.unwrap_or(-largest))?)
}
