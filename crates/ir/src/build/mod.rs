//! Building modules: an insertion point, a current location, and result types that are inferred.
//!
//! Every operation is held against its rule before it is made, so what a [`Builder`] has built verifies.
//!
//! ```
//! use warpforge_ir::build::{BuildError, Builder};
//! use warpforge_ir::{ElementType, Module, OpKind, Type};
//!
//! let mut module = Module::new();
//! let mut b = Builder::new(&mut module);
//! let x = Type::tensor(&[2, 3], ElementType::F32);
//! b.function("main", &[x], |b, inputs| {
//!     let one = b.splat_like(inputs[0], 1.0)?;
//!     let sum = b.op(OpKind::Add, &[inputs[0], one], [])?;
//!     let zero = b.scalar(ElementType::F32, 0.0)?;
//!     let total = b.reduce(OpKind::Add, sum, zero, &[0, 1])?;
//!     Ok::<_, BuildError>(vec![total])
//! })?;
//! assert!(warpforge_ir::verify(&module).is_empty());
//! # Ok::<(), BuildError>(())
//! ```

mod constant;
mod contraction;
mod elementwise;
mod error;
mod indexing;
mod region;
mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use warpforge_diag::Span;

pub use contraction::Convolution;
pub use error::BuildError;

use crate::attr::{Attribute, Dict};
use crate::module::{BlockId, Module, OpId, RegionId, ValueId};
use crate::table::OpKind;
use crate::types::{TensorType, Type};
use crate::verify::{InferError, infer};

/// Appends operations to a block of a module.
#[derive(Debug)]
pub struct Builder<'m> {
    module: &'m mut Module,
    block: BlockId,
    location: Option<Arc<str>>,
    span: Span,
}

impl<'m> Builder<'m> {
    /// A builder that appends to the module's own body, where functions are.
    pub fn new(module: &'m mut Module) -> Self {
        let block = module.body();
        Self::at(module, block)
    }

    /// A builder that appends to a block.
    pub fn at(module: &'m mut Module, block: BlockId) -> Self {
        Self { module, block, location: None, span: Span::NONE }
    }

    /// The module.
    pub fn module(&self) -> &Module {
        self.module
    }

    /// The module, to be changed in ways that a builder does not offer.
    pub fn module_mut(&mut self) -> &mut Module {
        self.module
    }

    /// The block that operations are appended to.
    pub fn block(&self) -> BlockId {
        self.block
    }

    /// Appends to another block from here on and returns the one before.
    pub fn set_block(&mut self, block: BlockId) -> BlockId {
        std::mem::replace(&mut self.block, block)
    }

    /// The location that new operations get, such as `loc("name"("file.py":3:0))`; returns the one before.
    pub fn set_location(&mut self, location: Option<Arc<str>>) -> Option<Arc<str>> {
        std::mem::replace(&mut self.location, location)
    }

    /// The place in the source that new operations get.
    pub fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        self.module.value_type(value)
    }

    /// The type of a value that is a ranked tensor.
    ///
    /// # Errors
    ///
    /// When it is anything else.
    pub fn tensor_type(&self, value: ValueId) -> Result<&TensorType, BuildError> {
        let ty = self.ty(value);
        ty.as_tensor().ok_or_else(|| BuildError::NotATensor(ty.to_string()))
    }

    /// Appends an operation with one result, whose type is inferred.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule, its result cannot be inferred, or there is not one.
    pub fn op(
        &mut self,
        kind: OpKind,
        operands: &[ValueId],
        attrs: impl IntoIterator<Item = (&'static str, Attribute)>,
    ) -> Result<ValueId, BuildError> {
        let op = self.create(kind, operands, attrs, vec![], None)?;
        self.only_result(op)
    }

    /// Appends an operation with one result of the type given.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule.
    pub fn op_as(
        &mut self,
        kind: OpKind,
        operands: &[ValueId],
        attrs: impl IntoIterator<Item = (&'static str, Attribute)>,
        result: Type,
    ) -> Result<ValueId, BuildError> {
        let op = self.create(kind, operands, attrs, vec![], Some(&[result]))?;
        self.only_result(op)
    }

    /// Appends any operation. `results` of `None` are inferred; [`Builder::region`] makes the regions.
    ///
    /// # Errors
    ///
    /// When the operation breaks a rule, or its results are to be inferred and cannot be.
    pub fn create(
        &mut self,
        kind: OpKind,
        operands: &[ValueId],
        attrs: impl IntoIterator<Item = (&'static str, Attribute)>,
        regions: Vec<RegionId>,
        results: Option<&[Type]>,
    ) -> Result<OpId, BuildError> {
        let attrs: Dict = attrs.into_iter().collect();
        let results =
            infer(self.module, kind, operands, &attrs, &regions, results).map_err(|why| self.refused(why))?;
        let op = self.module.create_op(kind, operands.to_vec(), results, attrs, self.span);
        if !regions.is_empty() {
            self.module.set_regions(op, regions);
        }
        if let Some(location) = &self.location {
            self.module.set_location(op, location.clone());
        }
        self.module.append_op(self.block, op);
        Ok(op)
    }

    /// The results of an operation.
    pub fn results(&self, op: OpId) -> Vec<ValueId> {
        self.module.op(op).results().collect()
    }

    fn refused(&self, why: InferError) -> BuildError {
        BuildError::Refused { why, location: self.location.as_deref().map(str::to_owned) }
    }

    fn only_result(&self, op: OpId) -> Result<ValueId, BuildError> {
        let found = self.module.op(op);
        match (found.result(0), found.result_count()) {
            (Some(value), 1) => Ok(value),
            (_, count) => Err(BuildError::Results { op: found.name().to_owned(), count }),
        }
    }
}
