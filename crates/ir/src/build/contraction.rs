//! Dots and convolutions.

use std::sync::Arc;

use super::{BuildError, Builder};
use crate::attr::{Attribute, ConvDims, DenseElements, DotDims};
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{Element, Type};
use crate::verify::infer;

/// What a convolution does beside multiplying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Which dimension means what.
    pub dims: ConvDims,
    /// Distance of windows, by spatial dimension.
    pub strides: Vec<i64>,
    /// Elements added before and after, by spatial dimension.
    pub padding: Vec<(i64, i64)>,
    /// Distance of the input's elements.
    pub lhs_dilation: Vec<i64>,
    /// Distance of the kernel's elements.
    pub rhs_dilation: Vec<i64>,
    /// Groups of features.
    pub feature_groups: i64,
    /// Groups of the batch.
    pub batch_groups: i64,
}

impl Convolution {
    /// A convolution with strides and dilations of one, no padding and one group.
    pub fn new(dims: ConvDims) -> Self {
        let ones = vec![1; dims.input_spatial.len()];
        Self {
            padding: vec![(0, 0); ones.len()],
            strides: ones.clone(),
            lhs_dilation: ones.clone(),
            rhs_dilation: ones,
            feature_groups: 1,
            batch_groups: 1,
            dims,
        }
    }

    fn attrs(&self) -> Result<[(&'static str, Attribute); 7], BuildError> {
        let padding: Vec<i64> = self.padding.iter().flat_map(|(low, high)| [*low, *high]).collect();
        Ok([
            ("window_strides", Attribute::i64s(self.strides.as_slice())),
            ("padding", DenseElements::i64s(&[self.padding.len() as u64, 2], &padding)?.into()),
            ("lhs_dilation", Attribute::i64s(self.lhs_dilation.as_slice())),
            ("rhs_dilation", Attribute::i64s(self.rhs_dilation.as_slice())),
            ("dimension_numbers", Attribute::Conv(Arc::new(self.dims.clone()))),
            ("feature_group_count", Attribute::i64(self.feature_groups)),
            ("batch_group_count", Attribute::i64(self.batch_groups)),
        ])
    }
}

impl Builder<'_> {
    /// Sums of products; `element` is that of the result, or `None` for that of the left operand.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn dot_general(
        &mut self,
        lhs: ValueId,
        rhs: ValueId,
        dims: DotDims,
        element: Option<Element>,
    ) -> Result<ValueId, BuildError> {
        let attrs = [("dot_dimension_numbers", Attribute::Dot(Arc::new(dims)))];
        self.with_element(OpKind::DotGeneral, [lhs, rhs], attrs, element)
    }

    /// Dot products of a kernel with windows of the input; `element` as for [`Builder::dot_general`].
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn convolution(
        &mut self,
        lhs: ValueId,
        rhs: ValueId,
        convolution: &Convolution,
        element: Option<Element>,
    ) -> Result<ValueId, BuildError> {
        self.with_element(OpKind::Convolution, [lhs, rhs], convolution.attrs()?, element)
    }

    /// Infers the shape and gives it the elements asked for.
    fn with_element<const N: usize>(
        &mut self,
        kind: OpKind,
        operands: [ValueId; 2],
        attrs: [(&'static str, Attribute); N],
        element: Option<Element>,
    ) -> Result<ValueId, BuildError> {
        let Some(element) = element else { return self.op(kind, &operands, attrs) };
        let dict = attrs.iter().cloned().collect();
        let inferred = infer(self.module, kind, &operands, &dict, &[], None);
        let inferred = inferred.map_err(|why| self.refused(why))?;
        let result = match inferred.first() {
            Some(Type::Tensor(shape)) => Type::Tensor(shape.with_element(element)),
            _ => return self.op(kind, &operands, attrs),
        };
        self.op_as(kind, &operands, attrs, result)
    }
}
