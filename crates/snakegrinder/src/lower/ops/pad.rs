//! Padding: with a number, by reflection, by repetition, around.

use super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._pad_circular.default", |cx, args| mirrored(cx, args, Mode::Circular)),
    op("aten.constant_pad_nd.default", constant),
    op("aten.pad.default", |cx, args| match args.str_or("mode", "constant")? {
        "constant" => constant(cx, args),
        mode => {
            args.ignore(&["value"]);
            let mode = match mode {
                "reflect" => Mode::Reflect,
                "replicate" => Mode::Replicate,
                "circular" => Mode::Circular,
                other => return refuse(format!("the padding mode `{other}`")),
            };
            mirrored(cx, args, mode)
        }
    }),
    op("aten.reflection_pad1d.default", |cx, args| mirrored(cx, args, Mode::Reflect))
        .also(&["aten.reflection_pad2d.default", "aten.reflection_pad3d.default"]),
    op("aten.replication_pad1d.default", |cx, args| mirrored(cx, args, Mode::Replicate))
        .also(&["aten.replication_pad2d.default", "aten.replication_pad3d.default"]),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Reflect,
    Replicate,
    Circular,
}

/// The padding of each dimension: pairs for the last, the last but one, and so on.
fn pairs(args: &Args<'_>, name: &str, rank: usize) -> Lowered<Vec<(usize, Size, Size)>> {
    let sizes = args.sizes(name)?;
    if sizes.len() % 2 != 0 || sizes.len() > 2 * rank {
        return refuse(format!("{} paddings of {rank} dimensions", sizes.len()));
    }
    let pairs = sizes.chunks_exact(2).enumerate();
    Ok(pairs.map(|(at, pair)| (rank - 1 - at, pair[0].clone(), pair[1].clone())).collect())
}

fn constant(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    args.ignore(&["mode"]);
    let value = args.opt_number("value")?.unwrap_or(Number::Int(Size::Int(0)));
    let value = cx.fill(x.dtype, &[], &value)?;
    let mut low = vec![Size::Int(0); x.rank()];
    let mut high = low.clone();
    for (axis, before, after) in pairs(args, "pad", x.rank())? {
        (low[axis], high[axis]) = (before, after);
    }
    one(cx.pad(&x, &value, &low, &high, &vec![0; x.rank()])?)
}

fn mirrored(cx: &mut Cx<'_>, args: &Args<'_>, mode: Mode) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    args.ignore(&["mode"]);
    let name = if args.get("pad").is_some() { "pad" } else { "padding" };
    let mut result = x.clone();
    for (axis, before, after) in pairs(args, name, x.rank())? {
        let numbers = cx.known(&[before, after])?;
        let (mut before, mut after) = (numbers[0], numbers[1]);
        if mode == Mode::Circular {
            // What is cut off is not there to go around to.
            let limit = result.dim(axis).sub(&Size::Int((-after).max(0)));
            result = cx.slice(&result, axis, &Size::Int((-before).max(0)), &limit, 1)?;
            (before, after) = (before.max(0), after.max(0));
        }
        result = mirror_axis(cx, &result, axis, before, after, mode)?;
    }
    one(result)
}

fn mirror_axis(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    before: i64,
    after: i64,
    mode: Mode,
) -> Lowered<Tensor> {
    let size = x.dim(axis);
    let part = |cx: &mut Cx<'_>, start: Size, limit: Size| cx.slice(x, axis, &start, &limit, 1);
    // Negative padding cuts off.
    let (cut_low, cut_high) = ((-before).max(0), (-after).max(0));
    let (before, after) = (before.max(0), after.max(0));
    let from_end = |count: i64| size.sub(&Size::Int(count));
    let mut parts = Vec::new();
    if before > 0 {
        parts.push(match mode {
            Mode::Reflect => {
                let edge = part(cx, Size::Int(1), Size::Int(before + 1))?;
                cx.reverse(&edge, &[axis])?
            }
            Mode::Replicate => {
                let edge = part(cx, Size::Int(0), Size::Int(1))?;
                repeated(cx, &edge, axis, before)?
            }
            Mode::Circular => part(cx, from_end(before), size.clone())?,
        });
    }
    parts.push(part(cx, Size::Int(cut_low), from_end(cut_high))?);
    if after > 0 {
        parts.push(match mode {
            Mode::Reflect => {
                let edge = part(cx, from_end(after + 1), from_end(1))?;
                cx.reverse(&edge, &[axis])?
            }
            Mode::Replicate => {
                let edge = part(cx, from_end(1), size.clone())?;
                repeated(cx, &edge, axis, after)?
            }
            Mode::Circular => part(cx, Size::Int(0), Size::Int(after))?,
        });
    }
    cx.concatenate(&parts, axis)
}

fn repeated(cx: &mut Cx<'_>, edge: &Tensor, axis: usize, count: i64) -> Lowered<Tensor> {
    let mut dims = edge.dims.to_vec();
    dims[axis] = Size::Int(count);
    cx.expand_to(edge, &dims)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn what_is_cut_off_does_not_come_around() {
        let arguments = vec![
            ("self", Floats(&[1, 4], vec![1.0, 2.0, 3.0, 4.0])),
            ("pad", Plain(json!({"as_ints": [-1, 2]}))),
            ("mode", Plain(json!({"as_string": "circular"}))),
        ];
        assert_eq!(evaluated("aten.pad.default", arguments, &[(F32, &[1, 5])]), [[2.0, 3.0, 4.0, 2.0, 3.0]]);
    }
}
