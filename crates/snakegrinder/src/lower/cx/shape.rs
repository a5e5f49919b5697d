//! Moving, repeating, cutting and joining.

use warpforge_ir::attr::ComparisonDirection;
use warpforge_ir::{Attribute, ElementType, OpKind};
use warpforge_tensor::Scalar;

use super::Cx;
use crate::graph::size::Size;
use crate::lower::refusal::{Lowered, refuse};
use crate::lower::value::{Tensor, value_type};

/// The sizes as numbers, when all are.
fn numbers(dims: &[Size]) -> Option<Vec<i64>> {
    dims.iter().map(Size::as_int).collect()
}

fn unsigned(dims: &[i64]) -> Vec<u64> {
    dims.iter().map(|dim| dim.unsigned_abs()).collect()
}

impl Cx<'_> {
    /// The same elements in the same order in another shape.
    pub(crate) fn reshape(&mut self, x: &Tensor, dims: &[Size]) -> Lowered<Tensor> {
        if *x.dims == *dims {
            return Ok(x.clone());
        }
        let id = match numbers(dims) {
            Some(known) if numbers(&x.dims).is_some() => self.b.reshape(x.id, &unsigned(&known))?,
            _ => {
                let shape = self.shape_value(dims)?;
                self.b.op_as(OpKind::DynamicReshape, &[x.id, shape.id], [], value_type(x.dtype, dims))?
            }
        };
        Ok(self.tensor(id, x.dtype, dims))
    }

    /// Adds a dimension of one.
    pub(crate) fn unsqueeze(&mut self, x: &Tensor, axis: usize) -> Lowered<Tensor> {
        let mut dims = x.dims.to_vec();
        dims.insert(axis.min(dims.len()), Size::Int(1));
        self.reshape(x, &dims)
    }

    /// Repeats a tensor so that it has a shape; `map[i]` says which dimension of the shape its dimension `i` is.
    pub(crate) fn broadcast(&mut self, x: &Tensor, dims: &[Size], map: &[usize]) -> Lowered<Tensor> {
        if *x.dims == *dims && map.iter().enumerate().all(|(at, to)| at == *to) {
            return Ok(x.clone());
        }
        let map: Vec<i64> = map.iter().map(|&axis| axis as i64).collect();
        let id = match numbers(dims) {
            Some(known) if numbers(&x.dims).is_some() => {
                self.b.broadcast_in_dim(x.id, &unsigned(&known), &map)?
            }
            _ => {
                let shape = self.shape_value(dims)?;
                let attrs = [("broadcast_dimensions", Attribute::i64s(map))];
                let ty = value_type(x.dtype, dims);
                self.b.op_as(OpKind::DynamicBroadcastInDim, &[x.id, shape.id], attrs, ty)?
            }
        };
        Ok(self.tensor(id, x.dtype, dims))
    }

    /// Repeats a tensor so that it has a shape, as PyTorch broadcasts: dimensions are matched from the last.
    pub(crate) fn expand_to(&mut self, x: &Tensor, dims: &[Size]) -> Lowered<Tensor> {
        let Some(extra) = dims.len().checked_sub(x.rank()) else {
            return refuse(format!("a shape {:?} does not expand to {dims:?}", x.dims));
        };
        for (own, to) in x.dims.iter().zip(dims.iter().skip(extra)) {
            if own != to && !own.is(1) && own.as_int().is_some() && to.as_int().is_some() {
                return refuse(format!("a shape {:?} does not expand to {dims:?}", x.dims));
            }
        }
        let map: Vec<usize> = (extra..dims.len()).collect();
        self.broadcast(x, dims, &map)
    }

    /// The shape that tensors of these shapes have together.
    pub(crate) fn broadcast_shape(&self, shapes: &[&[Size]]) -> Lowered<Vec<Size>> {
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
        let mut result = vec![Size::Int(1); rank];
        for shape in shapes {
            for (slot, size) in result.iter_mut().rev().zip(shape.iter().rev()) {
                if slot == size || size.is(1) {
                    continue;
                }
                if slot.is(1) {
                    *slot = size.clone();
                } else if let (Some(a), Some(b)) = (slot.as_int(), size.as_int()) {
                    return refuse(format!("shapes {shapes:?} do not broadcast: {a} and {b}"));
                } else if size.as_int().is_some() {
                    // A dynamic dimension beside a number other than one has that number.
                    *slot = size.clone();
                }
            }
        }
        Ok(result)
    }

    /// Broadcasts tensors to the shape they have together.
    pub(crate) fn broadcast_all(&mut self, tensors: &[Tensor]) -> Lowered<Vec<Tensor>> {
        let shapes: Vec<&[Size]> = tensors.iter().map(|tensor| &*tensor.dims).collect();
        let dims = self.broadcast_shape(&shapes)?;
        tensors.iter().map(|tensor| self.expand_to(tensor, &dims)).collect()
    }

    /// The dimensions in another order: dimension `i` of the result is dimension `order[i]` of the tensor.
    pub(crate) fn transpose(&mut self, x: &Tensor, order: &[usize]) -> Lowered<Tensor> {
        if order.iter().enumerate().all(|(at, from)| at == *from) {
            return Ok(x.clone());
        }
        let permutation: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        let id = self.b.transpose(x.id, &permutation)?;
        let dims: Vec<Size> = order.iter().map(|&axis| x.dim(axis)).collect();
        Ok(self.tensor(id, x.dtype, dims))
    }

    /// A range of one dimension; start and limit must be inside.
    pub(crate) fn slice(
        &mut self,
        x: &Tensor,
        axis: usize,
        start: &Size,
        limit: &Size,
        step: i64,
    ) -> Lowered<Tensor> {
        let whole = start.is(0) && *limit == x.dim(axis) && step == 1;
        if whole {
            return Ok(x.clone());
        }
        self.require_axis(x, axis)?;
        let span = limit.sub(start).add(&Size::Int(step - 1));
        let Some(length) = span.floor_div(&Size::Int(step)) else { return refuse("a slice with step 0") };
        let mut dims = x.dims.to_vec();
        dims[axis] = length;
        let mut starts = vec![Size::Int(0); x.rank()];
        let mut limits = x.dims.to_vec();
        let mut steps = vec![1; x.rank()];
        (starts[axis], limits[axis], steps[axis]) = (start.clone(), limit.clone(), step);
        let id = match (numbers(&starts), numbers(&limits)) {
            (Some(starts), Some(limits)) => self.b.slice(x.id, &starts, &limits, &steps)?,
            _ => {
                let (starts, limits) = (self.shape_value(&starts)?, self.shape_value(&limits)?);
                let steps = self.i64s(&steps)?;
                let operands = [x.id, starts.id, limits.id, steps.id];
                self.b.op_as(OpKind::RealDynamicSlice, &operands, [], value_type(x.dtype, &dims))?
            }
        };
        Ok(self.tensor(id, x.dtype, dims))
    }

    /// A tensor with a range of one dimension replaced; start and limit must be inside.
    pub(crate) fn slice_scatter(
        &mut self,
        base: &Tensor,
        value: &Tensor,
        axis: usize,
        start: &Size,
        limit: &Size,
        step: i64,
    ) -> Lowered<Tensor> {
        if start.is(0) && *limit == base.dim(axis) && step == 1 {
            return Ok(value.clone());
        }
        let count = value.dim(axis);
        if count.is(0) {
            return Ok(base.clone());
        }
        if step == 1 {
            let mut operands = vec![base.id, value.id];
            for at in 0..base.rank() {
                let index = if at == axis { start.clone() } else { Size::Int(0) };
                operands.push(self.size_value(&index)?.id);
            }
            let ty = value_type(base.dtype, &base.dims);
            let id = self.b.op_as(OpKind::DynamicUpdateSlice, &operands, [], ty)?;
            return Ok(self.tensor(id, base.dtype, base.dims.clone()));
        }
        let last = start.add(&count.sub(&Size::Int(1)).mul(&Size::Int(step)));
        let after = base.dim(axis).sub(&last).sub(&Size::Int(1));
        let ones = self.splat(ElementType::Bool, &value.dims.clone(), true)?;
        let [spread, mask] = [value, &ones].map(|part| {
            let zero = Scalar::zero(part.dtype);
            self.pad_axis(part, axis, start, &after, step - 1, zero)
        });
        self.select(&mask?, &spread?, base)
    }

    /// Adds elements before, after and between the elements of one dimension. Negative numbers cut off.
    pub(crate) fn pad_axis(
        &mut self,
        x: &Tensor,
        axis: usize,
        low: &Size,
        high: &Size,
        interior: i64,
        value: impl Into<Scalar>,
    ) -> Lowered<Tensor> {
        self.require_axis(x, axis)?;
        let mut lows = vec![Size::Int(0); x.rank()];
        let mut highs = lows.clone();
        let mut between = vec![0; x.rank()];
        (lows[axis], highs[axis], between[axis]) = (low.clone(), high.clone(), interior);
        let value = self.b.scalar(x.dtype, value)?;
        let value = self.tensor(value, x.dtype, []);
        self.pad(x, &value, &lows, &highs, &between)
    }

    /// Adds elements before, after and between elements. Negative numbers cut off.
    pub(crate) fn pad(
        &mut self,
        x: &Tensor,
        value: &Tensor,
        low: &[Size],
        high: &[Size],
        interior: &[i64],
    ) -> Lowered<Tensor> {
        let nothing = low.iter().chain(high).all(|size| size.is(0)) && interior.iter().all(|&gap| gap == 0);
        if nothing {
            return Ok(x.clone());
        }
        if [low.len(), high.len(), interior.len()] != [x.rank(); 3] {
            return refuse("padding of another number of dimensions");
        }
        let mut dims = Vec::with_capacity(x.rank());
        for (axis, size) in x.dims.iter().enumerate() {
            let gaps = size.sub(&Size::Int(1)).mul(&Size::Int(interior[axis]));
            let gaps = if interior[axis] == 0 { Size::Int(0) } else { gaps.larger(&Size::Int(0)) };
            dims.push(size.add(&low[axis]).add(&high[axis]).add(&gaps));
        }
        let id = match (numbers(low), numbers(high)) {
            (Some(low), Some(high)) => {
                let operands = [x.id, value.id];
                let attrs = [
                    ("edge_padding_low", Attribute::i64s(low)),
                    ("edge_padding_high", Attribute::i64s(high)),
                    ("interior_padding", Attribute::i64s(interior)),
                ];
                self.b.op_as(OpKind::Pad, &operands, attrs, value_type(x.dtype, &dims))?
            }
            _ => {
                let (low, high) = (self.shape_value(low)?, self.shape_value(high)?);
                let interior = self.i64s(interior)?;
                let operands = [x.id, value.id, low.id, high.id, interior.id];
                self.b.op_as(OpKind::DynamicPad, &operands, [], value_type(x.dtype, &dims))?
            }
        };
        Ok(self.tensor(id, x.dtype, dims))
    }

    /// Joins tensors of one type along a dimension.
    pub(crate) fn concatenate(&mut self, parts: &[Tensor], axis: usize) -> Lowered<Tensor> {
        let Some(first) = parts.first() else { return refuse("nothing to concatenate") };
        if parts.len() == 1 {
            return Ok(first.clone());
        }
        self.require_axis(first, axis)?;
        let mut dims = first.dims.to_vec();
        dims[axis] = parts.iter().fold(Size::Int(0), |sum, part| sum.add(&part.dim(axis)));
        let ids: Vec<_> = parts.iter().map(|part| part.id).collect();
        let attrs = [("dimension", Attribute::i64(axis as i64))];
        let id = self.b.op_as(OpKind::Concatenate, &ids, attrs, value_type(first.dtype, &dims))?;
        Ok(self.tensor(id, first.dtype, dims))
    }

    /// Counts from zero along a dimension.
    pub(crate) fn iota(&mut self, dtype: ElementType, dims: &[Size], axis: usize) -> Lowered<Tensor> {
        let attrs = [("iota_dimension", Attribute::i64(axis as i64))];
        let ty = value_type(dtype, dims);
        let id = if numbers(dims).is_some() {
            self.b.op_as(OpKind::Iota, &[], attrs, ty)?
        } else {
            let shape = self.shape_value(dims)?;
            self.b.op_as(OpKind::DynamicIota, &[shape.id], attrs, ty)?
        };
        Ok(self.tensor(id, dtype, dims))
    }

    /// Reverses dimensions.
    pub(crate) fn reverse(&mut self, x: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
        let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let id = self.b.op(OpKind::Reverse, &[x.id], [("dimensions", Attribute::i64s(axes))])?;
        Ok(self.tensor(id, x.dtype, x.dims.clone()))
    }

    /// Where the index along one dimension compares with the index along another, plus an offset: triangles.
    pub(crate) fn index_mask(
        &mut self,
        dims: &[Size],
        rows: usize,
        columns: usize,
        how: ComparisonDirection,
        offset: &Size,
    ) -> Lowered<Tensor> {
        let row = self.iota(ElementType::I64, dims, rows)?;
        let column = self.iota(ElementType::I64, dims, columns)?;
        let offset = self.size_value(offset)?;
        let offset = self.expand_to(&offset, dims)?;
        let shifted = self.add(&row, &offset)?;
        self.compare(how, &column, &shifted)
    }
}
