//! Operations that move, repeat, cut and join elements without computing on them.

use crate::table::Trait::{Deprecated, Elementwise, Pure, Unspecified};
use crate::table::{Entry, OpKind, op};

const OPERANDS_FN: &str = "$operand{attrs} : {fn}";
const SHAPED: &str = "$operand, $output_shape{attrs} : {fn}";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::BitcastConvert)
        .values("operand: tensor", "result: tensor")
        .text(OPERANDS_FN)
        .is(&[Pure])
        .doc("The same bits as another element type; a narrower one adds a last dimension."),
    op(OpKind::Broadcast)
        .values("operand: tensor", "result: tensor")
        .attrs("broadcast_sizes: i64s")
        .text("$operand, sizes = $broadcast_sizes{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("Repeats the operand along new leading dimensions."),
    op(OpKind::BroadcastInDim)
        .values("operand: tensor", "result: tensor")
        .attrs("broadcast_dimensions: i64s")
        .text("$operand, dims = $broadcast_dimensions{attrs} : {fn}")
        .is(&[Pure])
        .doc("Repeats the operand along new dimensions and along its dimensions of size one."),
    op(OpKind::Concatenate)
        .values("inputs*: tensor", "result: tensor")
        .attrs("dimension: i64")
        .text("$inputs, dim = $dimension{attrs} : {fn}")
        .is(&[Pure])
        .doc("Joins tensors along a dimension."),
    op(OpKind::Constant)
        .values("", "output: tensor")
        .attrs("value: elements")
        .text("custom")
        .is(&[Pure])
        .doc("A constant tensor."),
    op(OpKind::DynamicBroadcastInDim)
        .values("operand: tensor, output_dimensions: 1d int|index", "result: tensor")
        .attrs(
            "broadcast_dimensions: i64s, known_expanding_dimensions?: i64s, known_nonexpanding_dimensions?: i64s",
        )
        .text("$operand, $output_dimensions, dims = $broadcast_dimensions{attrs} : {fn}")
        .is(&[Pure])
        .doc("As `broadcast_in_dim`, with the result's shape given by an operand."),
    op(OpKind::DynamicIota)
        .values("output_shape: 1d int|index", "result: int|float|complex|quant")
        .attrs("iota_dimension: i64")
        .text("$output_shape, dim = $iota_dimension{attrs} : {fn}")
        .is(&[Pure])
        .doc("As `iota`, with the result's shape given by an operand."),
    op(OpKind::DynamicPad)
        .values(
            "operand: tensor, padding_value: 0d tensor, edge_padding_low: 1d int|index, edge_padding_high: 1d int|index, interior_padding: 1d int|index",
            "result: tensor",
        )
        .text("$operand, $padding_value, $edge_padding_low, $edge_padding_high, $interior_padding{attrs} : {fn}")
        .is(&[Pure])
        .doc("As `pad`, with the amounts given by operands."),
    op(OpKind::DynamicReshape)
        .values("operand: tensor, output_shape: 1d int|index", "result: tensor")
        .text(SHAPED)
        .is(&[Pure])
        .doc("As `reshape`, with the result's shape given by an operand."),
    op(OpKind::DynamicSlice)
        .values("operand: tensor, start_indices*: 0d int", "result: tensor")
        .attrs("slice_sizes: i64s")
        .text("$operand, $start_indices, sizes = $slice_sizes{attrs} : {fn}")
        .is(&[Pure])
        .doc("Cuts out a part of fixed size that starts where operands say."),
    op(OpKind::DynamicUpdateSlice)
        .values("operand: tensor, update: tensor, start_indices*: 0d int", "result: tensor")
        .text("$operand, $update, $start_indices{attrs} : {fn}")
        .is(&[Pure])
        .doc("Replaces a part of the operand that starts where operands say."),
    op(OpKind::GetDimensionSize)
        .values("operand: tensor", "result: 0d int")
        .attrs("dimension: i64")
        .text("$operand, dim = $dimension{attrs} : {fn}")
        .is(&[Pure])
        .doc("The size of a dimension as a scalar."),
    op(OpKind::Iota)
        .values("", "output: int|float|complex|quant")
        .attrs("iota_dimension: i64")
        .text("dim = $iota_dimension{attrs} : {results}")
        .is(&[Pure])
        .doc("Counts from zero along a dimension."),
    op(OpKind::Pad)
        .values("operand: tensor, padding_value: 0d tensor", "result: tensor")
        .attrs("edge_padding_low: i64s, edge_padding_high: i64s, interior_padding: i64s")
        .text(
            "$operand, $padding_value, low = $edge_padding_low, high = $edge_padding_high, interior = $interior_padding{attrs} : {fn}",
        )
        .is(&[Pure])
        .doc("Adds elements at both ends and between elements; a negative amount takes away."),
    op(OpKind::RealDynamicSlice)
        .values(
            "operand: tensor, start_indices: 1d int|index, limit_indices: 1d int|index, strides: 1d int|index",
            "result: tensor",
        )
        .text("$operand, $start_indices, $limit_indices, $strides{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("As `slice`, with starts, limits and strides given by operands."),
    op(OpKind::Reshape)
        .values("operand: tensor", "result: tensor")
        .text(OPERANDS_FN)
        .is(&[Pure])
        .doc("The same elements in the same order under another shape."),
    op(OpKind::Reverse)
        .values("operand: tensor", "result: tensor")
        .attrs("dimensions: i64s")
        .text("$operand, dims = $dimensions{attrs} : {same}")
        .is(&[Pure])
        .doc("Reverses the order along dimensions."),
    op(OpKind::SetDimensionSize)
        .values("operand: tensor, size: 0d int", "result: tensor")
        .attrs("dimension: i64")
        .text("$operand, $size, dim = $dimension{attrs} : {fn}")
        .is(&[Pure, Unspecified])
        .doc("Makes a dimension dynamic with a given size and its old size as the bound."),
    op(OpKind::Slice)
        .values("operand: tensor", "result: tensor")
        .attrs("start_indices: i64s, limit_indices: i64s, strides: i64s")
        .text("$operand {slices}{attrs} : {fn}")
        .is(&[Pure])
        .doc("Cuts out a part, with strides."),
    op(OpKind::Transpose)
        .values("operand: tensor", "result: tensor")
        .attrs("permutation: i64s")
        .text("$operand, dims = $permutation{attrs} : {fn}")
        .is(&[Pure])
        .doc("Permutes the dimensions."),
    op(OpKind::OptimizationBarrier)
        .values("operand*: tensor|token|tuple|buffer", "result*: tensor|token|tuple|buffer")
        .text("custom")
        .is(&[Pure, Elementwise])
        .doc("The operands unchanged, all computed before anything that uses one."),
];
