//! The types of results, once those of the operands are refined.

use super::RefineError;
use super::function::Refiner;
use crate::attr::Dict;
use crate::module::{OpRef, RegionId, ValueId};
use crate::table::OpKind;
use crate::types::{Dim, TensorType, Type};
use crate::verify::{InferError, compatible, infer};

impl Refiner<'_> {
    /// The types of an operation's results: those it has, refined by what its operands tell. `told` is known from
    /// elsewhere.
    pub(super) fn result_types(
        &self,
        op: OpRef<'_>,
        kind: Option<OpKind>,
        operands: &[ValueId],
        attrs: &Dict,
        regions: &[RegionId],
        told: Option<Vec<Type>>,
    ) -> Result<Vec<Type>, RefineError> {
        let old: Vec<Type> = op.result_types().cloned().collect();
        let Some(kind) = kind else { return Ok(old) };
        let types = match told {
            Some(types) => types,
            None => match infer(&self.to, kind, operands, attrs, regions, None) {
                Ok(types) => types,
                Err(InferError::Unknown(_)) => self.fallback(op, operands).unwrap_or_else(|| old.clone()),
                Err(InferError::Broken(why)) => return Err(self.contradiction(op, why.join("; "))),
            },
        };
        let mut refined = Vec::with_capacity(old.len());
        for (index, old) in old.iter().enumerate() {
            let new = types.get(index).unwrap_or(old);
            if !compatible::types(old, new) {
                let why = format!("{}: the result is {old}, and from these operands {new}", op.name());
                return Err(self.contradiction(op, why));
            }
            refined.push(compatible::most_specific(old, new));
        }
        match infer(&self.to, kind, operands, attrs, regions, Some(&refined)) {
            Err(InferError::Broken(why)) => Err(self.contradiction(op, why.join("; "))),
            _ => Ok(refined),
        }
    }

    pub(super) fn contradiction(&self, op: OpRef<'_>, why: String) -> RefineError {
        let location = self.from.location(op.id()).map(str::to_owned);
        RefineError::Contradiction { why, span: op.span(), location }
    }

    /// What the shape of an operand tells about results whose elements it does not determine.
    fn fallback(&self, op: OpRef<'_>, operands: &[ValueId]) -> Option<Vec<Type>> {
        let operand = self.to.value_type(*operands.first()?).as_tensor()?;
        let result = op.result_tensor(0).filter(|_| op.result_count() == 1)?;
        let dims = match op.kind()? {
            OpKind::Convert | OpKind::UniformQuantize => operand.dims().to_vec(),
            OpKind::BitcastConvert => bitcast_dims(operand, result)?,
            OpKind::AllGather => except(operand, result, op.attr_i64("all_gather_dim")?),
            OpKind::ReduceScatter => except(operand, result, op.attr_i64("scatter_dimension")?),
            OpKind::CustomCall if op.attr_str("call_target_name") == Some("Sharding") => {
                operand.dims().to_vec()
            }
            _ => return None,
        };
        Some(vec![Type::Tensor(result.with_dims(dims))])
    }
}

/// The dimensions of one tensor, but for one that is another's.
fn except(operand: &TensorType, result: &TensorType, axis: i64) -> Vec<Dim> {
    let pick = |(index, dim): (usize, &Dim)| {
        if index as i64 == axis { result.dim(index).unwrap_or(Dim::Dynamic) } else { *dim }
    };
    operand.dims().iter().enumerate().map(pick).collect()
}

fn bitcast_dims(operand: &TensorType, result: &TensorType) -> Option<Vec<Dim>> {
    let (from, to) = (operand.element().storage()?.bits(), result.element().storage()?.bits());
    let mut dims = operand.dims().to_vec();
    if from > to {
        dims.push(Dim::Static(u64::from(from.checked_div(to)?)));
    } else if from < to {
        dims.pop();
    }
    Some(dims)
}
