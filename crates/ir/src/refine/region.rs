//! The regions of operations.

use std::collections::HashMap;

use super::RefineError;
use super::function::{Refiner, Value};
use crate::module::{BlockId, OpRef, RegionId, ValueId};
use crate::table::OpKind;
use crate::types::{Dim, Type};
use crate::verify::compatible;

impl<'m> Refiner<'m> {
    /// The regions of an operation, with arguments as its refined operands tell.
    pub(super) fn regions(
        &mut self,
        op: OpRef<'m>,
        operands: &[ValueId],
    ) -> Result<Vec<RegionId>, RefineError> {
        let mut regions = Vec::new();
        for &region in op.regions() {
            let copy = self.to.create_region();
            for &block in self.from.blocks(region) {
                self.region_block(op, block, operands, copy)?;
            }
            regions.push(copy);
        }
        Ok(regions)
    }

    fn region_block(
        &mut self,
        op: OpRef<'m>,
        block: BlockId,
        operands: &[ValueId],
        region: RegionId,
    ) -> Result<(), RefineError> {
        let copy = self.to.add_block(region);
        let mut scope = HashMap::new();
        for (index, &argument) in self.from.arguments(block).iter().enumerate() {
            let declared = self.from.value_type(argument);
            let given = self.argument_type(op, operands, index);
            let ty = match given {
                Some(given) if compatible::types(declared, &given) => {
                    compatible::most_specific(declared, &given)
                }
                _ => declared.clone(),
            };
            let id = Some(self.to.add_argument(copy, ty));
            let known = if self.is_carried_unchanged(op, index) {
                op.operand(index).and_then(|value| self.known(value)).cloned()
            } else {
                None
            };
            scope.insert(argument, Value { id, known, from: None });
        }
        self.scopes.push(scope);
        let built = self.block(block, copy);
        self.scopes.pop();
        built.map(|_| ())
    }

    /// The type that an argument has, where it is a matter of the operands.
    fn argument_type(&self, op: OpRef<'m>, operands: &[ValueId], index: usize) -> Option<Type> {
        let given = || operands.get(index).map(|&value| self.to.value_type(value).clone());
        match op.kind()? {
            OpKind::While | OpKind::AsyncStart => given(),
            OpKind::ChloScan => {
                let sizes = op.operand_group_sizes()?;
                let ty = given()?;
                let input = index < *sizes.first()?;
                if !input {
                    return Some(ty);
                }
                let axis = usize::try_from(op.attr_i64("dimension")?).ok()?;
                let tensor = ty.as_tensor()?;
                let mut dims: Vec<Dim> = tensor.dims().to_vec();
                if axis >= dims.len() {
                    return None;
                }
                dims.remove(axis);
                Some(Type::Tensor(tensor.with_dims(dims)))
            }
            _ => None,
        }
    }

    /// Whether a loop gives a value back to itself as it got it, so that what is known of it stays known.
    fn is_carried_unchanged(&self, op: OpRef<'m>, index: usize) -> bool {
        let unchanged = || {
            let body = op.region_block(1)?;
            let argument = self.from.arguments(body).get(index)?;
            Some(self.from.terminator(body)?.operand(index) == Some(*argument))
        };
        op.is(OpKind::While) && unchanged().unwrap_or(false)
    }
}
