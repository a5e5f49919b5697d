//! Copying operations from one module to another.

use std::collections::HashMap;

use super::{BlockId, Module, OpId, OpRef, ValueId};
use crate::attr::{Attribute, Dict};
use crate::types::Type;

/// Appends a copy of an operation, without its regions, with these operands, result types and attributes.
pub(crate) fn copy_shell(
    op: OpRef<'_>,
    to: &mut Module,
    block: BlockId,
    operands: Vec<ValueId>,
    types: Vec<Type>,
    attrs: Dict,
) -> OpId {
    let copy = match op.kind() {
        Some(kind) => to.create_op(kind, operands, types, attrs, op.span()),
        None => to.create_unregistered(op.name(), operands, types, attrs, op.span()),
    };
    to.append_op(block, copy);
    if let Some(location) = op.module().location(op.id()) {
        to.set_location(copy, location);
    }
    if let Some(text) = op.module().assembly(op.id()) {
        to.set_assembly(copy, text);
    }
    copy
}

/// Appends a copy of an operation with its regions. How deep they nest is bounded by whoever made the module.
pub(crate) fn copy_op(
    op: OpRef<'_>,
    to: &mut Module,
    block: BlockId,
    values: &mut HashMap<ValueId, ValueId>,
) -> OpId {
    let from = op.module();
    let operands = op.operands().iter().map(|value| values.get(value).copied().unwrap_or(*value)).collect();
    let types = op.result_types().cloned().collect();
    let copy = copy_shell(op, to, block, operands, types, op.attrs().clone());
    let results: Vec<ValueId> = to.op(copy).results().collect();
    values.extend(op.results().zip(results));
    for &region in op.regions() {
        let copied = to.add_region(copy);
        for &block in from.blocks(region) {
            let inner = to.add_block(copied);
            for &argument in from.arguments(block) {
                let added = to.add_argument(inner, from.value_type(argument).clone());
                values.insert(argument, added);
            }
            for op in from.ops_in(block) {
                copy_op(op, to, inner, values);
            }
        }
    }
    copy
}

/// The symbols that an attribute refers to.
pub(crate) fn symbols(value: &Attribute, found: &mut Vec<String>) {
    match value {
        Attribute::Symbol(path) => found.extend(path.iter().cloned()),
        Attribute::Array(values) => values.iter().for_each(|value| symbols(value, found)),
        Attribute::Dict(entries) => entries.entries().iter().for_each(|(_, value)| symbols(value, found)),
        _ => {}
    }
}
