//! Functions: `func.func` operations with their signature and body.

use super::{BlockId, OpRef, ValueId};
use crate::attr::{Attribute, Dict};
use crate::table::OpKind;
use crate::types::{FunctionType, Type};

/// A function of a module.
#[derive(Clone, Copy, Debug)]
pub struct Func<'m> {
    op: OpRef<'m>,
}

impl<'m> Func<'m> {
    /// The function that an operation is, if it is one.
    pub fn new(op: OpRef<'m>) -> Option<Self> {
        op.is(OpKind::Func).then_some(Self { op })
    }

    /// The operation.
    pub fn op(self) -> OpRef<'m> {
        self.op
    }

    /// The name, without the `@`.
    pub fn name(self) -> &'m str {
        self.op.attr_str("sym_name").unwrap_or("")
    }

    /// Whether it is visible from outside the module: anything but `private`.
    pub fn is_public(self) -> bool {
        self.op.attr_str("sym_visibility") != Some("private")
    }

    /// The signature.
    pub fn signature(self) -> Option<&'m FunctionType> {
        self.op.attr("function_type")?.as_type()?.as_function()
    }

    /// The types of the results.
    pub fn result_types(self) -> &'m [Type] {
        self.signature().map_or(&[], |signature| &signature.results)
    }

    /// The block of the body; a declaration has none.
    pub fn body(self) -> Option<BlockId> {
        self.op.region_block(0)
    }

    /// The arguments of the body.
    pub fn arguments(self) -> &'m [ValueId] {
        self.body().map_or(&[], |block| self.op.module().arguments(block))
    }

    /// The attributes of an argument.
    pub fn argument_attrs(self, index: usize) -> Option<&'m Dict> {
        self.listed("arg_attrs", index)
    }

    /// The attributes of a result.
    pub fn result_attrs(self, index: usize) -> Option<&'m Dict> {
        self.listed("res_attrs", index)
    }

    fn listed(self, name: &str, index: usize) -> Option<&'m Dict> {
        self.op.attr(name)?.as_array()?.get(index).and_then(Attribute::as_dict)
    }
}
