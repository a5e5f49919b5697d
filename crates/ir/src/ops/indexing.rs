//! Gather and scatter.

use crate::table::Trait::{Deprecated, EqualGroups, Pure};
use crate::table::{Entry, OpKind, op};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::DynamicGather)
        .values("operand: tensor, start_indices: int, slice_sizes: 1d int|index", "result: tensor")
        .attrs("dimension_numbers: gather, indices_are_sorted: bool = false")
        .is(&[Pure])
        .doc("As `gather`, with the sizes of the slices given by an operand."),
    op(OpKind::Gather)
        .values("operand: tensor, start_indices: int|index", "result: tensor")
        .attrs("dimension_numbers: gather, slice_sizes: i64s, indices_are_sorted: bool = false")
        .is(&[Pure])
        .doc("Collects slices of the operand from the places that the indices name."),
    op(OpKind::Scatter)
        .values("inputs*: tensor, scatter_indices: int|index, updates*: tensor", "result*: tensor")
        .attrs("scatter_dimension_numbers: scatter, indices_are_sorted: bool = false, unique_indices: bool = false")
        .regions("update_computation")
        .is(&[Pure, EqualGroups])
        .doc("Combines updates with the inputs at the places that the indices name."),
    op(OpKind::TorchIndexSelect)
        .values("operand: tensor, index: tensor", "result: tensor")
        .attrs("dim: i64, batch_dims: i64")
        .is(&[Pure, Deprecated])
        .doc("Collects slices along one dimension."),
];
