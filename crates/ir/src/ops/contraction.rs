//! Dots and convolutions.

use crate::table::Trait::{Deprecated, Pure};
use crate::table::{Entry, OpKind, op};

const CONVOLUTION_ATTRS: &str = "window_strides?: i64s, padding?: rows, lhs_dilation?: i64s, rhs_dilation?: i64s, \
     window_reversal?: bools, dimension_numbers: conv, feature_group_count: i64, batch_group_count: i64, \
     precision_config?: enums precision";
const DYNAMIC_CONV_ATTRS: &str = "window_strides?: i64s, lhs_dilation?: i64s, rhs_dilation?: i64s, \
     window_reversal?: bools, dimension_numbers: conv, feature_group_count: i64, batch_group_count: i64, \
     precision_config?: enums precision";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Convolution)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs(CONVOLUTION_ATTRS)
        .text("($lhs, $rhs) dim_numbers = {conv_dims}, window = {window}{attrs} : {fn}")
        .is(&[Pure])
        .doc("Dot products of a kernel with windows of the input."),
    op(OpKind::Dot)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("precision_config?: enums precision")
        .text("$lhs, $rhs{precision}{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("Product of vectors and matrices over the last and the first dimension."),
    op(OpKind::DotGeneral)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("dot_dimension_numbers: dot, precision_config?: enums precision, algorithm?: algorithm")
        .text("$lhs, $rhs, {dot_dims}{precision}{algorithm}{attrs} : {fn}")
        .is(&[Pure])
        .doc("Sums of products over contracting dimensions, for each index of the batching dimensions."),
    op(OpKind::DynamicConv)
        .values("lhs: tensor, rhs: tensor, padding: int", "result: tensor")
        .attrs(DYNAMIC_CONV_ATTRS)
        .is(&[Pure])
        .doc("As `convolution`, with the padding given by an operand."),
    op(OpKind::Einsum)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("einsum_config: str")
        .text("$lhs, $rhs, config = $einsum_config{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("Sum of products as an Einstein summation says."),
    op(OpKind::UnaryEinsum)
        .values("operand: tensor", "result: tensor")
        .attrs("einsum_config: str")
        .text("$operand, config = $einsum_config{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("Sum over dimensions as an Einstein summation says."),
];
