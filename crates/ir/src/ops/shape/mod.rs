//! Operations that move, repeat, cut and join elements without computing on them.

mod broadcasting;
mod cutting;
mod moving;

use crate::table::Trait::{Deprecated, Elementwise, Pure, Unspecified};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, TensorType};
use crate::verify::Cx;

const OPERANDS_FN: &str = "$operand{attrs} : {fn}";
const SHAPED: &str = "$operand, $output_shape{attrs} : {fn}";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::BitcastConvert)
        .values("operand: tensor|axisquant", "result: tensor|axisquant")
        .text(OPERANDS_FN)
        .is(&[Pure])
        .rule(moving::bitcast_convert).doc("The same bits as another element type; a narrower one adds a last dimension."),
    op(OpKind::Broadcast)
        .values("operand: tensor", "result: tensor|axisquant")
        .attrs("broadcast_sizes: i64s")
        .text("$operand, sizes = $broadcast_sizes{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .rule(broadcasting::broadcast).doc("Repeats the operand along new leading dimensions."),
    op(OpKind::BroadcastInDim)
        .values("operand: tensor|axisquant", "result: sized tensor|axisquant")
        .attrs("broadcast_dimensions: i64s")
        .text("$operand, dims = $broadcast_dimensions{attrs} : {fn}")
        .is(&[Pure])
        .rule(broadcasting::broadcast_in_dim).doc("Repeats the operand along new dimensions and along its dimensions of size one."),
    op(OpKind::Concatenate)
        .values("inputs*: tensor", "result: tensor")
        .attrs("dimension: i64")
        .text("$inputs, dim = $dimension{attrs} : {fn}")
        .is(&[Pure])
        .rule(cutting::concatenate).doc("Joins tensors along a dimension."),
    op(OpKind::Constant)
        .values("", "output: static tensor|axisquant")
        .attrs("value: elements")
        .text("custom")
        .is(&[Pure])
        .rule(broadcasting::constant).doc("A constant tensor."),
    op(OpKind::DynamicBroadcastInDim)
        .values("operand: tensor|axisquant, output_dimensions: static 1d int|index", "result: tensor|axisquant")
        .attrs(
            "broadcast_dimensions: i64s, known_expanding_dimensions?: i64s, known_nonexpanding_dimensions?: i64s",
        )
        .text("$operand, $output_dimensions, dims = $broadcast_dimensions{attrs} : {fn}")
        .is(&[Pure])
        .rule(broadcasting::dynamic_broadcast_in_dim).doc("As `broadcast_in_dim`, with the result's shape given by an operand."),
    op(OpKind::DynamicIota)
        .values("output_shape: static 1d int|index", "result: tensor")
        .attrs("iota_dimension: i64")
        .text("$output_shape, dim = $iota_dimension{attrs} : {fn}")
        .is(&[Pure])
        .rule(broadcasting::dynamic_iota).doc("As `iota`, with the result's shape given by an operand."),
    op(OpKind::DynamicPad)
        .values(
            "operand: tensor, padding_value: 0d tensor, edge_padding_low: static 1d int|index, edge_padding_high: static 1d int|index, interior_padding: static 1d int|index",
            "result: tensor",
        )
        .text("$operand, $padding_value, $edge_padding_low, $edge_padding_high, $interior_padding{attrs} : {fn}")
        .is(&[Pure])
        .rule(cutting::dynamic_pad).doc("As `pad`, with the amounts given by operands."),
    op(OpKind::DynamicReshape)
        .values("operand: tensor|axisquant, output_shape: static 1d int|index", "result: tensor|axisquant")
        .text(SHAPED)
        .is(&[Pure])
        .rule(moving::dynamic_reshape).doc("As `reshape`, with the result's shape given by an operand."),
    op(OpKind::DynamicSlice)
        .values("operand: tensor, start_indices*: 0d int", "result: tensor")
        .attrs("slice_sizes: i64s")
        .text("$operand, $start_indices, sizes = $slice_sizes{attrs} : {fn}")
        .is(&[Pure])
        .rule(cutting::dynamic_slice).doc("Cuts out a part of fixed size that starts where operands say."),
    op(OpKind::DynamicUpdateSlice)
        .values("operand: tensor, update: tensor, start_indices*: 0d int", "result: tensor")
        .text("$operand, $update, $start_indices{attrs} : {fn}")
        .is(&[Pure])
        .rule(cutting::dynamic_update_slice).doc("Replaces a part of the operand that starts where operands say."),
    op(OpKind::GetDimensionSize)
        .values("operand: tensor|axisquant", "result: i32")
        .attrs("dimension: i64")
        .text("$operand, dim = $dimension{attrs} : {fn}")
        .is(&[Pure])
        .rule(moving::get_dimension_size).doc("The size of a dimension as a scalar."),
    op(OpKind::Iota)
        .values("", "output: static int|float|complex|quant")
        .attrs("iota_dimension: i64")
        .text("dim = $iota_dimension{attrs} : {results}")
        .is(&[Pure])
        .rule(broadcasting::iota).doc("Counts from zero along a dimension."),
    op(OpKind::Pad)
        .values("operand: tensor, padding_value: 0d tensor", "result: tensor")
        .attrs("edge_padding_low: i64s, edge_padding_high: i64s, interior_padding: i64s")
        .text(
            "$operand, $padding_value, low = $edge_padding_low, high = $edge_padding_high, interior = $interior_padding{attrs} : {fn}",
        )
        .is(&[Pure])
        .rule(cutting::pad).doc("Adds elements at both ends and between elements; a negative amount takes away."),
    op(OpKind::RealDynamicSlice)
        .values(
            "operand: tensor, start_indices: 1d int|index, limit_indices: 1d int|index, strides: 1d int|index",
            "result: tensor",
        )
        .text("$operand, $start_indices, $limit_indices, $strides{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .rule(cutting::real_dynamic_slice).doc("As `slice`, with starts, limits and strides given by operands."),
    op(OpKind::Reshape)
        .values("operand: tensor|axisquant", "result: sized tensor|axisquant")
        .text(OPERANDS_FN)
        .is(&[Pure])
        .rule(moving::reshape).doc("The same elements in the same order under another shape."),
    op(OpKind::Reverse)
        .values("operand: tensor", "result: tensor")
        .attrs("dimensions: i64s")
        .text("$operand, dims = $dimensions{attrs} : {same}")
        .is(&[Pure])
        .rule(moving::reverse).doc("Reverses the order along dimensions."),
    op(OpKind::SetDimensionSize)
        .values("operand: tensor, size: i32", "result: tensor")
        .attrs("dimension: i64")
        .text("$operand, $size, dim = $dimension{attrs} : {fn}")
        .is(&[Pure, Unspecified])
        .rule(moving::set_dimension_size).doc("Makes a dimension dynamic with a given size and its old size as the bound."),
    op(OpKind::Slice)
        .values("operand: tensor", "result: tensor")
        .attrs("start_indices: i64s, limit_indices: i64s, strides: i64s")
        .text("$operand {slices}{attrs} : {fn}")
        .is(&[Pure])
        .rule(cutting::slice).doc("Cuts out a part, with strides."),
    op(OpKind::Transpose)
        .values("operand: tensor|axisquant", "result: tensor|axisquant")
        .attrs("permutation: i64s")
        .text("$operand, dims = $permutation{attrs} : {fn}")
        .is(&[Pure])
        .rule(moving::transpose).doc("Permutes the dimensions."),
    op(OpKind::OptimizationBarrier)
        .values("operand*: tensor|token", "result*: tensor|token")
        .text("custom")
        .is(&[Pure, Elementwise])
        .rule(moving::barrier).doc("The operands unchanged, all computed before anything that uses one."),
];

/// A size that is known when it is not negative.
fn size_of(dim: i64) -> Dim {
    u64::try_from(dim).map_or(Dim::Dynamic, Dim::Static)
}

/// An operand that gives a shape has one element for each dimension of a tensor. When it is a constant, the tensor has
/// that shape.
fn check_shape_operand(cx: &mut Cx<'_>, label: &'static str, operand: usize, result: &TensorType) {
    let Some(shape) = cx.tensor(operand) else { return };
    let fits = shape.dims().first() == Some(&Dim::Static(result.rank() as u64));
    if !cx.check(fits, label, || {
        format!("{shape} does not give the shape of a tensor of rank {}", result.rank())
    }) {
        return;
    }
    let Some(sizes) = cx.constant_ints(operand) else { return };
    let same =
        sizes.iter().zip(result.dims()).all(|(size, dim)| *size >= 0 && size_of(*size).compatible(*dim));
    cx.check(same, label, || format!("{result} has not the shape {sizes:?}"));
}
