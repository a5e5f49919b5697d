//! Places of values among sorted ones, and membership.

use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.bucketize.Scalar", bucketize).also(&["aten.bucketize.Tensor"]),
    op("aten.isin.Scalar_Tensor", |cx, args| isin(cx, args, "element", "test_elements")),
    op("aten.isin.Tensor_Scalar", |cx, args| isin(cx, args, "elements", "test_element")),
    op("aten.isin.Tensor_Tensor", |cx, args| isin(cx, args, "elements", "test_elements")),
    op("aten.searchsorted.Scalar", searchsorted).also(&["aten.searchsorted.Tensor"]),
];

fn bucketize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (values, boundaries) = (args.operand("self")?, args.tensor("boundaries")?);
    let values = match values {
        Operand::Tensor(tensor) => tensor,
        Operand::Number(_) => cx.as_tensor(&values, boundaries.dtype)?,
    };
    let right = args.bool_or("right", false)?;
    counted(cx, args, &boundaries, &values, right)
}

fn searchsorted(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (sorted, values) = (args.tensor("sorted_sequence")?, args.operand("self")?);
    let values = match values {
        Operand::Tensor(tensor) => tensor,
        Operand::Number(_) => cx.as_tensor(&values, sorted.dtype)?,
    };
    let side = args.str_or("side", "left")?;
    let right = args.bool_or("right", side == "right")?;
    if args.opt_tensor("sorter")?.is_some() {
        return refuse("a search by a sorter");
    }
    counted(cx, args, &sorted, &values, right)
}

/// How many of the sorted values are below each value, or not above it.
fn counted(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    sorted: &Tensor,
    values: &Tensor,
    right: bool,
) -> Lowered<Outcome> {
    let dtype = promote(sorted.dtype, values.dtype)?;
    let out = if args.bool_or("out_int32", false)? { ElementType::I32 } else { ElementType::I64 };
    let (sorted, values) = (cx.convert(sorted, dtype)?, cx.convert(values, dtype)?);
    let last = sorted.rank().saturating_sub(1);
    let mut dims = values.dims.to_vec();
    dims.push(sorted.dim(last));
    let map: Vec<usize> = (0..values.rank()).collect();
    let each = cx.broadcast(&values, &dims, &map)?;
    let sorted_map: Vec<usize> = match sorted.rank() {
        1 => vec![values.rank()],
        rank if rank == values.rank() => (0..last).chain([values.rank()]).collect(),
        _ => return refuse("a search in sequences of another shape"),
    };
    let all = cx.broadcast(&sorted, &dims, &sorted_map)?;
    let below = cx.compare(if right { Cmp::Le } else { Cmp::Lt }, &all, &each)?;
    let below = cx.convert(&below, out)?;
    one(cx.sum(&below, &[values.rank()])?)
}

fn isin(cx: &mut Cx<'_>, args: &Args<'_>, elements: &str, tests: &str) -> Lowered<Outcome> {
    let (elements, tests) = (args.operand(elements)?, args.operand(tests)?);
    args.ignore(&["assume_unique"]);
    let invert = args.bool_or("invert", false)?;
    let dtype = result_type(&[elements.clone(), tests.clone()])?;
    let (elements, tests) = (cx.as_tensor(&elements, dtype)?, cx.as_tensor(&tests, dtype)?);
    let tests = cx.reshape(&tests, &[tests.numel()])?;
    let mut dims = elements.dims.to_vec();
    dims.push(tests.dim(0));
    let rank = elements.rank();
    let map: Vec<usize> = (0..rank).collect();
    let each = cx.broadcast(&elements, &dims, &map)?;
    let all = cx.broadcast(&tests, &dims, &[rank])?;
    let equal = cx.compare(Cmp::Eq, &each, &all)?;
    let found = cx.reduce(OpKind::Or, &equal, &[rank], Scalar::Bool(false))?;
    one(if invert { cx.not(&found)? } else { found })
}
