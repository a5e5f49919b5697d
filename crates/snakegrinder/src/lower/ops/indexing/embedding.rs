//! Rows of a table.

use super::super::prelude::*;
use super::super::reduction::shortened;
use super::rows::take_rows;

pub(super) const TABLE: &[Op] = &[
    op("aten.embedding.default", embedding),
    op("aten.embedding_renorm.default", embedding_renorm),
    op("aten.one_hot.default", one_hot),
];

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

/// A table whose rows at the indices are at most so long.
fn embedding_renorm(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (table, indices) = (args.tensor("self")?, args.tensor("indices")?);
    let (most, order) = (args.float_or("max_norm", 0.0)?, args.float_or("norm_type", 2.0)?);
    let short = shortened(cx, &table, 0, order, most)?;
    let rows = cx.reshape(&indices, &[indices.numel()])?;
    let rows = cx.convert(&rows, ElementType::I64)?;
    let dims = [table.dim(0), rows.dim(0)];
    let (row, used) = (cx.iota(ElementType::I64, &dims, 0)?, cx.broadcast(&rows, &dims, &[1])?);
    let hit = cx.compare(Cmp::Eq, &row, &used)?;
    let hit = cx.reduce(OpKind::Or, &hit, &[1], Scalar::Bool(false))?;
    let hit = cx.broadcast(&hit, &table.dims, &[0])?;
    one(cx.select(&hit, &short, &table)?)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn rows_that_are_not_looked_up_keep_their_length() {
        let arguments = vec![
            ("self", Floats(&[2, 1], vec![4.0, 4.0])),
            ("indices", Ints(&[2], vec![1, 1])),
            ("max_norm", Plain(json!({"as_float": 1.0}))),
            ("norm_type", Plain(json!({"as_float": 2.0}))),
        ];
        let found = evaluated("aten.embedding_renorm.default", arguments, &[(F32, &[2, 1])]);
        assert_eq!(found[0][0], 4.0);
        assert!((found[0][1] - 1.0).abs() < 1e-6, "{found:?}");
    }
}
