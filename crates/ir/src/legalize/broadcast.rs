//! Operations that repeat their operands until they have one shape: the repeating made an operation of its own.

use super::cx::{Cx, Refusal};
use crate::attr::Attribute;
use crate::attr::ComparisonDirection::Eq;
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{Dim, TensorType};

/// What is done to the operands when they are of one shape.
fn inner(kind: OpKind) -> Option<OpKind> {
    Some(match kind {
        OpKind::ChloBroadcastAdd => OpKind::Add,
        OpKind::ChloBroadcastAnd => OpKind::And,
        OpKind::ChloBroadcastAtan2 => OpKind::Atan2,
        OpKind::ChloBroadcastCompare => OpKind::Compare,
        OpKind::ChloBroadcastComplex => OpKind::Complex,
        OpKind::ChloBroadcastDivide => OpKind::Divide,
        OpKind::ChloBroadcastMaximum => OpKind::Maximum,
        OpKind::ChloBroadcastMinimum => OpKind::Minimum,
        OpKind::ChloBroadcastMultiply => OpKind::Multiply,
        OpKind::ChloBroadcastNextAfter => OpKind::ChloNextAfter,
        OpKind::ChloBroadcastOr => OpKind::Or,
        OpKind::ChloBroadcastPolygamma => OpKind::ChloPolygamma,
        OpKind::ChloBroadcastPower => OpKind::Power,
        OpKind::ChloBroadcastRemainder => OpKind::Remainder,
        OpKind::ChloBroadcastSelect => OpKind::Select,
        OpKind::ChloBroadcastShiftLeft => OpKind::ShiftLeft,
        OpKind::ChloBroadcastShiftRightArithmetic => OpKind::ShiftRightArithmetic,
        OpKind::ChloBroadcastShiftRightLogical => OpKind::ShiftRightLogical,
        OpKind::ChloBroadcastSubtract => OpKind::Subtract,
        OpKind::ChloBroadcastXor => OpKind::Xor,
        OpKind::ChloBroadcastZeta => OpKind::ChloZeta,
        _ => return None,
    })
}

pub(super) fn broadcast(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let kind = cx.op().kind().and_then(inner).ok_or_else(|| cx.refused())?;
    let operands = expanded(cx)?;
    if kind.def().name().starts_with("chlo.") {
        return cx.replacement_as(kind, operands);
    }
    let kept = ["comparison_direction", "compare_type"];
    let attrs: Vec<(&'static str, Attribute)> =
        kept.into_iter().filter_map(|name| Some((name, cx.op().attrs().get(name)?.clone()))).collect();
    Ok(vec![cx.b.op(kind, &operands, attrs)?])
}

/// The operands, each repeated where that is needed.
fn expanded(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let types: Vec<TensorType> =
        (0..cx.operands.len()).map(|index| cx.tensor(index)).collect::<Result<_, _>>()?;
    let result = cx.op().result_tensor(0).cloned().ok_or_else(|| cx.refused())?;
    let rank = result.rank();
    let given: Option<Vec<i64>> = cx.op().attr_i64s("broadcast_dimensions").map(<[i64]>::to_vec);
    // `broadcast_dimensions` places the operand of lower rank; without it, the last dimensions meet.
    let place = |own: usize| match &given {
        Some(dims) if own < rank && dims.len() == own => dims.clone(),
        _ => (rank.saturating_sub(own)..rank).map(|dim| dim as i64).collect(),
    };
    if types.iter().all(|ty| ty.dims() == result.dims() && ty.is_static()) {
        return Ok(cx.operands.clone());
    }
    let operands = cx.operands.clone();
    let shape = result.shape().filter(|_| types.iter().all(TensorType::is_static));
    let sizes = match shape {
        Some(_) => None,
        None => {
            let mut sizes = Vec::new();
            for axis in 0..rank {
                sizes.push(joint_size(cx, &operands, &types, &place, axis)?);
            }
            Some(if sizes.is_empty() { cx.b.i64s(&[])? } else { cx.b.concatenate(&sizes, 0)? })
        }
    };
    let mut values = Vec::new();
    for (operand, ty) in operands.into_iter().zip(&types) {
        let dims = place(ty.rank());
        values.push(match (&shape, sizes) {
            (Some(shape), _) if ty.dims() == result.dims() => {
                debug_assert_eq!(ty.rank(), shape.len());
                operand
            }
            (Some(shape), _) => cx.b.broadcast_in_dim(operand, shape, &dims)?,
            (None, Some(sizes)) => {
                let ty = result.with_element(ty.element().clone());
                cx.repeated(operand, sizes, &dims, ty)?
            }
            (None, None) => return Err(cx.refused()),
        });
    }
    Ok(values)
}

/// The size of a dimension of the result: that of the first operand whose own is not one.
fn joint_size(
    cx: &mut Cx<'_, '_>,
    operands: &[ValueId],
    types: &[TensorType],
    place: &impl Fn(usize) -> Vec<i64>,
    axis: usize,
) -> Result<ValueId, Refusal> {
    let mut joint = None;
    for (&operand, ty) in operands.iter().zip(types) {
        let Some(own) = place(ty.rank()).iter().position(|&dim| dim == axis as i64) else { continue };
        if ty.dim(own) == Some(Dim::Static(1)) && joint.is_some() {
            continue;
        }
        let size = cx.size_of(operand, own)?;
        joint = Some(match joint {
            None => size,
            Some(before) => {
                let one = cx.b.splat_like(before, 1)?;
                let is_one = cx.b.compare(Eq, before, one)?;
                cx.b.select(is_one, size, before)?
            }
        });
    }
    joint.ok_or_else(|| cx.refused())
}
