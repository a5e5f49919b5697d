//! The `check` and `interpreter` dialects of the StableHLO reference interpreter's tests.
//!
//! Neither is part of the specification; the constraints are those of the reference interpreter.

use crate::attr::Attribute;
use crate::table::{Entry, OpKind, op};
use crate::types::Type;
use crate::verify::Cx;

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::CheckExpectAlmostEq)
        .values("lhs: float|complex|unranked, rhs: float|complex|unranked", "")
        .attrs("tolerance?: f64")
        .text("$lhs, $rhs?(, tolerance = $tolerance)?{attrs} : {operand}")
        .rule(same_operands)
        .doc("Checks that two tensors differ by no more than an absolute tolerance."),
    op(OpKind::CheckExpectAlmostEqConst)
        .values("lhs: float|complex", "")
        .attrs("value: elements, tolerance?: f64")
        .text("$lhs, $value?(, tolerance = $tolerance)?{attrs}")
        .rule(same_as_value)
        .doc("Checks that a tensor differs from a constant by no more than an absolute tolerance."),
    op(OpKind::CheckExpectClose)
        .values("actual: float|complex|unranked, expected: float|complex|unranked", "")
        .attrs("max_ulp_difference: u64 = 1, min_ulp_difference: u64 = 0")
        .text(
            "$actual, $expected?(, max_ulp_difference = $max_ulp_difference)??(, min_ulp_difference = $min_ulp_difference)?{attrs} : {operands}",
        )
        .rule(same_operands)
        .doc("Checks that the ULP distance of two tensors lies between two bounds."),
    op(OpKind::CheckExpectEq)
        .values("lhs: any, rhs: any", "")
        .text("$lhs, $rhs{attrs} : {operand}")
        .rule(same_operands)
        .doc("Checks that two values are equal."),
    op(OpKind::CheckExpectEqConst)
        .values("lhs: tensor", "")
        .attrs("value: elements")
        .text("$lhs, $value{attrs}")
        .rule(same_as_value)
        .doc("Checks that a tensor is equal to a constant."),
    op(OpKind::CheckExpectSerializedEq)
        .values("expected: tensor", "")
        .attrs("probe_id: str, iteration: u32 = 0")
        .text("$expected, probe_id = $probe_id?(, iter = $iteration)?{attrs} : {operands}")
        .doc("Checks that a tensor is equal to the one that a probe has written, counted from zero."),
    op(OpKind::InterpreterPrint)
        .values("operand: tensor", "result: tensor")
        .text("$operand{attrs} : {results}")
        .rule(pass_through)
        .doc("Prints a tensor and returns it."),
    op(OpKind::InterpreterProbe)
        .values("operand: tensor", "result: tensor")
        .attrs("probe_id: str")
        .text("$operand, probe_id = $probe_id{attrs} : {results}")
        .rule(pass_through)
        .doc("Writes a tensor to a file and returns it."),
    op(OpKind::InterpreterRunParallel)
        .values("inputs*: tensor|token", "results*: tensor|token")
        .attrs("infeed?: symbols, programs: array")
        .rule(run_parallel)
        .doc("Runs functions as the processes of a grid of replicas and partitions."),
];

/// Both operands have the same type.
fn same_operands(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let [lhs, rhs] = *cx.operands() else { return None };
    cx.check(lhs == rhs, "operands", || format!("the operands have different types: {lhs} and {rhs}"));
    None
}

/// The operand has the type of the constant.
fn same_as_value(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, value) = (cx.tensor(0)?, cx.attr("value")?.as_elements()?.ty().clone());
    cx.check(*operand == value, "value", || format!("{operand} is compared with a constant of type {value}"));
    None
}

/// The result has the type of the operand.
fn pass_through(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = *cx.operands().first()?;
    if let Some(result) = cx.results().first().copied() {
        let same = result == operand;
        cx.check(same, "result", || format!("the result has the type {result}, the operand {operand}"));
    }
    Some(vec![operand.clone()])
}

/// `programs` is a grid of functions: as many partitions for each replica. What the functions take and return is
/// checked with the symbols of the module.
fn run_parallel(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let rows: Option<Vec<&[Attribute]>> =
        cx.attr("programs")?.as_array()?.iter().map(Attribute::as_array).collect();
    let symbols = |row: &&[Attribute]| row.iter().all(|program| program.as_symbol().is_some());
    let Some(rows) = rows.filter(|rows| rows.iter().all(symbols)) else {
        cx.fail("programs", "programs is not a list of lists of functions");
        return None;
    };
    let partitions = rows.first().map_or(0, |row| row.len());
    cx.check(partitions > 0, "programs", || "programs is empty".to_owned());
    cx.check(rows.iter().all(|row| row.len() == partitions), "programs", || {
        "the replicas have different numbers of partitions".to_owned()
    });
    if let Some(infeed) = cx.attr("infeed").and_then(Attribute::as_array) {
        cx.check(!infeed.is_empty(), "infeed", || "infeed names no function".to_owned());
    }
    None
}
