//! Shorthands for operations on single elements; those that [`Builder::op`] alone makes are not repeated here.

use super::{BuildError, Builder};
use crate::attr::{Attribute, ComparisonDirection, ComparisonType};
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{ElementType, Type};

impl Builder<'_> {
    /// An operation on one value.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn unary(&mut self, kind: OpKind, operand: ValueId) -> Result<ValueId, BuildError> {
        self.op(kind, &[operand], [])
    }

    /// An operation on two values.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn binary(&mut self, kind: OpKind, lhs: ValueId, rhs: ValueId) -> Result<ValueId, BuildError> {
        self.op(kind, &[lhs, rhs], [])
    }

    /// The same numbers as another element type; the value itself where it has that type already.
    ///
    /// # Errors
    ///
    /// When the operand is no tensor.
    pub fn convert(&mut self, operand: ValueId, element: ElementType) -> Result<ValueId, BuildError> {
        let ty = self.tensor_type(operand)?;
        if ty.element().plain() == Some(element) {
            return Ok(operand);
        }
        let result = Type::Tensor(ty.with_element(element));
        self.op_as(OpKind::Convert, &[operand], [], result)
    }

    /// Compares in the order that the element type has.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn compare(
        &mut self,
        direction: ComparisonDirection,
        lhs: ValueId,
        rhs: ValueId,
    ) -> Result<ValueId, BuildError> {
        let order = match self.tensor_type(lhs)?.element().storage() {
            Some(ElementType::Float(_) | ElementType::Complex(_)) => ComparisonType::Float,
            Some(ElementType::Int(int)) if int.is_signed() => ComparisonType::Signed,
            _ => ComparisonType::Unsigned,
        };
        let direction = ("comparison_direction", Attribute::enumeration(direction));
        self.op(OpKind::Compare, &[lhs, rhs], [direction, ("compare_type", Attribute::enumeration(order))])
    }

    /// One of two values, as a truth value says.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn select(
        &mut self,
        pred: ValueId,
        on_true: ValueId,
        on_false: ValueId,
    ) -> Result<ValueId, BuildError> {
        self.op(OpKind::Select, &[pred, on_true, on_false], [])
    }
}
