//! Constants.

use warpforge_tensor::{Scalar, Tensor};

use super::{BuildError, Builder};
use crate::attr::{DenseElements, ElementsError};
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{ElementType, TensorType};

impl Builder<'_> {
    /// A constant.
    ///
    /// # Errors
    ///
    /// When the constant breaks a rule.
    pub fn constant(&mut self, value: DenseElements) -> Result<ValueId, BuildError> {
        self.op(OpKind::Constant, &[], [("value", value.into())])
    }

    /// A scalar constant, rounded or wrapped to the element type.
    ///
    /// # Errors
    ///
    /// When the element type has no such number.
    pub fn scalar(&mut self, element: ElementType, value: impl Into<Scalar>) -> Result<ValueId, BuildError> {
        self.splat(&TensorType::fixed(&[], element), value)
    }

    /// A constant of a type whose elements are all equal.
    ///
    /// # Errors
    ///
    /// When the type has unknown dimensions or elements that are no plain numbers.
    pub fn splat(&mut self, ty: &TensorType, value: impl Into<Scalar>) -> Result<ValueId, BuildError> {
        let value = splat(ty, value.into())?;
        self.constant(value)
    }

    /// A constant of a value's type whose elements are all equal.
    ///
    /// # Errors
    ///
    /// As [`Builder::splat`].
    pub fn splat_like(&mut self, like: ValueId, value: impl Into<Scalar>) -> Result<ValueId, BuildError> {
        let ty = self.tensor_type(like)?.clone();
        self.splat(&ty, value)
    }

    /// A vector of 64-bit integers.
    ///
    /// # Errors
    ///
    /// When the constant breaks a rule.
    pub fn i64s(&mut self, values: &[i64]) -> Result<ValueId, BuildError> {
        let value = DenseElements::i64s(&[values.len() as u64], values)?;
        self.constant(value)
    }
}

/// A constant whose elements are all `value`, rounded or wrapped to the element type.
fn splat(ty: &TensorType, value: Scalar) -> Result<DenseElements, ElementsError> {
    let element = ty.element().plain().ok_or(ElementsError::NotConstantType)?;
    let one = match (element, value.rounded_to(element)) {
        // A narrow signed integer is sign-extended into its byte here.
        (ElementType::Int(int), Scalar::Int(value)) if int.bits() < 8 => vec![value as u8],
        (_, value) => {
            let one = Tensor::scalar(element, value).map_err(|_| ElementsError::NotConstantType)?;
            one.bytes().to_vec()
        }
    };
    DenseElements::splat(ty.clone(), one)
}
