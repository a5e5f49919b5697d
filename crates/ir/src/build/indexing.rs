//! Gather and scatter.

use std::sync::Arc;

use super::{BuildError, Builder};
use crate::attr::{Attribute, GatherDims, ScatterDims};
use crate::module::{RegionId, ValueId};
use crate::table::OpKind;

impl Builder<'_> {
    /// Collects slices from the places that indices name.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn gather(
        &mut self,
        operand: ValueId,
        indices: ValueId,
        dims: GatherDims,
        slice_sizes: &[i64],
    ) -> Result<ValueId, BuildError> {
        let attrs = [
            ("dimension_numbers", Attribute::Gather(Arc::new(dims))),
            ("slice_sizes", Attribute::i64s(slice_sizes)),
        ];
        self.op(OpKind::Gather, &[operand, indices], attrs)
    }

    /// Combines updates with an operand at the places that indices name; the region says how, see
    /// [`Builder::reducer`].
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn scatter(
        &mut self,
        operand: ValueId,
        indices: ValueId,
        updates: ValueId,
        dims: ScatterDims,
        update: RegionId,
    ) -> Result<ValueId, BuildError> {
        let attrs = [("scatter_dimension_numbers", Attribute::Scatter(Arc::new(dims)))];
        let op = self.create(OpKind::Scatter, &[operand, indices, updates], attrs, vec![update], None)?;
        self.only_result(op)
    }
}
