//! The `check` and `interpreter` dialects that tests use.

use crate::table::{Entry, OpKind, op};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::CheckExpectAlmostEq)
        .values("lhs: tensor, rhs: tensor", "")
        .attrs("tolerance?: f64")
        .text("$lhs, $rhs?(, tolerance = $tolerance)?{attrs} : {operand}")
        .doc("Expects numbers to differ by little."),
    op(OpKind::CheckExpectAlmostEqConst)
        .values("lhs: tensor", "")
        .attrs("value: elements, tolerance?: f64")
        .text("$lhs, $value?(, tolerance = $tolerance)?{attrs}")
        .doc("Expects numbers to differ by little from a constant."),
    op(OpKind::CheckExpectClose)
        .values("actual: tensor, expected: tensor", "")
        .attrs("max_ulp_difference: i64 = 1, min_ulp_difference: i64 = 0")
        .text(
            "$actual, $expected?(, max_ulp_difference = $max_ulp_difference)??(, min_ulp_difference = $min_ulp_difference)?{attrs} : {operands}",
        )
        .doc("Expects numbers to be a number of representable values apart."),
    op(OpKind::CheckExpectEq)
        .values("lhs: any, rhs: any", "")
        .text("$lhs, $rhs{attrs} : {operand}")
        .doc("Expects values to be equal."),
    op(OpKind::CheckExpectEqConst)
        .values("lhs: tensor", "")
        .attrs("value: elements")
        .text("$lhs, $value{attrs}")
        .doc("Expects a value to be equal to a constant."),
    op(OpKind::CheckExpectSerializedEq)
        .values("expected: tensor", "")
        .attrs("probe_id: str, iteration: i32 = 1")
        .text("$expected, probe_id = $probe_id?(, iteration = $iteration)?{attrs} : {operands}")
        .doc("Expects a value to be equal to what a probe has written."),
    op(OpKind::InterpreterPrint)
        .values("operand: tensor", "result: tensor")
        .text("$operand{attrs} : {results}")
        .doc("Prints a value and passes it on."),
    op(OpKind::InterpreterProbe)
        .values("operand: tensor", "result: tensor")
        .attrs("probe_id: str")
        .text("$operand, probe_id = $probe_id{attrs} : {results}")
        .doc("Writes a value to a file and passes it on."),
    op(OpKind::InterpreterRunParallel)
        .values("inputs*: tensor|token", "results*: tensor|token")
        .attrs("infeed?: array, programs: array")
        .doc("Runs functions as the processes of a grid of replicas and partitions."),
];
