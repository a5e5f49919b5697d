//! Another evaluator judged by the same checks: it computes what they look at, the reference judges.

use std::collections::HashMap;

use warpforge_ir::slice::{part, slice};
use warpforge_ir::{Func, Module, OpId, OpKind, ValueDef, ValueId};
use warpforge_tensor::Tensor;

use super::case::is_check;
use crate::{ErrorKind, Interpreter, Options, Result, Value};

/// An evaluator that conformance files are run on.
pub trait Engine: Send + Sync {
    /// Runs a function of a verified module.
    ///
    /// # Errors
    ///
    /// Why it could not.
    fn run(
        &self,
        module: Module,
        function: &str,
        inputs: Vec<Tensor>,
    ) -> std::result::Result<Vec<Tensor>, String>;
}

/// Computes what the checks of a function look at on an engine, from the function's constants, and judges it.
///
/// `None` when the checks are not in the function's own body, or look at something that is no tensor: the reference runs
/// such a function as a whole.
pub(super) fn judged(func: Func<'_>, engine: &dyn Engine, options: &Options) -> Option<Result<()>> {
    let module = func.op().module();
    let ops = module.ops_in(func.body()?);
    let checks: Vec<OpId> = ops.filter(|op| is_check(*op)).map(warpforge_ir::OpRef::id).collect();
    let judge = part(func, &checks).filter(|judge| !judge.inputs.is_empty())?;
    let parallel = |id: &OpId| module.op(*id).is(OpKind::InterpreterRunParallel);
    if !func.arguments().is_empty() || checks.iter().any(parallel) {
        return None;
    }
    let is_constant = |value: ValueId| match module.value_def(value) {
        ValueDef::Result(op, _) => module.op(op).is(OpKind::Constant),
        ValueDef::Argument(..) => false,
    };
    let wanted: Vec<ValueId> = judge.inputs.iter().copied().filter(|&value| !is_constant(value)).collect();
    if wanted.is_empty() || wanted.iter().any(|&value| module.value_type(value).as_tensor().is_none()) {
        return None;
    }
    let computed = slice(func, &wanted, &is_constant)?;
    let mut known: Vec<ValueId> = judge.inputs.iter().copied().filter(|&value| is_constant(value)).collect();
    known.extend(&computed.inputs);
    Some((|| {
        let mut values: HashMap<ValueId, Value> = HashMap::new();
        if let Some(constants) = slice(func, &known, &|_| false) {
            let given = Interpreter::new(&constants.module, options.clone()).run(func.name(), Vec::new())?;
            values.extend(known.iter().copied().zip(given));
        }
        let inputs: Result<Vec<Tensor>> =
            computed.inputs.iter().map(|value| values[value].as_tensor().cloned()).collect();
        let given = engine.run(computed.module, func.name(), inputs?);
        let given = given.map_err(|reason| ErrorKind::Invalid(format!("the engine: {reason}")))?;
        values.extend(wanted.into_iter().zip(given.into_iter().map(Value::Tensor)));
        let inputs = judge.inputs.iter().map(|value| values[value].clone()).collect();
        Interpreter::new(&judge.module, options.clone()).run(func.name(), inputs).map(drop)
    })())
}
