//! Reductions, windows, mapping and sorting: operations with a computation on scalars.

use crate::table::Trait::{EqualGroups, Pure};
use crate::table::{Entry, OpKind, op};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Map)
        .values("inputs*: tensor", "result: tensor")
        .attrs("dimensions: i64s")
        .regions("computation")
        .is(&[Pure])
        .doc("Applies a computation to corresponding elements."),
    op(OpKind::Reduce)
        .values("inputs*: tensor, init_values*: tensor", "result*: tensor")
        .attrs("dimensions: i64s")
        .regions("body")
        .text("custom")
        .is(&[Pure, EqualGroups])
        .doc("Folds a computation over dimensions, starting from initial values."),
    op(OpKind::ReduceWindow)
        .values("inputs*: tensor, init_values*: tensor", "result*: tensor")
        .attrs(
            "window_dimensions: i64s, window_strides?: i64s, base_dilations?: i64s, window_dilations?: i64s, padding?: rows",
        )
        .regions("body")
        .is(&[Pure, EqualGroups])
        .doc("Folds a computation over windows."),
    op(OpKind::SelectAndScatter)
        .values("operand: tensor, source: tensor, init_value: 0d tensor", "result: tensor")
        .attrs("window_dimensions?: i64s, window_strides?: i64s, padding?: rows")
        .regions("select, scatter")
        .is(&[Pure])
        .doc("Adds each source element where a computation selects in its window of the operand."),
    op(OpKind::Sort)
        .values("inputs*: tensor", "result*: tensor")
        .attrs("dimension: i64 = -1, is_stable: bool = false")
        .regions("comparator")
        .is(&[Pure])
        .doc("Sorts tensors together along a dimension by a comparison."),
];
