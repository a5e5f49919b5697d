//! Verification: the constraints of the specification, all errors collected.
//!
//! Rules, in the order they are held:
//!
//! 1. Structure: an operation has the operands, results, regions and attributes that its table entry declares, of the
//!    classes it declares. A region has one block that ends as it must.
//! 2. The constraints of the specification, by their labels (`stablehlo.add: C1`), in the family files under `ops/`.
//!    Result types that can be inferred must agree with those that are given.
//! 3. Symbols: names are unique, calls fit the functions they name and do not come back to where they started.
//!
//! An operation that breaks a rule of the first kind is not held against the second.

pub mod compatible;
mod cx;
mod structure;
mod symbols;

pub use cx::{Cx, RegionTypes};
use warpforge_diag::Diagnostic;

use crate::attr::Dict;
use crate::module::{Module, OpRef};
use crate::table::{OpKind, Trait};
use crate::types::Type;

/// Constraints and type inference of one operation.
///
/// Broken constraints are reported through the context. Returns the result types where operands, attributes and
/// regions determine them.
pub type Rule = fn(&mut Cx<'_>) -> Option<Vec<Type>>;

/// Everything that is wrong with a module; nothing when it is valid.
pub fn verify(module: &Module) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut pending = vec![module.root()];
    while let Some(op) = pending.pop() {
        verify_op(op, &mut found);
        let inner = op.regions().iter().rev().flat_map(|&region| module.blocks(region).iter().rev());
        pending
            .extend(inner.flat_map(|&block| module.block_ops(block).iter().rev()).map(|&id| module.op(id)));
    }
    symbols::check(module, &mut found);
    found.sort_by_key(|diagnostic| diagnostic.span.start);
    found
}

fn verify_op(op: OpRef<'_>, found: &mut Vec<Diagnostic>) {
    let Some(def) = op.def() else { return };
    let before = found.len();
    structure::check(op, def, found);
    if found.len() > before {
        return;
    }
    let mut cx = Cx::new(
        def,
        op.operand_types().collect(),
        Some(op.result_types().collect()),
        op.attrs(),
        regions(op),
    );
    if def.is(Trait::SameTypes) {
        crate::ops::same_types(&mut cx);
    }
    if let Some(rule) = def.rule {
        rule(&mut cx);
    }
    report(op, cx, found);
}

fn report(op: OpRef<'_>, cx: Cx<'_>, found: &mut Vec<Diagnostic>) {
    let name = op.name();
    for (label, message) in cx.into_broken() {
        found.push(Diagnostic::error(op.span(), message).with_rule(format!("{name}: {label}")));
    }
}

/// The types of the regions of an operation.
fn regions<'m>(op: OpRef<'m>) -> Vec<RegionTypes<'m>> {
    op.regions().iter().map(|&region| RegionTypes::of(op.module(), region)).collect()
}

/// The result types of an operation that is to be made, or what is wrong with it.
///
/// With `results` given, the operation is held against them; without, they are inferred.
///
/// # Errors
///
/// The broken constraints, or that the results cannot be inferred.
pub fn infer(
    kind: OpKind,
    operands: &[&Type],
    attrs: &Dict,
    regions: Vec<RegionTypes<'_>>,
    results: Option<&[Type]>,
) -> Result<Vec<Type>, Vec<String>> {
    let def = kind.def();
    let given: Option<Vec<&Type>> = results.map(|types| types.iter().collect());
    let mut broken = Vec::new();
    let parts = structure::Parts { operands: operands.to_vec(), results: given.clone(), attrs };
    structure::signature(def, &parts, &mut |label, why| {
        broken.push(format!("{}: {label}: {why}", def.name()));
    });
    if !broken.is_empty() {
        return Err(broken);
    }
    let mut cx = Cx::new(def, operands.to_vec(), given, attrs, regions);
    let mut inferred = if def.is(Trait::SameTypes) { crate::ops::same_types(&mut cx) } else { None };
    if let Some(rule) = def.rule {
        inferred = rule(&mut cx).or(inferred);
    }
    let broken = cx.into_broken();
    if !broken.is_empty() {
        return Err(broken
            .into_iter()
            .map(|(label, why)| format!("{}: {label}: {why}", def.name()))
            .collect());
    }
    match results {
        Some(results) => Ok(results.to_vec()),
        None if def.results.is_empty() => Ok(Vec::new()),
        None => inferred.ok_or_else(|| vec![format!("{}: the result types cannot be inferred", def.name())]),
    }
}
