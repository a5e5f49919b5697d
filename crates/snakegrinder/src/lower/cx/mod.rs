//! What lowerings build with: the module under construction, on tensors that know their PyTorch shape.
//!
//! The functions here take shapes as [`Size`]s and choose StableHLO's static or dynamic form of an operation, so a
//! lowering need not care whether dimensions are known. None of them promotes types or broadcasts unless it says so.

mod elementwise;
pub(crate) use reduction::{highest, lowest};
mod reduction;
mod shape;
mod sizes;

use std::collections::HashMap;
use std::rc::Rc;

pub(crate) use sizes::Symbols;
use warpforge_ir::build::Builder;
use warpforge_ir::{BlockId, DenseElements, ElementType, ValueId};
use warpforge_tensor::Scalar;

use super::alias::Variables;
use super::refusal::{Lowered, Refusal, refuse};
use super::value::{Number, Tensor, tensor_type};
use crate::graph::size::Size;
use crate::packing::Packing;

/// The module under construction and the state of the graph that is being lowered.
pub(crate) struct Cx<'m> {
    /// The builder, for operations that need nothing of what is here.
    pub(crate) b: Builder<'m>,
    pub(super) variables: Variables,
    pub(super) symbols: Symbols,
    /// How weights lie in memory that PyTorch packed, where the archive says so.
    pub(crate) packing: Packing,
    /// Sizes that were computed in the block that they can be used from.
    computed_sizes: HashMap<(BlockId, Size), ValueId>,
}

impl<'m> Cx<'m> {
    pub(super) fn new(builder: Builder<'m>, symbols: Symbols) -> Self {
        Self {
            b: builder,
            variables: Variables::default(),
            symbols,
            packing: Packing::default(),
            computed_sizes: HashMap::new(),
        }
    }

    /// A tensor that a value of the module is.
    pub(crate) fn tensor(&self, id: ValueId, dtype: ElementType, dims: impl Into<Rc<[Size]>>) -> Tensor {
        Tensor { id, dtype, dims: dims.into(), var: None }
    }

    /// A constant of one number everywhere.
    pub(crate) fn splat(
        &mut self,
        dtype: ElementType,
        dims: &[Size],
        value: impl Into<Scalar>,
    ) -> Lowered<Tensor> {
        let value = value.into();
        if dims.iter().all(|size| size.as_int().is_some()) {
            let id = self.b.splat(&tensor_type(dtype, dims), value)?;
            return Ok(self.tensor(id, dtype, dims));
        }
        let one = self.b.scalar(dtype, value)?;
        let one = self.tensor(one, dtype, []);
        self.expand_to(&one, dims)
    }

    /// A constant of one number in the shape and type of a tensor.
    pub(crate) fn splat_like(&mut self, like: &Tensor, value: impl Into<Scalar>) -> Lowered<Tensor> {
        self.splat(like.dtype, &like.dims.clone(), value)
    }

    /// A constant of one dimension.
    pub(crate) fn i64s(&mut self, values: &[i64]) -> Lowered<Tensor> {
        let id = self.b.i64s(values)?;
        Ok(self.tensor(id, ElementType::I64, [Size::Int(values.len() as i64)]))
    }

    /// A constant of these numbers, in row-major order.
    pub(crate) fn constant(
        &mut self,
        dtype: ElementType,
        dims: &[usize],
        values: impl IntoIterator<Item = Scalar>,
    ) -> Lowered<Tensor> {
        let shape = warpforge_tensor::Shape::new(dims).map_err(|error| Refusal(error.to_string()))?;
        let tensor = warpforge_tensor::Tensor::from_scalars(dtype, shape, values)
            .map_err(|error| Refusal(error.to_string()))?;
        let sizes: Vec<Size> = dims.iter().map(|&dim| Size::Int(dim as i64)).collect();
        let elements = DenseElements::raw(tensor_type(dtype, &sizes), tensor.bytes().to_vec())
            .map_err(|error| Refusal(error.to_string()))?;
        let id = self.b.constant(elements)?;
        Ok(self.tensor(id, dtype, sizes))
    }

    /// A number in every element of a shape, converted to the element type as PyTorch converts Python numbers.
    pub(crate) fn fill(&mut self, dtype: ElementType, dims: &[Size], number: &Number) -> Lowered<Tensor> {
        let scalar = match number {
            Number::Int(Size::Int(value)) => Scalar::Int(i128::from(*value)),
            Number::Bool(value) => Scalar::Bool(*value),
            Number::Float(value) => Scalar::Float(*value),
            Number::Complex(real, imaginary) => Scalar::Complex(*real, *imaginary),
            Number::Int(size) => {
                let value = self.size_value(size)?;
                let value = self.convert(&value, dtype)?;
                return self.expand_to(&value, dims);
            }
            Number::Computed(tensor) => {
                let value = self.convert(tensor, dtype)?;
                return self.expand_to(&value, dims);
            }
        };
        let scalar = to_element(scalar, dtype)?;
        self.splat(dtype, dims, scalar)
    }

    /// The sizes as numbers; refused where they are dynamic, or larger than any tensor's: lowerings add and multiply
    /// them.
    pub(crate) fn known(&self, dims: &[Size]) -> Lowered<Vec<i64>> {
        let known = dims.iter().map(|size| match size.as_int() {
            Some(value) if value.unsigned_abs() <= 1 << 40 => Ok(value),
            Some(value) => refuse(format!("no tensor has a size of {value}")),
            None => refuse(format!("the dynamic dimension {size} must be a number here")),
        });
        known.collect()
    }

    /// The length of a table that a lowering writes out; refused where no model needs one so long.
    pub(crate) fn table_length(&self, factors: &[i64]) -> Lowered<usize> {
        const MOST: i64 = 1 << 22;
        let length = factors.iter().try_fold(1i64, |product, &factor| product.checked_mul(factor.max(0)));
        // A factor of zero must not let another one be as large as it likes.
        match length.filter(|length| factors.iter().chain([length]).all(|&number| number <= MOST)) {
            Some(length) => Ok(length as usize),
            None => refuse(format!("a table of {factors:?} entries is longer than any model needs")),
        }
    }

    /// A dimension counted from the end where it is negative; a tensor of no dimensions counts as having one.
    pub(crate) fn axis(&self, dim: i64, rank: usize) -> Lowered<usize> {
        let rank = (rank as i64).max(1);
        if dim < -rank || dim >= rank {
            return refuse(format!("dimension {dim} of a tensor with {rank} dimensions"));
        }
        Ok(dim.rem_euclid(rank) as usize)
    }

    /// Refuses a dimension that a tensor does not have: a scalar, which [`Cx::axis`] gives one, has none to look at.
    pub(crate) fn require_axis(&self, x: &Tensor, axis: usize) -> Lowered<()> {
        if axis < x.rank() {
            return Ok(());
        }
        refuse(format!("dimension {axis} of a tensor with {} dimensions", x.rank()))
    }

    /// Several dimensions, see [`Cx::axis`]; each may occur once.
    pub(crate) fn axes(&self, dims: &[i64], rank: usize) -> Lowered<Vec<usize>> {
        let axes: Vec<usize> = dims.iter().map(|&dim| self.axis(dim, rank)).collect::<Lowered<_>>()?;
        let repeated = axes.iter().enumerate().any(|(at, axis)| axes[..at].contains(axis));
        if repeated { refuse(format!("a dimension occurs twice in {dims:?}")) } else { Ok(axes) }
    }
}

/// A Python number as C++ converts it to an element type: towards zero to integers, anything but zero to true.
fn to_element(value: Scalar, dtype: ElementType) -> Lowered<Scalar> {
    match dtype {
        ElementType::Bool => Ok(Scalar::Bool(value.is_true())),
        ElementType::Int(_) => match value {
            Scalar::Float(float) if !float.is_finite() => refuse(format!("{float} has no value as {dtype}")),
            Scalar::Float(float) => Ok(Scalar::Int(float.trunc() as i128)),
            other => Ok(other),
        },
        _ => Ok(value),
    }
}
