//! Functions, branches, loops, calls, tuples and tokens.

use warpforge_ir::OpKind;

use super::Evaluator;
use super::shape::first_element;
use crate::cx::{Cx, missing};
use crate::error::{Result, invalid};
use crate::{Value, custom_calls};

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::AfterAll | OpKind::CreateToken => token,
        OpKind::AsyncDone => async_done,
        OpKind::AsyncStart => async_start,
        OpKind::Call => call,
        OpKind::Case => case,
        OpKind::Composite => composite,
        OpKind::CustomCall => custom_calls::evaluate,
        OpKind::GetTupleElement => get_tuple_element,
        OpKind::If => if_,
        OpKind::Tuple => tuple,
        OpKind::While => while_,
        _ => return None,
    })
}

#[allow(clippy::unnecessary_wraps)] // The shape of an evaluator.
fn token(_: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    Ok(vec![Value::Token])
}

#[allow(clippy::unnecessary_wraps)] // The shape of an evaluator.
fn tuple(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    Ok(vec![Value::Tuple(std::mem::take(&mut cx.operands))])
}

fn get_tuple_element(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let index = usize::try_from(cx.i64("index")?).ok();
    match cx.operands.first() {
        Some(Value::Tuple(values)) => {
            let found = index.and_then(|index| values.get(index)).cloned();
            Ok(vec![found.ok_or_else(|| invalid("the tuple has no such element"))?])
        }
        _ => Err(invalid("the operand is not a tuple")),
    }
}

/// Calls a function of the module by name.
fn call_named(cx: &mut Cx<'_, '_, '_>, name: &str) -> Result<Vec<Value>> {
    let function = cx
        .machine
        .module
        .function(name)
        .ok_or_else(|| invalid(format!("the module has no function @{name}")))?;
    let inputs = std::mem::take(&mut cx.operands);
    cx.machine.call(function, inputs)
}

fn call(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let callee = cx.op.attr_symbol("callee").ok_or_else(|| missing("callee"))?;
    call_named(cx, callee)
}

fn composite(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let decomposition = cx.op.attr_symbol("decomposition").ok_or_else(|| missing("decomposition"))?;
    call_named(cx, decomposition)
}

/// Runs a region of the operation.
fn region(cx: &mut Cx<'_, '_, '_>, index: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let block = cx.op.region_block(index).ok_or_else(|| invalid(format!("region {index} is empty")))?;
    cx.machine.block(block, inputs)
}

fn if_(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let branch = if first_element(cx.tensor(0)?)?.is_true() { 0 } else { 1 };
    region(cx, branch, Vec::new())
}

fn case(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let count = cx.op.regions().len();
    let index = usize::try_from(first_element(cx.tensor(0)?)?.to_i128()).ok().filter(|&index| index < count);
    let last = count.checked_sub(1).ok_or_else(|| invalid("there are no branches"))?;
    region(cx, index.unwrap_or(last), Vec::new())
}

fn while_(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let mut values = std::mem::take(&mut cx.operands);
    loop {
        cx.machine.count_steps(1)?;
        let condition = region(cx, 0, values.clone())?;
        let condition = condition.first().ok_or_else(|| invalid("the condition gives nothing"))?;
        if !first_element(condition.as_tensor()?)?.is_true() {
            return Ok(values);
        }
        values = region(cx, 1, values)?;
    }
}

/// The body runs at once; its results wait in a tuple.
fn async_start(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = std::mem::take(&mut cx.operands);
    Ok(vec![Value::Tuple(region(cx, 0, inputs)?)])
}

fn async_done(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    match cx.operands.pop() {
        Some(Value::Tuple(values)) => Ok(values),
        _ => Err(invalid("the operand is not a future")),
    }
}
