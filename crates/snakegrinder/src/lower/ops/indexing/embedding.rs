//! Rows of a table.

use super::super::prelude::*;
use super::rows::take_rows;

pub(super) const TABLE: &[Op] =
    &[op("aten.embedding.default", embedding), op("aten.one_hot.default", one_hot)];

fn embedding(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (weight, indices) = (args.tensor("weight")?, args.tensor("indices")?);
    // These change gradients only.
    args.ignore(&["padding_idx", "scale_grad_by_freq", "sparse"]);
    let flat = cx.reshape(&indices, &[indices.numel()])?;
    let flat = cx.convert(&flat, ElementType::I64)?;
    let rows = take_rows(cx, &weight, 0, &flat)?;
    let mut dims = indices.dims.to_vec();
    dims.extend_from_slice(&weight.dims[1..]);
    one(cx.reshape(&rows, &dims)?)
}

fn one_hot(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let classes = args.int_or("num_classes", -1)?;
    if classes < 0 {
        return refuse("a number of classes that depends on the data");
    }
    let mut dims = x.dims.to_vec();
    dims.push(Size::Int(classes));
    let map: Vec<usize> = (0..x.rank()).collect();
    let wide = cx.convert(&x, ElementType::I64)?;
    let wide = cx.broadcast(&wide, &dims, &map)?;
    let class = cx.iota(ElementType::I64, &dims, x.rank())?;
    let hot = cx.compare(Cmp::Eq, &wide, &class)?;
    one(cx.convert(&hot, ElementType::I64)?)
}
