//! The fourth kind of rules: arguments whose buffers results take.

use std::collections::HashMap;

use warpforge_diag::Diagnostic;

use crate::attr::Dict;
use crate::module::Func;
use crate::signature::{ALIASING_OUTPUT, BUFFER_DONOR};
use crate::types::FunctionType;

/// Every alias of a function's arguments is with a result of the same type, and with one that no other argument has.
pub(super) fn check(function: Func<'_>, found: &mut Vec<Diagnostic>) {
    let Some(types) = function.signature() else { return };
    let mut taken: HashMap<usize, usize> = HashMap::new();
    for at in 0..types.inputs.len() {
        let Some(attrs) = function.argument_attrs(at) else { continue };
        let mut fail = |attribute: &str, what: String| {
            let message = format!("argument {at} of `@{}`: {what}", function.name());
            let rule = format!("func.func: {attribute}");
            found.push(Diagnostic::error(function.op().span(), message).with_rule(rule));
        };
        if let Err(what) = donor(attrs) {
            fail(BUFFER_DONOR, what);
        }
        match alias(attrs, types, at) {
            Err(what) => fail(ALIASING_OUTPUT, what),
            Ok(None) => {}
            Ok(Some(result)) => {
                if let Some(other) = taken.insert(result, at) {
                    fail(
                        ALIASING_OUTPUT,
                        format!("result {result} is aliased with argument {other} already"),
                    );
                }
            }
        }
    }
}

fn donor(attrs: &Dict) -> Result<(), String> {
    match attrs.get(BUFFER_DONOR).map(|value| (value, value.as_bool())) {
        None => Ok(()),
        Some((value, None)) => Err(format!("{BUFFER_DONOR} is true or false, not {value}")),
        Some((_, Some(true))) if attrs.get(ALIASING_OUTPUT).is_some() => {
            Err(format!("{BUFFER_DONOR} and {ALIASING_OUTPUT} exclude each other"))
        }
        Some(_) => Ok(()),
    }
}

/// The result that an argument is aliased with.
fn alias(attrs: &Dict, types: &FunctionType, at: usize) -> Result<Option<usize>, String> {
    let Some(value) = attrs.get(ALIASING_OUTPUT) else { return Ok(None) };
    let result = value.as_i64().and_then(|result| usize::try_from(result).ok());
    let result = result.ok_or_else(|| format!("{ALIASING_OUTPUT} is the number of a result, not {value}"))?;
    let Some(ty) = types.results.get(result) else {
        return Err(format!("it is aliased with result {result} of {}", types.results.len()));
    };
    let own = &types.inputs[at];
    if own != ty {
        return Err(format!("it is {own}, the result {result} that it is aliased with is {ty}"));
    }
    Ok(Some(result))
}
