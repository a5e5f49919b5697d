//! Operations with regions, and functions.

use super::{BuildError, Builder};
use crate::attr::Attribute;
use crate::module::{OpId, RegionId, ValueId};
use crate::table::OpKind;
use crate::types::{ElementType, Type};

impl Builder<'_> {
    /// A region with one block of these arguments. `body` builds what is in it and gives back what it returns.
    ///
    /// # Errors
    ///
    /// Those of `body`.
    pub fn region<E: From<BuildError>>(
        &mut self,
        arguments: &[Type],
        body: impl FnOnce(&mut Builder<'_>, &[ValueId]) -> Result<Vec<ValueId>, E>,
    ) -> Result<RegionId, E> {
        self.ended_region(OpKind::Return, arguments, body).map(|(region, _)| region)
    }

    fn ended_region<E: From<BuildError>>(
        &mut self,
        terminator: OpKind,
        arguments: &[Type],
        body: impl FnOnce(&mut Builder<'_>, &[ValueId]) -> Result<Vec<ValueId>, E>,
    ) -> Result<(RegionId, Vec<Type>), E> {
        let region = self.module.create_region();
        let block = self.module.add_block(region);
        let values: Vec<ValueId> =
            arguments.iter().map(|ty| self.module.add_argument(block, ty.clone())).collect();
        let outer = self.set_block(block);
        let built = body(self, &values).and_then(|returned| {
            self.create(terminator, &returned, [], vec![], None)?;
            Ok(returned.iter().map(|&value| self.ty(value).clone()).collect())
        });
        self.set_block(outer);
        Ok((region, built?))
    }

    /// A region that combines two scalars by an operation: `add`, `maximum`, …
    ///
    /// # Errors
    ///
    /// When the operation does not take two such scalars.
    pub fn reducer(&mut self, kind: OpKind, element: ElementType) -> Result<RegionId, BuildError> {
        let scalar = Type::tensor(&[], element);
        self.region(&[scalar.clone(), scalar], |b, values| Ok(vec![b.op(kind, values, [])?]))
    }

    /// Folds an operation over dimensions of a value, starting from a scalar.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn reduce(
        &mut self,
        kind: OpKind,
        operand: ValueId,
        init: ValueId,
        dimensions: &[i64],
    ) -> Result<ValueId, BuildError> {
        let ty = self.tensor_type(operand)?;
        let element = ty.element().plain().ok_or_else(|| BuildError::NotATensor(ty.to_string()))?;
        let body = self.reducer(kind, element)?;
        let attrs = [("dimensions", Attribute::i64s(dimensions))];
        let op = self.create(OpKind::Reduce, &[operand, init], attrs, vec![body], None)?;
        self.only_result(op)
    }

    /// Executes one of two branches.
    ///
    /// # Errors
    ///
    /// Those of the branches, or that they do not return the same types.
    pub fn if_else<E: From<BuildError>>(
        &mut self,
        pred: ValueId,
        on_true: impl FnOnce(&mut Builder<'_>) -> Result<Vec<ValueId>, E>,
        on_false: impl FnOnce(&mut Builder<'_>) -> Result<Vec<ValueId>, E>,
    ) -> Result<Vec<ValueId>, E> {
        let regions = vec![self.region(&[], |b, _| on_true(b))?, self.region(&[], |b, _| on_false(b))?];
        let op = self.create(OpKind::If, &[pred], [], regions, None)?;
        Ok(self.results(op))
    }

    /// Executes a body on values as long as a condition on them holds.
    ///
    /// # Errors
    ///
    /// Those of the condition and the body, or that they do not fit the values.
    pub fn while_loop<E: From<BuildError>>(
        &mut self,
        values: &[ValueId],
        condition: impl FnOnce(&mut Builder<'_>, &[ValueId]) -> Result<ValueId, E>,
        body: impl FnOnce(&mut Builder<'_>, &[ValueId]) -> Result<Vec<ValueId>, E>,
    ) -> Result<Vec<ValueId>, E> {
        let types: Vec<Type> = values.iter().map(|&value| self.ty(value).clone()).collect();
        let condition = self.region(&types, |b, values| Ok::<_, E>(vec![condition(b, values)?]))?;
        let body = self.region(&types, body)?;
        let op = self.create(OpKind::While, values, [], vec![condition, body], None)?;
        Ok(self.results(op))
    }

    /// Calls a function of the module.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn call(
        &mut self,
        callee: &str,
        operands: &[ValueId],
        results: &[Type],
    ) -> Result<Vec<ValueId>, BuildError> {
        let attrs = [("callee", Attribute::symbol(callee))];
        let op = self.create(OpKind::Call, operands, attrs, vec![], Some(results))?;
        Ok(self.results(op))
    }

    /// A function at the end of the block: its results are what `body` gives back.
    ///
    /// # Errors
    ///
    /// Those of `body`.
    pub fn function<E: From<BuildError>>(
        &mut self,
        name: &str,
        inputs: &[Type],
        body: impl FnOnce(&mut Builder<'_>, &[ValueId]) -> Result<Vec<ValueId>, E>,
    ) -> Result<OpId, E> {
        let (region, results) = self.ended_region(OpKind::FuncReturn, inputs, body)?;
        let attrs = [
            ("sym_name", Attribute::string(name)),
            ("function_type", Attribute::Type(Type::function(inputs.to_vec(), results))),
        ];
        Ok(self.create(OpKind::Func, &[], attrs, vec![region], None)?)
    }
}
