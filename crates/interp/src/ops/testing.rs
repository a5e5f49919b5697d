//! The `check` and `interpreter` dialects that tests use.

use warpforge_ir::OpKind;
use warpforge_ir::attr::Attribute;
use warpforge_tensor::compare::{Criterion, NanPolicy, Tolerance, compare};
use warpforge_tensor::io::npy;
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::{Evaluator, constant_tensor};
use crate::Value;
use crate::cx::{Cx, missing, one};
use crate::error::{ErrorKind, Result, check_failed, invalid};
use crate::machine::run_grid;

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::CheckExpectAlmostEq => expect_almost_eq,
        OpKind::CheckExpectAlmostEqConst => expect_almost_eq_const,
        OpKind::CheckExpectClose => expect_close,
        OpKind::CheckExpectEq => expect_eq,
        OpKind::CheckExpectEqConst => expect_eq_const,
        OpKind::CheckExpectSerializedEq => expect_serialized_eq,
        OpKind::InterpreterPrint => print,
        OpKind::InterpreterProbe => probe,
        OpKind::InterpreterRunParallel => run_parallel,
        _ => return None,
    })
}

/// Equality as the language has it: NaN equals nothing, and the two zeros are equal.
const EQUAL: Criterion = Criterion { tolerance: Tolerance::Exact, nan: NanPolicy::MatchesNothing };

/// What the operations of the dialect allow unless they say otherwise.
const DEFAULT_TOLERANCE: f64 = 1e-4;

fn judge(actual: &Tensor, expected: &Tensor, criterion: Criterion) -> Result<()> {
    let report = compare(actual, expected, criterion)?;
    let Some(first) = &report.first else { return Ok(()) };
    Err(check_failed(format!(
        "{} of {} elements differ, the first at {:?}: {} where {} is expected (largest distance {} ULP, {:e} absolute)",
        report.mismatches,
        report.count,
        first.index,
        first.actual,
        first.expected,
        report.max_ulp,
        report.max_absolute
    )))
}

fn judge_values(actual: &Value, expected: &Value, criterion: Criterion) -> Result<()> {
    match (actual, expected) {
        (Value::Tensor(actual), Value::Tensor(expected)) => judge(actual, expected, criterion),
        (Value::Token, Value::Token) => Ok(()),
        (Value::Tuple(actual), Value::Tuple(expected)) if actual.len() == expected.len() => {
            actual.iter().zip(expected).try_for_each(|(a, b)| judge_values(a, b, criterion))
        }
        _ => Err(check_failed("the values are of different kinds")),
    }
}

/// The custom calls of the same names.
pub(crate) fn check_call(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (first, second) = (cx.tensor(0)?, cx.tensor(1)?);
    let target = cx.str("call_target_name")?;
    let float = first.element_type().is_float() || first.element_type().is_complex();
    let loose = cx.machine.options.loose_checks.zip(first.element_type().float_part());
    if let Some((rtol, part)) = loose {
        judge(first, second, Criterion::new(Tolerance::Scaled { rtol: rtol.max(part.format().epsilon()) }))?;
        return held(cx);
    }
    match target {
        "check.expect_close" => judge(first, second, Criterion::new(Tolerance::Ulp { min: 0, max: 3 }))?,
        "check.expect_almost_eq" => judge(first, second, Criterion::new(Tolerance::Absolute { atol: 1e-3 }))?,
        "check.eq" if float => {
            judge(second, first, Criterion::new(Tolerance::Absolute { atol: DEFAULT_TOLERANCE }))?;
        }
        "check.eq" => judge(second, first, EQUAL)?,
        _ => judge(first, second, EQUAL)?,
    }
    held(cx)
}

/// What a call that has held gives: nothing, or true.
fn held(cx: &Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    match cx.op.result_count() {
        0 => Ok(Vec::new()),
        _ => one(Tensor::scalar(ElementType::Bool, Scalar::Bool(true))?),
    }
}

fn expect_eq(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    match cx.operands.as_slice() {
        [actual, expected] => judge_values(actual, expected, EQUAL)?,
        _ => return Err(invalid("two operands are needed")),
    }
    Ok(Vec::new())
}

fn constant(cx: &Cx<'_, '_, '_>) -> Result<Tensor> {
    constant_tensor(cx.op.attr_elements("value").ok_or_else(|| missing("value"))?)
}

fn expect_eq_const(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    judge(cx.tensor(0)?, &constant(cx)?, EQUAL)?;
    Ok(Vec::new())
}

fn tolerance(cx: &Cx<'_, '_, '_>) -> Criterion {
    let atol = match cx.op.attr("tolerance") {
        Some(Attribute::Float(tolerance, _)) => *tolerance,
        _ => DEFAULT_TOLERANCE,
    };
    Criterion::new(Tolerance::Absolute { atol })
}

fn expect_almost_eq(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    judge(cx.tensor(0)?, cx.tensor(1)?, tolerance(cx))?;
    Ok(Vec::new())
}

fn expect_almost_eq_const(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    judge(cx.tensor(0)?, &constant(cx)?, tolerance(cx))?;
    Ok(Vec::new())
}

fn expect_close(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let bound = |name: &str| cx.op.attr(name).and_then(Attribute::as_u64).ok_or_else(|| missing(name));
    let (min, max) = (bound("min_ulp_difference")?, bound("max_ulp_difference")?);
    judge(cx.tensor(0)?, cx.tensor(1)?, Criterion::new(Tolerance::Ulp { min, max }))?;
    Ok(Vec::new())
}

fn print(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    tracing::info!(target: "interpreter.print", "{:?}", cx.tensor(0)?);
    Ok(std::mem::take(&mut cx.operands))
}

/// Keeps the value for `expect_serialized_eq`, and writes it to the probe folder where there is one.
fn probe(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (id, value) = (cx.str("probe_id")?, cx.tensor(0)?.clone());
    let mut probes = cx.machine.shared.probes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let seen = probes.entry(id.to_owned()).or_default();
    seen.push(value.clone());
    let iteration = seen.len();
    drop(probes);
    if let Some(folder) = &cx.machine.options.probe_folder {
        if id.contains(['/', '\\']) || id.starts_with('.') {
            return Err(invalid(format!("`{id}` cannot name a file")));
        }
        let path = folder.join(format!("{id}_{iteration}.npy"));
        npy::write(&path, &value).map_err(|error| ErrorKind::File(error.to_string()))?;
    }
    one(value)
}

fn expect_serialized_eq(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let id = cx.str("probe_id")?;
    let iteration = usize::try_from(cx.i64("iteration")?).unwrap_or(0);
    let probes = cx.machine.shared.probes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let written = probes.get(id).and_then(|seen| seen.get(iteration)).cloned();
    drop(probes);
    let written =
        written.ok_or_else(|| check_failed(format!("probe `{id}` has no iteration {iteration}")))?;
    judge(&written, cx.tensor(0)?, EQUAL)?;
    Ok(Vec::new())
}

/// Runs `programs[replica][partition]`, the inputs and results of all flattened.
fn run_parallel(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let module = cx.machine.module;
    let function = |attr: &Attribute| {
        let name = attr.as_symbol().or_else(|| attr.as_str()).ok_or_else(|| missing("programs"))?;
        module.function(name).ok_or_else(|| invalid(format!("the module has no function @{name}")))
    };
    let mut inputs = std::mem::take(&mut cx.operands).into_iter();
    let mut programs = Vec::new();
    for row in cx.op.attr("programs").and_then(Attribute::as_array).ok_or_else(|| missing("programs"))? {
        let mut line = Vec::new();
        for program in row.as_array().ok_or_else(|| missing("programs"))? {
            let func = function(program)?;
            let count = func.arguments().len();
            line.push((func, inputs.by_ref().take(count).collect::<Vec<_>>()));
        }
        programs.push(line);
    }
    let width = programs.first().map_or(0, Vec::len);
    if programs.iter().any(|row| row.len() != width) {
        return Err(invalid("the replicas have different numbers of partitions"));
    }
    if let Some(feeds) = cx.op.attr("infeed").and_then(Attribute::as_array) {
        for feed in feeds {
            let values = cx.machine.call(function(feed)?, Vec::new())?;
            let queue = cx.machine.shared.infeed.lock();
            queue.unwrap_or_else(std::sync::PoisonError::into_inner).push_back(values);
        }
    }
    let results = run_grid(module, cx.machine.options, cx.machine.shared, programs)?;
    Ok(results.into_iter().flatten().collect())
}
