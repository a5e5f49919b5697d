//! Folding dimensions.

use warpforge_ir::{ElementType, OpKind};
use warpforge_tensor::Scalar;

use super::Cx;
use crate::graph::size::Size;
use crate::lower::refusal::Lowered;
use crate::lower::value::Tensor;

impl Cx<'_> {
    /// Folds dimensions with an operation, from its neutral element or another start.
    pub(crate) fn reduce(
        &mut self,
        kind: OpKind,
        x: &Tensor,
        axes: &[usize],
        start: Scalar,
    ) -> Lowered<Tensor> {
        let start = self.b.scalar(x.dtype, start)?;
        let dims: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let id = self.b.reduce(kind, x.id, start, &dims)?;
        let left: Vec<Size> =
            (0..x.rank()).filter(|axis| !axes.contains(axis)).map(|axis| x.dim(axis)).collect();
        Ok(self.tensor(id, x.dtype, left))
    }

    /// Sums dimensions.
    pub(crate) fn sum(&mut self, x: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
        self.reduce(OpKind::Add, x, axes, Scalar::zero(x.dtype))
    }

    /// The largest element along dimensions; NaN where there is one.
    pub(crate) fn maximum_of(&mut self, x: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
        self.reduce(OpKind::Maximum, x, axes, lowest(x.dtype))
    }

    /// The smallest element along dimensions; NaN where there is one.
    pub(crate) fn minimum_of(&mut self, x: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
        self.reduce(OpKind::Minimum, x, axes, highest(x.dtype))
    }

    /// A reduced tensor with its reduced dimensions as dimensions of one.
    pub(crate) fn keep_dims(&mut self, reduced: &Tensor, whole: &[Size], axes: &[usize]) -> Lowered<Tensor> {
        let dims: Vec<Size> = whole
            .iter()
            .enumerate()
            .map(|(axis, size)| if axes.contains(&axis) { Size::Int(1) } else { size.clone() })
            .collect();
        self.reshape(reduced, &dims)
    }

    /// A reduced tensor repeated along its reduced dimensions.
    pub(crate) fn spread(&mut self, reduced: &Tensor, whole: &[Size], axes: &[usize]) -> Lowered<Tensor> {
        let map: Vec<usize> = (0..whole.len()).filter(|axis| !axes.contains(axis)).collect();
        self.broadcast(reduced, whole, &map)
    }
}

/// The smallest value of an element type.
pub(crate) fn lowest(dtype: ElementType) -> Scalar {
    match dtype {
        ElementType::Bool => Scalar::Bool(false),
        ElementType::Int(int) => Scalar::Int(int.min()),
        _ => Scalar::Float(f64::NEG_INFINITY),
    }
}

/// The largest value of an element type.
pub(crate) fn highest(dtype: ElementType) -> Scalar {
    match dtype {
        ElementType::Bool => Scalar::Bool(true),
        ElementType::Int(int) => Scalar::Int(int.max()),
        _ => Scalar::Float(f64::INFINITY),
    }
}
