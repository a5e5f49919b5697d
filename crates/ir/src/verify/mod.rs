//! Verification: the constraints of the specification, all errors collected.
//!
//! Rules, in the order they are held:
//!
//! 1. Structure: an operation of a known dialect is in the table. It has the operands, results, regions and attributes
//!    that its table entry declares, of the classes it declares. A region has one block that ends as it must.
//! 2. The constraints of the specification, by their labels (`stablehlo.add: C1`), in the family files under `ops/`.
//!    Result types that can be inferred must agree with those that are given.
//! 3. Symbols: names are unique, calls fit the functions they name and do not come back to where they started.
//! 4. Aliases: an argument that names the result which is its new value has that result's type, and no other names it.
//!
//! An operation that breaks a rule of the first kind is not held against the second.

mod aliasing;
pub mod compatible;
mod cx;
pub mod quantized;
mod structure;
mod symbols;

pub use cx::{Broken, Candidate, Cx, RegionTypes};
use warpforge_diag::{Diagnostic, Severity};

use crate::attr::{DenseElements, Dict};
use crate::module::{Func, Module, OpRef, RegionId, ValueId};
use crate::table::{OpDef, OpKind, Trait};
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
        if let Some(function) = Func::new(op) {
            symbols::check_function(function, &mut found);
            aliasing::check(function, &mut found);
        }
        let inner = op.regions().iter().rev().flat_map(|&region| module.blocks(region).iter().rev());
        pending
            .extend(inner.flat_map(|&block| module.block_ops(block).iter().rev()).map(|&id| module.op(id)));
    }
    symbols::check(module, &mut found);
    found.sort_by_key(|diagnostic| diagnostic.span.start);
    found
}

fn verify_op(op: OpRef<'_>, found: &mut Vec<Diagnostic>) {
    let Some(def) = op.def() else {
        // What other dialects mean is theirs to say; these have no operations but those of the table.
        if matches!(
            op.name().split('.').next(),
            Some("stablehlo" | "chlo" | "func" | "check" | "interpreter")
        ) {
            let message = format!("there is no operation `{}`", op.name());
            found.push(Diagnostic::error(op.span(), message).with_rule("name"));
        }
        return;
    };
    let before = found.len();
    let candidate = candidate(op, def);
    structure::check(op, &candidate, found);
    if found.len() > before {
        return;
    }
    let (broken, _) = hold(candidate);
    for broken in broken {
        let rule = format!("{}: {}", op.name(), broken.label);
        let diagnostic = match broken.severity {
            Severity::Error => Diagnostic::error(op.span(), broken.message),
            Severity::Warning => Diagnostic::warning(op.span(), broken.message),
        };
        found.push(diagnostic.with_rule(rule));
    }
}

/// Holds an operation against its rule: what it breaks, and the result types where they can be inferred.
fn hold(candidate: Candidate<'_>) -> (Vec<Broken>, Option<Vec<Type>>) {
    let def = candidate.def;
    let mut cx = Cx::new(candidate);
    let mut inferred = if def.is(Trait::SameTypes) { crate::ops::same_types(&mut cx) } else { None };
    if let Some(rule) = def.rule {
        inferred = rule(&mut cx).or(inferred);
    }
    (cx.into_broken(), inferred)
}

/// An existing operation as its rule sees it.
fn candidate<'m>(op: OpRef<'m>, def: &'static OpDef) -> Candidate<'m> {
    let module = op.module();
    Candidate {
        def,
        operands: op.operand_types().collect(),
        constants: constants(module, op.operands()),
        results: Some(op.result_types().collect()),
        attrs: op.attrs(),
        regions: op.regions().iter().map(|&region| RegionTypes::of(module, region)).collect(),
    }
}

/// Which values are constants.
fn constants<'m>(module: &'m Module, values: &[ValueId]) -> Vec<Option<&'m DenseElements>> {
    let constant = |&value: &ValueId| {
        let op = module.defining_op(value).filter(|op| op.is(OpKind::Constant))?;
        op.attr_elements("value")
    };
    values.iter().map(constant).collect()
}

/// Why an operation has no result types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InferError {
    /// It breaks constraints, each given as `operation: label: what is wrong`.
    #[error("{}", .0.join("; "))]
    Broken(Vec<String>),
    /// Operands and attributes do not determine the results.
    #[error("{}: the result types cannot be inferred", .0.name())]
    Unknown(OpKind),
}

/// The result types of an operation that is to be made, or what is wrong with it.
///
/// With `results` given, the operation is held against them; without, they are inferred.
///
/// # Errors
///
/// The broken constraints, or that the results cannot be inferred.
pub fn infer(
    module: &Module,
    kind: OpKind,
    operands: &[ValueId],
    attrs: &Dict,
    regions: &[RegionId],
    results: Option<&[Type]>,
) -> Result<Vec<Type>, InferError> {
    let def = kind.def();
    let candidate = Candidate {
        def,
        operands: operands.iter().map(|&value| module.value_type(value)).collect(),
        constants: constants(module, operands),
        results: results.map(|types| types.iter().collect()),
        attrs,
        regions: regions.iter().map(|&region| RegionTypes::of(module, region)).collect(),
    };
    let mut broken = Vec::new();
    structure::signature(&candidate, &mut |label: &str, why: String| {
        broken.push(format!("{}: {label}: {why}", def.name()));
    });
    if !broken.is_empty() {
        return Err(InferError::Broken(broken));
    }
    let (found, inferred) = hold(candidate);
    let errors = found.into_iter().filter(|broken| broken.severity == Severity::Error);
    broken.extend(errors.map(|broken| format!("{}: {}: {}", def.name(), broken.label, broken.message)));
    if !broken.is_empty() {
        return Err(InferError::Broken(broken));
    }
    match results {
        Some(results) => Ok(results.to_vec()),
        None if def.results.is_empty() => Ok(Vec::new()),
        None => inferred.ok_or(InferError::Unknown(kind)),
    }
}
