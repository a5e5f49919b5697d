//! Softmax and its logarithm.

use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._log_softmax.default", |cx, args| softmax(cx, args, Kind::Log))
        .also(&["aten.log_softmax.int", "aten.special_log_softmax.default"]),
    op("aten._safe_softmax.default", |cx, args| softmax(cx, args, Kind::Safe)),
    op("aten._softmax.default", |cx, args| softmax(cx, args, Kind::Plain))
        .also(&["aten.softmax.int", "aten.special_softmax.default"]),
];

/// Which softmax.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// NaN where all elements are minus infinity.
    Plain,
    /// Zero where all elements are minus infinity.
    Safe,
    /// The logarithm.
    Log,
}

fn softmax(cx: &mut Cx<'_>, args: &Args<'_>, kind: Kind) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let to_float = args.bool_or("half_to_float", false)?;
    let asked = args.opt_dtype("dtype")?;
    let dtype = asked.unwrap_or(if to_float { ElementType::F32 } else { to_inexact(x.dtype) });
    let x = if asked.is_some() { cx.convert(&x, dtype)? } else { x };
    let wide = cx.convert(&x, opmath(dtype))?;
    let axes: Vec<usize> = if x.rank() == 0 { Vec::new() } else { vec![axis] };
    let result = softmax_of(cx, &wide, &axes, kind)?;
    one(cx.convert(&result, dtype)?)
}

/// The softmax over dimensions, in the tensor's own type.
pub(in super::super) fn softmax_of(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axes: &[usize],
    kind: Kind,
) -> Lowered<Tensor> {
    let top = cx.maximum_of(x, axes)?;
    let nothing = match kind {
        Kind::Safe => Some(cx.compare_number(Cmp::Eq, &top, f64::NEG_INFINITY)?),
        Kind::Plain | Kind::Log => None,
    };
    let top = cx.spread(&top, &x.dims, axes)?;
    let shifted = cx.sub(x, &top)?;
    let parts = cx.unary(OpKind::Exponential, &shifted)?;
    let total = cx.sum(&parts, axes)?;
    if kind == Kind::Log {
        let log = cx.unary(OpKind::Log, &total)?;
        let log = cx.spread(&log, &x.dims, axes)?;
        return cx.sub(&shifted, &log);
    }
    let total = cx.spread(&total, &x.dims, axes)?;
    let share = cx.div(&parts, &total)?;
    match nothing {
        None => Ok(share),
        Some(nothing) => {
            let nothing = cx.spread(&nothing, &x.dims, axes)?;
            let zero = cx.splat_like(&share, 0.0)?;
            cx.select(&nothing, &zero, &share)
        }
    }
}
