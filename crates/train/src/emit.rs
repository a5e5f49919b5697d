//! Shorthands: scalars in f64, and tensors with a scalar for all elements.

use warpforge_ir::attr::ComparisonDirection;
use warpforge_ir::build::{BuildError, Builder};
use warpforge_ir::{ElementType, OpKind, ValueId};

/// What operations are appended to.
pub(crate) struct Emit<'b, 'm> {
    pub(crate) b: &'b mut Builder<'m>,
}

type Built = Result<ValueId, BuildError>;

impl Emit<'_, '_> {
    /// A number in f64.
    pub(crate) fn f64(&mut self, value: f64) -> Built {
        self.b.scalar(ElementType::F64, value)
    }

    pub(crate) fn add(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(OpKind::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(OpKind::Subtract, a, b)
    }

    pub(crate) fn mul(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(OpKind::Multiply, a, b)
    }

    pub(crate) fn div(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(OpKind::Divide, a, b)
    }

    /// One minus a value in f64.
    pub(crate) fn one_minus(&mut self, value: ValueId) -> Built {
        let one = self.f64(1.0)?;
        self.sub(one, value)
    }

    /// A scalar of any type, rounded to the element type of a tensor and repeated to its shape.
    pub(crate) fn spread(&mut self, scalar: ValueId, like: ValueId) -> Built {
        let ty = self.b.tensor_type(like)?;
        let element = ty.element().plain().ok_or_else(|| BuildError::NotATensor(ty.to_string()))?;
        let dims: Option<Vec<u64>> =
            ty.shape_usize().map(|dims| dims.iter().map(|&dim| dim as u64).collect());
        let dims = dims.ok_or_else(|| BuildError::NotATensor(ty.to_string()))?;
        let rounded = self.b.convert(scalar, element)?;
        self.b.broadcast_in_dim(rounded, &dims, &[])
    }

    /// A tensor times a scalar.
    pub(crate) fn scaled(&mut self, tensor: ValueId, scalar: ValueId) -> Built {
        let scalar = self.spread(scalar, tensor)?;
        self.mul(tensor, scalar)
    }

    /// A tensor times a number.
    pub(crate) fn scaled_by(&mut self, tensor: ValueId, number: f64) -> Built {
        let number = self.b.splat_like(tensor, number)?;
        self.mul(tensor, number)
    }

    /// `a + number * b`.
    pub(crate) fn add_scaled(&mut self, a: ValueId, b: ValueId, number: f64) -> Built {
        let scaled = self.scaled_by(b, number)?;
        self.add(a, scaled)
    }

    /// Whether `a < b`.
    pub(crate) fn less(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.compare(ComparisonDirection::Lt, a, b)
    }

    /// Whether `a == b`.
    pub(crate) fn equal(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.compare(ComparisonDirection::Eq, a, b)
    }

    /// The sum of the squares of all elements, in f32 or wider.
    pub(crate) fn sum_of_squares(&mut self, tensor: ValueId) -> Built {
        let ty = self.b.tensor_type(tensor)?;
        let rank = ty.rank() as i64;
        let wide =
            if ty.element().plain() == Some(ElementType::F64) { ElementType::F64 } else { ElementType::F32 };
        let tensor = self.b.convert(tensor, wide)?;
        let squares = self.mul(tensor, tensor)?;
        let zero = self.b.scalar(wide, 0.0)?;
        self.b.reduce(OpKind::Add, squares, zero, &(0..rank).collect::<Vec<_>>())
    }
}
