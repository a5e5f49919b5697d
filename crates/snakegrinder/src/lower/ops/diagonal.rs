//! Diagonals: vectors as diagonals of matrices, and parts of matrices on their diagonals.

use super::prelude::*;
use super::view::diagonal_of;

pub(super) const TABLE: &[Op] = &[
    op("aten.block_diag.default", block_diag),
    op("aten.diag.default", diag),
    op("aten.diag_embed.default", |cx, args| {
        let x = args.tensor("self")?;
        let (first, second) = (args.int_or("dim1", -2)?, args.int_or("dim2", -1)?);
        let offset = args.int_or("offset", 0)?;
        one(embedded(cx, &x, offset, first, second)?)
    }),
    op("aten.diagflat.default", |cx, args| {
        let x = args.tensor("self")?;
        let flat = cx.reshape(&x, &[x.numel()])?;
        one(embedded(cx, &flat, args.int_or("offset", 0)?, 0, 1)?)
    }),
    op("aten.diagonal_scatter.default", diagonal_scatter),
];

/// The diagonal of a matrix, or the matrix that has a vector as its diagonal.
fn diag(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, offset) = (args.tensor("self")?, args.int_or("diagonal", 0)?);
    match x.rank() {
        1 => one(embedded(cx, &x, offset, 0, 1)?),
        2 => one(diagonal_of(cx, &x, 0, 1, offset)?),
        rank => refuse(format!("a diagonal of {rank} dimensions")),
    }
}

/// Vectors as the diagonals of matrices of zeros.
fn embedded(cx: &mut Cx<'_>, x: &Tensor, offset: i64, first: i64, second: i64) -> Lowered<Tensor> {
    let rank = x.rank() + 1;
    let (first, second) = (cx.axis(first, rank)?, cx.axis(second, rank)?);
    if x.rank() == 0 || first == second {
        return refuse("a diagonal of one dimension");
    }
    let length = x.dim(x.rank() - 1);
    let size = length.add(&Size::Int(offset.abs()));
    let (low, high) = (Size::Int((-offset).max(0)), Size::Int(offset.max(0)));
    // Along the rows, so that row r holds element r shifted by the offset.
    let padded = cx.pad_axis(x, x.rank() - 1, &low, &high, 0, Scalar::zero(x.dtype))?;
    let mut dims = x.dims[..x.rank() - 1].to_vec();
    dims.extend([size.clone(), size]);
    let map: Vec<usize> = (0..x.rank()).collect();
    let wide = cx.broadcast(&padded, &dims, &map)?;
    let mask = cx.index_mask(&dims, rank - 2, rank - 1, Cmp::Eq, &Size::Int(offset))?;
    let zero = cx.splat_like(&wide, Scalar::zero(x.dtype))?;
    let matrix = cx.select(&mask, &wide, &zero)?;
    placed(cx, &matrix, first, second)
}

/// The last two dimensions put where they belong, the others in order around them.
fn placed(cx: &mut Cx<'_>, matrix: &Tensor, first: usize, second: usize) -> Lowered<Tensor> {
    let rank = matrix.rank();
    let mut order: Vec<usize> = (0..rank - 2).collect();
    let mut places = [(first, rank - 2), (second, rank - 1)];
    places.sort_unstable();
    for (place, from) in places {
        order.insert(place, from);
    }
    cx.transpose(matrix, &order)
}

/// A tensor with its diagonals replaced.
fn diagonal_scatter(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, source) = (args.tensor("self")?, args.tensor("src")?);
    let offset = args.int_or("offset", 0)?;
    let first = cx.axis(args.int_or("dim1", 0)?, x.rank())?;
    let second = cx.axis(args.int_or("dim2", 1)?, x.rank())?;
    if x.rank() < 2 || first == second || source.rank() + 1 != x.rank() {
        return refuse("a diagonal of one dimension");
    }
    let sizes = cx.known(&[x.dim(first), x.dim(second)])?;
    // Row r holds the element r - start of the diagonal, where it has one.
    let start = (-offset).max(0);
    let last = source.rank() - 1;
    let length = cx.known(&[source.dim(last)])?[0];
    let after = Size::Int(sizes[0] - start - length);
    let source = cx.convert(&source, x.dtype)?;
    let rows = cx.pad_axis(&source, last, &Size::Int(start), &after, 0, Scalar::zero(x.dtype))?;
    let mut order: Vec<usize> = (0..x.rank()).filter(|axis| *axis != first && *axis != second).collect();
    order.extend([first, second]);
    let transposed = cx.transpose(&x, &order)?;
    let map: Vec<usize> = (0..source.rank()).collect();
    let wide = cx.broadcast(&rows, &transposed.dims.clone(), &map)?;
    let mask = cx.index_mask(&transposed.dims.clone(), last, last + 1, Cmp::Eq, &Size::Int(offset))?;
    let replaced = cx.select(&mask, &wide, &transposed)?;
    one(placed(cx, &replaced, first, second)?)
}

/// Matrices along the diagonal of one of zeros; numbers and vectors are matrices of one row.
fn block_diag(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let tensors = args.tensors("tensors")?;
    let operands: Vec<Operand> = tensors.iter().map(Operand::from).collect();
    let dtype = result_type(&operands)?;
    let mut blocks = Vec::new();
    for x in &tensors {
        let rows = if x.rank() == 2 { x.dim(0) } else { Size::Int(1) };
        let columns = if x.rank() == 0 { Size::Int(1) } else { x.dim(x.rank() - 1) };
        let block = cx.reshape(x, &[rows, columns])?;
        blocks.push(cx.convert(&block, dtype)?);
    }
    let width = blocks.iter().fold(Size::Int(0), |sum, block| sum.add(&block.dim(1)));
    let mut before = Size::Int(0);
    let mut rows = Vec::new();
    for block in &blocks {
        let after = width.sub(&before).sub(&block.dim(1));
        rows.push(cx.pad_axis(block, 1, &before, &after, 0, Scalar::zero(dtype))?);
        before = before.add(&block.dim(1));
    }
    one(cx.concatenate(&rows, 0)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn a_vector_becomes_a_matrix_and_a_matrix_its_diagonal() {
        let plain = |diagonal: i64| Plain(json!({"as_int": diagonal}));
        let vector = vec![("self", Floats(&[2], vec![3.0, 4.0])), ("diagonal", plain(-1))];
        let found = evaluated("aten.diag.default", vector, &[(F32, &[3, 3])]);
        assert_eq!(found, [[0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0]]);
        let matrix =
            vec![("self", Floats(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])), ("diagonal", plain(1))];
        assert_eq!(evaluated("aten.diag.default", matrix, &[(F32, &[2])]), [[2.0, 6.0]]);
    }

    #[test]
    fn a_diagonal_is_replaced_above_and_below() {
        for (offset, expected) in [(1, [0.0, 8.0, 0.0, 0.0, 0.0, 9.0]), (-1, [0.0, 0.0, 0.0, 8.0, 0.0, 0.0])]
        {
            let source = if offset == 1 { Floats(&[2], vec![8.0, 9.0]) } else { Floats(&[1], vec![8.0]) };
            let arguments = vec![
                ("self", Floats(&[2, 3], vec![0.0; 6])),
                ("src", source),
                ("offset", Plain(json!({"as_int": offset}))),
            ];
            assert_eq!(evaluated("aten.diagonal_scatter.default", arguments, &[(F32, &[2, 3])]), [expected]);
        }
    }

    #[test]
    fn blocks_stand_on_the_diagonal() {
        let blocks =
            List(vec![Floats(&[1, 2], vec![1.0, 2.0]), Floats(&[], vec![3.0]), Floats(&[1], vec![4.0])]);
        let found = evaluated("aten.block_diag.default", vec![("tensors", blocks)], &[(F32, &[3, 4])]);
        assert_eq!(found, [[1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 4.0]]);
    }
}
