//! Shorthands for operations that move, repeat, cut and join.

use super::{BuildError, Builder};
use crate::attr::Attribute;
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{Dim, ElementType, TensorType, Type};

impl Builder<'_> {
    /// Repeats a value so that it has the shape given; `dims[i]` says which dimension of the result its dimension `i` is.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn broadcast_in_dim(
        &mut self,
        operand: ValueId,
        shape: &[u64],
        dims: &[i64],
    ) -> Result<ValueId, BuildError> {
        let result = self.reshaped(operand, shape)?;
        let attrs = [("broadcast_dimensions", Attribute::i64s(dims))];
        self.op_as(OpKind::BroadcastInDim, &[operand], attrs, result)
    }

    /// The same elements in the same order under another shape.
    ///
    /// # Errors
    ///
    /// When there are not as many elements.
    pub fn reshape(&mut self, operand: ValueId, shape: &[u64]) -> Result<ValueId, BuildError> {
        let result = self.reshaped(operand, shape)?;
        self.op_as(OpKind::Reshape, &[operand], [], result)
    }

    /// Permutes the dimensions.
    ///
    /// # Errors
    ///
    /// When it is no permutation.
    pub fn transpose(&mut self, operand: ValueId, permutation: &[i64]) -> Result<ValueId, BuildError> {
        self.op(OpKind::Transpose, &[operand], [("permutation", Attribute::i64s(permutation))])
    }

    /// Joins values along a dimension.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn concatenate(&mut self, operands: &[ValueId], dimension: i64) -> Result<ValueId, BuildError> {
        self.op(OpKind::Concatenate, operands, [("dimension", Attribute::i64(dimension))])
    }

    /// Cuts out a part.
    ///
    /// # Errors
    ///
    /// When the part is not inside.
    pub fn slice(
        &mut self,
        operand: ValueId,
        starts: &[i64],
        limits: &[i64],
        strides: &[i64],
    ) -> Result<ValueId, BuildError> {
        let attrs = [
            ("start_indices", Attribute::i64s(starts)),
            ("limit_indices", Attribute::i64s(limits)),
            ("strides", Attribute::i64s(strides)),
        ];
        self.op(OpKind::Slice, &[operand], attrs)
    }

    /// Adds elements of a value at both ends and between elements.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn pad(
        &mut self,
        operand: ValueId,
        value: ValueId,
        low: &[i64],
        high: &[i64],
        interior: &[i64],
    ) -> Result<ValueId, BuildError> {
        let attrs = [
            ("edge_padding_low", Attribute::i64s(low)),
            ("edge_padding_high", Attribute::i64s(high)),
            ("interior_padding", Attribute::i64s(interior)),
        ];
        self.op(OpKind::Pad, &[operand, value], attrs)
    }

    /// Counts from zero along a dimension.
    ///
    /// # Errors
    ///
    /// When the shape has no such dimension.
    pub fn iota(
        &mut self,
        element: ElementType,
        shape: &[u64],
        dimension: i64,
    ) -> Result<ValueId, BuildError> {
        let attrs = [("iota_dimension", Attribute::i64(dimension))];
        self.op_as(OpKind::Iota, &[], attrs, Type::tensor(shape, element))
    }

    fn reshaped(&self, operand: ValueId, shape: &[u64]) -> Result<Type, BuildError> {
        let dims: Vec<Dim> = shape.iter().copied().map(Dim::Static).collect();
        Ok(Type::Tensor(TensorType::new(dims, self.tensor_type(operand)?.element().clone())))
    }
}
