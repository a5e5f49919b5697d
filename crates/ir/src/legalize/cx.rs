//! One operation while it is replaced.

use super::expr::{Emitter, Expr};
use super::{Rule, rule_of};
use crate::attr::Attribute;
use crate::build::{BuildError, Builder};
use crate::module::{OpId, OpRef, ValueId};
use crate::table::OpKind;
use crate::types::{Dim, ElementType, TensorType, Type};
use warpforge_tensor::Scalar;

/// Why an operation is not replaced: what StableHLO has nothing for.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) String);

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        Self(error.to_string())
    }
}

/// The operation, its operands, and the place where the new operations go.
pub(super) struct Cx<'b, 'm> {
    pub(super) b: &'b mut Builder<'m>,
    op: OpId,
    pub(super) operands: Vec<ValueId>,
    /// Sizes of the first operand, once they were asked for.
    sizes: Option<ValueId>,
}

impl<'b, 'm> Cx<'b, 'm> {
    pub(super) fn new(b: &'b mut Builder<'m>, op: OpId, operands: Vec<ValueId>) -> Self {
        Self { b, op, operands, sizes: None }
    }

    /// The operation that is replaced.
    pub(super) fn op(&self) -> OpRef<'_> {
        self.b.module().op(self.op)
    }

    /// Makes what stands for the operation.
    pub(super) fn replacement(&mut self) -> Result<Vec<ValueId>, Refusal> {
        let rule = self.op().kind().and_then(rule_of);
        self.by(rule)
    }

    /// Makes what stands for another operation on operands that are of one shape.
    pub(super) fn replacement_as(
        &mut self,
        kind: OpKind,
        operands: Vec<ValueId>,
    ) -> Result<Vec<ValueId>, Refusal> {
        self.operands = operands;
        self.sizes = None;
        self.by(rule_of(kind))
    }

    fn by(&mut self, rule: Option<Rule>) -> Result<Vec<ValueId>, Refusal> {
        match rule {
            Some(Rule::Wide(formula)) => self.formula(ElementType::F64, formula),
            Some(Rule::WideOfTwo(formula)) => {
                let wide = ElementType::F64;
                let (x, y) = (self.input(0, wide)?, self.input(1, wide)?);
                self.rounded(&formula(&x, &y), wide)
            }
            Some(Rule::Own(rule)) => rule(self),
            None => Err(Refusal(self.op().name().to_owned())),
        }
    }

    /// That the operation is not replaced for elements of its type.
    pub(super) fn refused(&self) -> Refusal {
        let name = self.op().name();
        let operand = self.operands.first().map(|&operand| self.b.ty(operand));
        match operand.map(|ty| (ty, ty.as_tensor())) {
            Some((_, Some(tensor))) => Refusal(format!("{name} of {}", tensor.element())),
            Some((ty, None)) => Refusal(format!("{name} of {ty}")),
            None => Refusal(name.to_owned()),
        }
    }

    pub(super) fn operand(&self, index: usize) -> Result<ValueId, Refusal> {
        self.operands.get(index).copied().ok_or_else(|| self.refused())
    }

    /// The type of an operand, which must be a ranked tensor.
    pub(super) fn tensor(&self, index: usize) -> Result<TensorType, Refusal> {
        let operand = self.operand(index)?;
        self.b.ty(operand).as_tensor().cloned().ok_or_else(|| self.refused())
    }

    /// The plain elements of the first operand.
    pub(super) fn element(&self) -> Result<ElementType, Refusal> {
        self.tensor(0)?.element().plain().ok_or_else(|| self.refused())
    }

    /// A formula of the only operand, computed in `wide` and rounded to the operand's type at the end.
    pub(super) fn formula(
        &mut self,
        wide: ElementType,
        formula: fn(&Expr) -> Expr,
    ) -> Result<Vec<ValueId>, Refusal> {
        let input = self.input(0, wide)?;
        self.rounded(&formula(&input), wide)
    }

    /// An operand of real numbers, as numbers of a wider type.
    fn input(&mut self, index: usize, wide: ElementType) -> Result<Expr, Refusal> {
        if !self.element()?.is_float() {
            return Err(self.refused());
        }
        let operand = self.operand(index)?;
        Ok(Expr::value(self.b.convert(operand, wide)?))
    }

    fn rounded(&mut self, formula: &Expr, wide: ElementType) -> Result<Vec<ValueId>, Refusal> {
        let element = self.element()?;
        let result = Emitter::new(self, wide).emit(formula)?;
        Ok(vec![self.b.convert(result, element)?])
    }

    /// A constant of the first operand's shape, which need not be known.
    pub(super) fn splat(
        &mut self,
        element: ElementType,
        value: impl Into<Scalar>,
    ) -> Result<ValueId, Refusal> {
        let ty = self.tensor(0)?.with_element(element);
        if ty.is_static() {
            return Ok(self.b.splat(&ty, value)?);
        }
        let sizes = match self.sizes {
            Some(sizes) => sizes,
            None => {
                let operand = self.operand(0)?;
                let all: Vec<usize> = (0..ty.rank()).collect();
                let sizes = self.sizes_of(operand, &all)?;
                self.sizes = Some(sizes);
                sizes
            }
        };
        let scalar = self.b.scalar(element, value)?;
        Ok(self.repeated(scalar, sizes, &[], ty)?)
    }

    /// Repeats a value so that it has sizes that are computed.
    pub(super) fn repeated(
        &mut self,
        value: ValueId,
        sizes: ValueId,
        dims: &[i64],
        ty: TensorType,
    ) -> Result<ValueId, BuildError> {
        let attrs = [("broadcast_dimensions", Attribute::i64s(dims))];
        self.b.op_as(OpKind::DynamicBroadcastInDim, &[value, sizes], attrs, Type::Tensor(ty))
    }

    /// The sizes of some dimensions of a value, as a vector.
    fn sizes_of(&mut self, value: ValueId, axes: &[usize]) -> Result<ValueId, Refusal> {
        let parts: Vec<ValueId> =
            axes.iter().map(|&axis| self.size_of(value, axis)).collect::<Result<_, _>>()?;
        Ok(self.b.concatenate(&parts, 0)?)
    }

    /// The size of one dimension of a value, as a vector of one.
    pub(super) fn size_of(&mut self, value: ValueId, axis: usize) -> Result<ValueId, Refusal> {
        let ty = self.b.tensor_type(value)?;
        let one = TensorType::fixed(&[1], ElementType::I32);
        if let Some(Dim::Static(size)) = ty.dim(axis) {
            return Ok(self.b.splat(&one, i64::try_from(size).map_err(|_| self.refused())?)?);
        }
        let size =
            self.b.op(OpKind::GetDimensionSize, &[value], [("dimension", Attribute::i64(axis as i64))])?;
        Ok(self.b.reshape(size, &[1])?)
    }
}
