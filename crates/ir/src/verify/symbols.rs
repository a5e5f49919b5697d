//! The third kind of rules: functions, their names, and who calls whom.

use std::collections::HashMap;

use warpforge_diag::Diagnostic;

use super::compatible;
use crate::attr::{Attribute, MeshAxes, MeshRef};
use crate::module::{Func, Module, OpId, OpRef};
use crate::table::OpKind;
use crate::types::Type;

/// What holds of a function by itself, wherever it stands.
pub(super) fn check_function(function: Func<'_>, found: &mut Vec<Diagnostic>) {
    visibility(function, found);
    signature(function, found);
}

pub(super) fn check(module: &Module, found: &mut Vec<Diagnostic>) {
    let mut functions: HashMap<&str, Func<'_>> = HashMap::new();
    for function in module.functions() {
        if functions.insert(function.name(), function).is_some() {
            let message = format!("the function `@{}` is defined twice", function.name());
            found.push(Diagnostic::error(function.op().span(), message).with_rule("func.func: symbol"));
        }
    }
    let mut calls: HashMap<&str, Vec<(OpId, &str)>> = HashMap::new();
    for function in module.functions() {
        let mut pending = vec![function.op()];
        while let Some(op) = pending.pop() {
            let callees = op.callees();
            if op.is(OpKind::InterpreterRunParallel) {
                parallel(op, &functions, found);
            } else if let [callee] = callees.as_slice() {
                call(op, callee, functions.get(callee).copied(), found);
            }
            calls
                .entry(function.name())
                .or_default()
                .extend(callees.into_iter().map(|callee| (op.id(), callee)));
            if let Some(Attribute::MeshAxes(axes)) = op.attr("replica_groups") {
                named_mesh(op, axes, found);
            }
            let blocks = op.regions().iter().flat_map(|&region| module.blocks(region));
            pending.extend(blocks.flat_map(|&block| module.ops_in(block)));
        }
    }
    cycles(module, &calls, found);
}

/// Who may call a function is said in one of three words.
fn visibility(function: Func<'_>, found: &mut Vec<Diagnostic>) {
    let Some(word) = function.op().attr_str("sym_visibility") else { return };
    if !matches!(word, "public" | "private" | "nested") {
        let message = format!("a function is `public`, `private` or `nested`, not `{}`", word.escape_debug());
        found.push(Diagnostic::error(function.op().span(), message).with_rule("func.func: sym_visibility"));
    }
}

/// A function's body fits its signature.
fn signature(function: Func<'_>, found: &mut Vec<Diagnostic>) {
    let (Some(signature), Some(body)) = (function.signature(), function.body()) else { return };
    let module = function.op().module();
    let arguments = module.arguments(body).iter().map(|&value| module.value_type(value));
    if !arguments.eq(signature.inputs.iter()) {
        let message = "the body's arguments are not those of the signature";
        found.push(Diagnostic::error(function.op().span(), message).with_rule("func.func: signature"));
    }
    // The return of another dialect is not held against the signature, in MLIR neither.
    let Some(last) = module.terminator(body).filter(|last| last.is(OpKind::FuncReturn)) else { return };
    if !last.operand_types().eq(signature.results.iter()) {
        let message = format!("`@{}` does not return what its signature says", function.name());
        found.push(Diagnostic::error(last.span(), message).with_rule("func.return: signature"));
    }
}

fn call(op: OpRef<'_>, callee: &str, function: Option<Func<'_>>, found: &mut Vec<Diagnostic>) {
    let rule = format!("{}: symbol", op.name());
    let Some(signature) = function.and_then(Func::signature) else {
        found.push(Diagnostic::error(op.span(), format!("there is no function `@{callee}`")).with_rule(rule));
        return;
    };
    let fits = |given: Vec<&Type>, wanted: &[Type]| {
        given.len() == wanted.len() && given.iter().zip(wanted).all(|(a, b)| compatible::types(a, b))
    };
    let operands = fits(op.operand_types().collect(), &signature.inputs);
    if !operands || !fits(op.result_types().collect(), &signature.results) {
        let message = format!("the call does not fit `@{callee}`, which is {signature}");
        found.push(Diagnostic::error(op.span(), message).with_rule(rule));
    }
}

/// Replica groups that name a mesh of the module have axes of that mesh. A mesh that is not in the module may be given
/// elsewhere; evaluating without it is an error then.
fn named_mesh(op: OpRef<'_>, axes: &MeshAxes, found: &mut Vec<Diagnostic>) {
    let MeshRef::Symbol(name) = &axes.mesh else { return };
    let problem = match op.module().mesh(name) {
        None => return,
        Some(Ok(mesh)) => mesh.groups(&axes.axes).err(),
        Some(Err(error)) => Some(error),
    };
    if let Some(error) = problem {
        let rule = format!("{}: replica_groups", op.name());
        found.push(Diagnostic::error(op.span(), error.to_string()).with_rule(rule));
    }
}

/// The functions that `interpreter.run_parallel` runs.
fn programs(op: OpRef<'_>) -> impl Iterator<Item = &str> {
    let rows = op.attr("programs").and_then(Attribute::as_array).unwrap_or_default();
    rows.iter().filter_map(Attribute::as_array).flatten().filter_map(Attribute::as_symbol)
}

/// The functions that fill the infeed queue of `interpreter.run_parallel`.
fn infeed(op: OpRef<'_>) -> impl Iterator<Item = &str> {
    op.attr("infeed")
        .and_then(Attribute::as_array)
        .unwrap_or_default()
        .iter()
        .filter_map(Attribute::as_symbol)
}

/// The inputs and results of `interpreter.run_parallel` are those of all its programs. A function of the infeed returns
/// one tensor.
fn parallel(op: OpRef<'_>, functions: &HashMap<&str, Func<'_>>, found: &mut Vec<Diagnostic>) {
    let mut fail = |message: String| {
        let rule = "interpreter.run_parallel: symbol";
        found.push(Diagnostic::error(op.span(), message).with_rule(rule));
    };
    let (mut inputs, mut results, mut known) = (0, 0, true);
    for name in programs(op) {
        match functions.get(name).and_then(|function| function.signature()) {
            Some(signature) => {
                inputs += signature.inputs.len();
                results += signature.results.len();
            }
            None => {
                known = false;
                fail(format!("there is no function `@{name}`"));
            }
        }
    }
    for name in infeed(op) {
        match functions.get(name).and_then(|function| function.signature()) {
            Some(signature) if matches!(signature.results.as_slice(), [only] if only.is_tensor()) => {}
            Some(_) => fail(format!("`@{name}` of the infeed must return one tensor")),
            None => fail(format!("there is no function `@{name}`")),
        }
    }
    if known && op.operands().len() != inputs {
        fail(format!("{} inputs where the programs take {inputs}", op.operands().len()));
    }
    if known && op.result_count() != results {
        fail(format!("{} results where the programs return {results}", op.result_count()));
    }
}

/// No function is reached again from itself.
fn cycles(module: &Module, calls: &HashMap<&str, Vec<(OpId, &str)>>, found: &mut Vec<Diagnostic>) {
    // 1: on the way, 2: done.
    let mut state: HashMap<&str, u8> = HashMap::new();
    for function in module.functions() {
        let mut path: Vec<(&str, usize)> = vec![(function.name(), 0)];
        if state.contains_key(function.name()) {
            continue;
        }
        state.insert(function.name(), 1);
        while let Some((name, next)) = path.last_mut() {
            let Some(&(op, callee)) = calls.get(name).and_then(|list| list.get(*next)) else {
                state.insert(name, 2);
                path.pop();
                continue;
            };
            *next += 1;
            match state.get(callee) {
                None => {
                    state.insert(callee, 1);
                    path.push((callee, 0));
                }
                Some(1) => {
                    let message = format!("`@{callee}` calls itself in the end");
                    let span = module.op(op).span();
                    found.push(Diagnostic::error(span, message).with_rule("func.call: recursion"));
                }
                Some(_) => {}
            }
        }
    }
}
