//! Operations on single elements.

use warpforge_ir::attr::ComparisonDirection;
use warpforge_ir::{ElementType, OpKind};
use warpforge_tensor::Scalar;

use super::Cx;
use crate::lower::refusal::Lowered;
use crate::lower::value::Tensor;

impl Cx<'_> {
    /// An operation on one tensor that keeps shape and type.
    pub(crate) fn unary(&mut self, kind: OpKind, x: &Tensor) -> Lowered<Tensor> {
        let id = self.b.unary(kind, x.id)?;
        Ok(self.tensor(id, x.dtype, x.dims.clone()))
    }

    /// An operation on one tensor that keeps the shape and gives another type.
    pub(crate) fn unary_to(&mut self, kind: OpKind, x: &Tensor, dtype: ElementType) -> Lowered<Tensor> {
        let id = self.b.unary(kind, x.id)?;
        Ok(self.tensor(id, dtype, x.dims.clone()))
    }

    /// An operation on two tensors of one shape and type.
    pub(crate) fn binary(&mut self, kind: OpKind, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        let id = self.b.binary(kind, a.id, b.id)?;
        Ok(self.tensor(id, a.dtype, a.dims.clone()))
    }

    pub(crate) fn add(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Subtract, a, b)
    }

    pub(crate) fn mul(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Multiply, a, b)
    }

    pub(crate) fn div(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Divide, a, b)
    }

    pub(crate) fn max(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Maximum, a, b)
    }

    pub(crate) fn min(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Minimum, a, b)
    }

    pub(crate) fn and(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::And, a, b)
    }

    pub(crate) fn or(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        self.binary(OpKind::Or, a, b)
    }

    pub(crate) fn not(&mut self, a: &Tensor) -> Lowered<Tensor> {
        self.unary(OpKind::Not, a)
    }

    pub(crate) fn neg(&mut self, a: &Tensor) -> Lowered<Tensor> {
        self.unary(OpKind::Negate, a)
    }

    /// An operation on a tensor and one number.
    pub(crate) fn with_number(
        &mut self,
        kind: OpKind,
        a: &Tensor,
        number: impl Into<Scalar>,
    ) -> Lowered<Tensor> {
        let number = self.splat_like(a, number)?;
        self.binary(kind, a, &number)
    }

    /// Compares two tensors of one shape and type.
    pub(crate) fn compare(&mut self, how: ComparisonDirection, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        let id = self.b.compare(how, a.id, b.id)?;
        Ok(self.tensor(id, ElementType::Bool, a.dims.clone()))
    }

    /// Compares a tensor with one number.
    pub(crate) fn compare_number(
        &mut self,
        how: ComparisonDirection,
        a: &Tensor,
        number: impl Into<Scalar>,
    ) -> Lowered<Tensor> {
        let number = self.splat_like(a, number)?;
        self.compare(how, a, &number)
    }

    /// Where elements are NaN.
    pub(crate) fn is_nan(&mut self, a: &Tensor) -> Lowered<Tensor> {
        self.compare(ComparisonDirection::Ne, a, a)
    }

    /// Elements of one tensor where a condition holds and of another where it does not; all of one shape.
    pub(crate) fn select(&mut self, condition: &Tensor, yes: &Tensor, no: &Tensor) -> Lowered<Tensor> {
        let id = self.b.select(condition.id, yes.id, no.id)?;
        Ok(self.tensor(id, yes.dtype, yes.dims.clone()))
    }

    /// The same numbers as another element type; the tensor itself where it has that type already.
    pub(crate) fn convert(&mut self, x: &Tensor, dtype: ElementType) -> Lowered<Tensor> {
        if x.dtype == dtype {
            return Ok(x.clone());
        }
        let id = self.b.convert(x.id, dtype)?;
        Ok(self.tensor(id, dtype, x.dims.clone()))
    }
}
