//! The first kind of rules: an operation has what its table entry declares.

use warpforge_diag::Diagnostic;

use super::{Candidate, quantized};
use crate::module::{OpId, OpRef};
use crate::table::{OpDef, OpKind, Presence, Trait, TypeClass, ValueSpec};
use crate::types::Type;

pub(super) fn check(op: OpRef<'_>, candidate: &Candidate<'_>, found: &mut Vec<Diagnostic>) {
    let mut fail = |label: &str, message: String| {
        found.push(Diagnostic::error(op.span(), message).with_rule(format!("{}: {label}", op.name())));
    };
    signature(candidate, &mut fail);
    regions(op, candidate.def, &mut fail);
}

/// Operands, results and attributes are those that the table declares.
pub(super) fn signature(parts: &Candidate<'_>, fail: &mut impl FnMut(&str, String)) {
    let def = parts.def;
    let segments = parts.attrs.segment_sizes("operandSegmentSizes");
    let count = parts.operands.len();
    match def.operand_groups(count, segments.as_deref()) {
        None => {
            fail("operands", format!("{count} operands do not fit the {} declared ones", def.operands.len()));
        }
        Some(sizes) => classes(def, "operand", &def.operands, &sizes, &parts.operands, fail),
    }
    if let Some(results) = &parts.results {
        let segments = parts.attrs.segment_sizes("resultSegmentSizes");
        let count = results.len();
        match def.result_groups(count, segments.as_deref()) {
            None => {
                fail(
                    "results",
                    format!("{count} results do not fit the {} declared ones", def.results.len()),
                );
            }
            Some(sizes) => classes(def, "result", &def.results, &sizes, results, fail),
        }
    }
    for attr in &def.attrs {
        let message = match parts.attrs.get(attr.name) {
            None if attr.presence == Presence::Required => {
                format!("the attribute `{}` is missing", attr.name)
            }
            Some(value) if !attr.kind.accepts(value) => {
                format!("the attribute `{}` must be {}, not {value}", attr.name, attr.kind.describe())
            }
            _ => continue,
        };
        fail(def.input_label(attr.name).as_deref().unwrap_or("attributes"), message);
    }
}

fn classes(
    def: &OpDef,
    what: &str,
    specs: &[ValueSpec],
    sizes: &[usize],
    types: &[&Type],
    fail: &mut impl FnMut(&str, String),
) {
    let mut types = types.iter();
    for (spec, size) in specs.iter().zip(sizes) {
        for ty in types.by_ref().take(*size) {
            let message = if !spec.class.accepts(ty) {
                format!("the {what} `{}` must be {}, not {ty}", spec.name, spec.class.describe())
            } else if spec.class == TypeClass::ANY {
                // What returns and calls carry is checked where it is used.
                continue;
            } else if let Err(problem) = quantized::check_type(ty) {
                format!("the {what} `{}` has the type {ty}: {problem}", spec.name)
            } else {
                continue;
            };
            let label = if what == "operand" { def.input_label(spec.name) } else { None };
            fail(label.as_deref().unwrap_or(what), message);
        }
    }
}

fn regions(op: OpRef<'_>, def: &'static OpDef, fail: &mut impl FnMut(&str, String)) {
    let many = def.regions.iter().any(|region| region.many);
    if !many && op.regions().len() != def.regions.len() {
        fail("regions", format!("{} regions instead of {}", op.regions().len(), def.regions.len()));
        return;
    }
    if many && op.regions().is_empty() && def.regions.iter().any(|region| region.required) {
        fail("regions", "there must be at least one region".to_owned());
    }
    let module = op.module();
    let is_terminator = |id: &OpId| module.op(*id).def().is_some_and(OpDef::is_terminator);
    if op.is(OpKind::Module) {
        let blocks = op.regions().iter().flat_map(|&region| module.blocks(region));
        if blocks.flat_map(|&block| module.block_ops(block)).any(is_terminator) {
            fail("regions", "nothing returns from a module".to_owned());
        }
        return;
    }
    for &region in op.regions() {
        let &[block] = module.blocks(region) else {
            // A function without a body is declared elsewhere.
            if !(op.is(OpKind::Func) && module.blocks(region).is_empty()) {
                fail(
                    "regions",
                    format!("a region has {} blocks instead of one", module.blocks(region).len()),
                );
            }
            continue;
        };
        if def.is(Trait::NoBlockArguments) && !module.arguments(block).is_empty() {
            fail("regions", "the blocks of this operation take no arguments".to_owned());
        }
        let wanted = if op.is(OpKind::Func) { OpKind::FuncReturn } else { OpKind::Return };
        let last = module.terminator(block);
        // Files end functions with the dialect's own return too.
        if !last.is_some_and(|last| last.is(wanted) || last.is(OpKind::Return)) {
            fail("regions", format!("a region must end with `{}`", wanted.name()));
        }
        let ops = module.block_ops(block);
        if ops.iter().rev().skip(1).any(is_terminator) {
            fail("regions", "something follows the end of a block".to_owned());
        }
    }
}
