//! Operations that take a shape as an operand, in their static forms.

use super::RefineError;
use super::function::Refiner;
use crate::attr::{Attribute, DenseElements, Dict};
use crate::module::{BlockId, OpRef, ValueId};
use crate::table::OpKind;
use crate::types::{Dim, TensorType, Type};

/// The static form of an operation.
pub(super) struct Static {
    kind: OpKind,
    /// Operands, by their keys in the original.
    operands: Vec<ValueId>,
    attrs: Dict,
    /// The types of the results, where they cannot be inferred.
    results: Option<Vec<Type>>,
}

impl<'m> Refiner<'m> {
    /// The static form of an operation, when what it needs is known.
    pub(super) fn to_static(&self, op: OpRef<'m>) -> Option<Static> {
        let sizes = |index: usize| self.known(op.operand(index)?)?.sizes();
        let ints = |index: usize| self.known(op.operand(index)?)?.i64s();
        let mut attrs = op.attrs().clone();
        let mut without = |names: &[&str]| names.iter().for_each(|name| drop(attrs.remove(name)));
        let (kind, keep, results) = match op.kind()? {
            OpKind::DynamicReshape => {
                let shape = sizes(1).or_else(|| self.completed(op))?;
                (OpKind::Reshape, 1, Some(shaped(op, &shape)?))
            }
            OpKind::DynamicBroadcastInDim => {
                without(&["known_expanding_dimensions", "known_nonexpanding_dimensions"]);
                (OpKind::BroadcastInDim, 1, Some(shaped(op, &sizes(1).or_else(|| declared(op))?)?))
            }
            OpKind::DynamicIota => (OpKind::Iota, 0, Some(shaped(op, &sizes(0).or_else(|| declared(op))?)?)),
            OpKind::DynamicPad => {
                let (low, high, interior) = (ints(2)?, ints(3)?, ints(4)?);
                attrs.set("edge_padding_low", Attribute::i64s(low));
                attrs.set("edge_padding_high", Attribute::i64s(high));
                attrs.set("interior_padding", Attribute::i64s(interior));
                (OpKind::Pad, 2, None)
            }
            OpKind::RealDynamicSlice => {
                let (starts, limits, strides) = (ints(1)?, ints(2)?, ints(3)?);
                attrs.set("start_indices", Attribute::i64s(starts));
                attrs.set("limit_indices", Attribute::i64s(limits));
                attrs.set("strides", Attribute::i64s(strides));
                (OpKind::Slice, 1, None)
            }
            OpKind::DynamicGather => {
                attrs.set("slice_sizes", Attribute::i64s(ints(2)?));
                (OpKind::Gather, 2, None)
            }
            OpKind::DynamicConv => {
                let padding = ints(2)?;
                let spatial = padding.len() / 2;
                let padding = DenseElements::i64s(&[spatial as u64, 2], &padding).ok()?;
                attrs.set("padding", padding.into());
                shorten(&mut attrs, spatial);
                (OpKind::Convolution, 2, None)
            }
            _ => return None,
        };
        Some(Static { kind, operands: op.operands().get(..keep)?.to_vec(), attrs, results })
    }

    /// The shape of a reshape whose result has one unknown dimension, which the number of elements tells.
    fn completed(&self, op: OpRef<'m>) -> Option<Vec<u64>> {
        let count = self.refined_type(op.operand(0)?)?.as_tensor()?.element_count()?;
        let result = op.result_tensor(0)?;
        let unknown = result.dims().iter().filter(|dim| !dim.is_static()).count();
        let rest: u64 = result.dims().iter().filter_map(|dim| dim.size()).try_fold(1u64, u64::checked_mul)?;
        match unknown {
            0 => result.shape(),
            1 if rest > 0 && count % rest == 0 => {
                Some(result.dims().iter().map(|dim| dim.size().unwrap_or(count / rest)).collect())
            }
            _ => None,
        }
    }

    /// Appends the static form of an operation.
    pub(super) fn static_form(
        &mut self,
        op: OpRef<'m>,
        form: Static,
        block: BlockId,
    ) -> Result<(), RefineError> {
        let Static { kind, operands, attrs, results } = form;
        let operands: Vec<ValueId> = operands.into_iter().map(|value| self.operand(value, block)).collect();
        let types = self.result_types(op, Some(kind), &operands, &attrs, &[], results)?;
        let copy = self.to.create_op(kind, operands, types, attrs, op.span());
        self.to.append_op(block, copy);
        if let Some(location) = self.from.location(op.id()) {
            self.to.set_location(copy, location);
        }
        self.define_results(op, copy);
        Ok(())
    }
}

/// Exporters write more entries than there are spatial dimensions for a `dynamic_conv`, and every reader lets them.
fn shorten(attrs: &mut Dict, spatial: usize) {
    for name in ["window_strides", "lhs_dilation", "rhs_dilation"] {
        let longer = attrs.get(name).and_then(Attribute::as_i64s).filter(|list| list.len() > spatial);
        if let Some(list) = longer.map(|list| list[..spatial].to_vec()) {
            attrs.set(name, Attribute::i64s(list));
        }
    }
}

/// The shape that the result of an operation is declared with, when it is known.
fn declared(op: OpRef<'_>) -> Option<Vec<u64>> {
    op.result_tensor(0)?.shape()
}

/// The result of an operation with a known shape.
fn shaped(op: OpRef<'_>, shape: &[u64]) -> Option<Vec<Type>> {
    let dims: Vec<Dim> = shape.iter().copied().map(Dim::Static).collect();
    let result: &TensorType = op.result_tensor(0)?;
    Some(vec![Type::Tensor(result.with_dims(dims))])
}
