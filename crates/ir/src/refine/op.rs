//! One operation at a time.

use super::RefineError;
use super::function::{Refiner, Value};
use super::known::{Known, fold};
use crate::attr::{Attribute, Dict};
use crate::module::copy::copy_shell;
use crate::module::{BlockId, OpId, OpRef, ValueId};
use crate::table::OpKind;
use crate::types::{ElementType, Type};

impl<'m> Refiner<'m> {
    pub(super) fn op(&mut self, op: OpRef<'m>, block: BlockId) -> Result<(), RefineError> {
        if let (Some(known), Some(result)) = (self.evaluate(op), op.result(0)) {
            self.define(result, Value { id: None, known: Some(known), from: Some(op.id()) });
            return Ok(());
        }
        match op.kind() {
            Some(OpKind::Call) => self.call(op, "callee", block),
            Some(OpKind::Composite) => self.call(op, "decomposition", block),
            Some(OpKind::CustomCall) => self.custom_call(op, block),
            _ => match self.to_static(op) {
                Some(form) => self.static_form(op, form, block),
                None => self.plain(op, block),
            },
        }
    }

    /// What the operation gives, when that follows from what is known.
    fn evaluate(&self, op: OpRef<'m>) -> Option<Known> {
        match op.kind()? {
            OpKind::Constant => Known::of(op.attr_elements("value")?),
            OpKind::GetDimensionSize => {
                let operand = self.refined_type(op.operand(0)?)?.as_tensor()?;
                let axis = usize::try_from(op.attr_i64("dimension")?).ok()?;
                let size = operand.dim(axis)?.size()?;
                Some(Known::scalar(ElementType::I32, i128::from(size)))
            }
            _ => {
                let operands: Option<Vec<&Known>> =
                    op.operands().iter().map(|&value| self.known(value)).collect();
                fold(op, &operands?)
            }
        }
    }

    /// The type that a value of the original has in the refined module.
    pub(super) fn refined_type(&self, value: ValueId) -> Option<&Type> {
        let entry = self.scopes.iter().rev().find_map(|scope| scope.get(&value))?;
        match entry.id {
            Some(id) => Some(self.to.value_type(id)),
            // The type of what is known is that of the original, which is static.
            None => Some(self.from.value_type(value)),
        }
    }

    /// The operation as it is, with refined results.
    pub(super) fn plain(&mut self, op: OpRef<'m>, block: BlockId) -> Result<(), RefineError> {
        let operands = self.operands(op, block);
        let regions = self.regions(op, &operands)?;
        let types = self.result_types(op, op.kind(), &operands, op.attrs(), &regions, None)?;
        let copy = self.append(op, block, operands, types, op.attrs().clone());
        self.to.set_regions(copy, regions);
        self.define_results(op, copy);
        Ok(())
    }

    pub(super) fn append(
        &mut self,
        op: OpRef<'m>,
        block: BlockId,
        operands: Vec<ValueId>,
        types: Vec<Type>,
        attrs: Dict,
    ) -> OpId {
        copy_shell(op, &mut self.to, block, operands, types, attrs)
    }

    pub(super) fn define_results(&mut self, op: OpRef<'m>, copy: OpId) {
        let copies: Vec<ValueId> = self.to.op(copy).results().collect();
        for (result, id) in op.results().zip(copies) {
            self.define(result, Value { id: Some(id), known: None, from: Some(op.id()) });
        }
    }

    /// A call of a function that is refined for its operands.
    fn call(&mut self, op: OpRef<'m>, callee: &'static str, block: BlockId) -> Result<(), RefineError> {
        let Some(name) = op.attr_symbol(callee) else { return self.plain(op, block) };
        let known: Vec<Option<Known>> =
            op.operands().iter().map(|&value| self.known(value).cloned()).collect();
        let operands = self.operands(op, block);
        let inputs: Vec<Type> = operands.iter().map(|&value| self.to.value_type(value).clone()).collect();
        let refined = self.called(name, &inputs, &known)?;
        let mut attrs = op.attrs().clone();
        attrs.set(callee, Attribute::symbol(refined.name));
        let copy = self.append(op, block, operands, refined.results, attrs);
        self.define_results(op, copy);
        for (result, known) in op.results().zip(refined.known) {
            if known.is_some() {
                self.define(result, Value { id: None, known, from: Some(op.id()) });
            }
        }
        Ok(())
    }
}
