//! Custom calls that refinement knows: conditions on shapes, and results whose shapes are operands.

use super::RefineError;
use super::function::Refiner;
use crate::module::{BlockId, OpRef};
use crate::types::{Dim, Type};

/// What JAX writes where the sizes of inputs must satisfy a condition.
const SHAPE_ASSERTION: &str = "shape_assertion";

/// The attribute that says which operands of a call are the shapes of its results.
const SHAPE_OPERANDS: &str = "indices_of_shape_operands";

impl<'m> Refiner<'m> {
    pub(super) fn custom_call(&mut self, op: OpRef<'m>, block: BlockId) -> Result<(), RefineError> {
        if op.attr_str("call_target_name") == Some(SHAPE_ASSERTION)
            && let Some(holds) = op.operand(0).and_then(|value| self.known(value))
        {
            if holds.values().iter().all(|value| *value != 0) {
                return Ok(());
            }
            return Err(RefineError::Assertion { message: self.message(op), span: op.span() });
        }
        let Some(told) = self.told_by_operands(op) else { return self.plain(op, block) };
        let operands = self.operands(op, block);
        let regions = self.regions(op, &operands)?;
        let types = self.result_types(op, op.kind(), &operands, op.attrs(), &regions, Some(told))?;
        let copy = self.append(op, block, operands, types, op.attrs().clone());
        self.to.set_regions(copy, regions);
        self.define_results(op, copy);
        Ok(())
    }

    /// The message of an assertion, with the values that it names by `{0}`, `{1}`, ….
    fn message(&self, op: OpRef<'m>) -> String {
        let template = op.attrs().get("error_message").and_then(|attr| attr.as_str());
        let mut message =
            template.unwrap_or("a condition on the shapes of the inputs does not hold").to_owned();
        for (index, &operand) in op.operands().iter().skip(1).enumerate() {
            if let Some([value]) = self.known(operand).map(super::known::Known::values) {
                message = message.replace(&format!("{{{index}}}"), &value.to_string());
            }
        }
        message
    }

    /// The types of results whose shapes are operands that are known.
    fn told_by_operands(&self, op: OpRef<'m>) -> Option<Vec<Type>> {
        let indices = op.attrs().get(SHAPE_OPERANDS)?;
        let indices = match indices.as_i64s() {
            Some(indices) => indices.to_vec(),
            None => indices.as_elements()?.to_i64s()?,
        };
        if indices.len() != op.result_count() {
            return None;
        }
        let told = |(index, ty): (&i64, &Type)| {
            let operand = op.operand(usize::try_from(*index).ok()?)?;
            let shape = self.known(operand)?.sizes()?;
            let dims: Vec<Dim> = shape.into_iter().map(Dim::Static).collect();
            Some(Type::Tensor(ty.as_tensor()?.with_dims(dims)))
        };
        indices.iter().zip(op.result_types()).map(told).collect()
    }
}
