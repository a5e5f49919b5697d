//! Operations that work on one element at a time.

use crate::table::Trait::{Commutative, Elementwise, Pure, SameTypes};
use crate::table::{Entry, OpKind, op};

const UNARY: &str = "$operand{attrs} : {same}";
const BINARY: &str = "$lhs, $rhs{attrs} : {same}";
const CONVERTING: &str = "$operand{attrs} : {same}";
const ACCURACY: &str = "result_accuracy: accuracy = DEFAULT";

/// One operand, a result of its type.
const fn unary(kind: OpKind, operand: &'static str, result: &'static str) -> Entry {
    op(kind).values(operand, result).text(UNARY).is(&[Pure, Elementwise, SameTypes])
}

/// An elementary function whose accuracy can be asked for.
const fn function(kind: OpKind) -> Entry {
    unary(kind, "operand: float|complex|quant|axisquant", "result: float|complex|quant|axisquant")
        .attrs(ACCURACY)
}

/// Two operands, a result of their type.
const fn binary(kind: OpKind, operands: &'static str, result: &'static str) -> Entry {
    op(kind).values(operands, result).text(BINARY).is(&[Pure, Elementwise, SameTypes])
}

const fn commutative(kind: OpKind, operands: &'static str, result: &'static str) -> Entry {
    binary(kind, operands, result).is(&[Pure, Elementwise, SameTypes, Commutative])
}

const fn logical(kind: OpKind) -> Entry {
    commutative(kind, "lhs: pred|int, rhs: pred|int", "result: pred|int")
}

const fn shift(kind: OpKind) -> Entry {
    binary(kind, "lhs: int, rhs: int", "result: int")
}

const NUMBERS: &str = "lhs: int|float|complex|quant|axisquant, rhs: int|float|complex|quant|axisquant";
const NUMBER: &str = "result: int|float|complex|quant|axisquant";
const TENSORS: &str = "lhs: tensor, rhs: tensor";
const ROUNDED: &str = "operand: float|quant|axisquant";
const ROUNDED_RESULT: &str = "result: float|quant|axisquant";

pub(super) const ENTRIES: &[Entry] = &[
    unary(OpKind::Abs, "operand: sint|float|complex|quant", "result: sint|float|quant")
        .text("$operand{attrs} : {same}")
        .is(&[Pure, Elementwise])
        .doc("Absolute value; of a complex number, its distance from zero."),
    commutative(OpKind::Add, TENSORS, "result: tensor").doc("Sum; of truth values, the logical or."),
    logical(OpKind::And).doc("Logical or bitwise and."),
    binary(
        OpKind::Atan2,
        "lhs: float|complex|quant, rhs: float|complex|quant",
        "result: float|complex|quant",
    )
    .doc("Angle of the point whose ordinate is the left and whose abscissa is the right operand."),
    function(OpKind::Cbrt).doc("Cube root."),
    unary(OpKind::Ceil, ROUNDED, ROUNDED_RESULT).doc("Smallest whole number not below the operand."),
    op(OpKind::Clamp)
        .values("min: tensor, operand: tensor, max: tensor", "result: tensor")
        .text("$min, $operand, $max{attrs} : {same}")
        .is(&[Pure, Elementwise])
        .doc("The operand, kept between a minimum and a maximum, each a scalar or of the operand's shape."),
    op(OpKind::Compare)
        .values(TENSORS, "result: pred")
        .attrs("comparison_direction: enum comparison_direction, compare_type?: enum comparison_type")
        .text("$comparison_direction, $lhs, $rhs?(, $compare_type)?{attrs} : {fn}")
        .is(&[Pure, Elementwise])
        .doc("Whether the operands compare as asked."),
    op(OpKind::Complex)
        .values("lhs: float, rhs: float", "result: complex")
        .text("$lhs, $rhs{attrs} : {complex}")
        .is(&[Pure, Elementwise])
        .doc("A complex number from its real and imaginary part."),
    op(OpKind::Convert)
        .values(
            "operand: pred|int|float|complex|quant|axisquant",
            "result: pred|int|float|complex|quant|axisquant",
        )
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .doc("The same numbers in another element type."),
    function(OpKind::Cosine).doc("Cosine."),
    unary(OpKind::CountLeadingZeros, "operand: int", "result: int").doc("Number of leading zero bits."),
    binary(OpKind::Divide, NUMBERS, NUMBER).doc("Quotient; of integers, cut towards zero."),
    function(OpKind::Exponential).doc("Exponential function."),
    function(OpKind::ExponentialMinusOne).doc("Exponential function minus one, exact near zero."),
    unary(OpKind::Floor, ROUNDED, ROUNDED_RESULT).doc("Largest whole number not above the operand."),
    op(OpKind::Imag)
        .values("operand: float|complex", "result: float")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .doc("Imaginary part; zero for a real number."),
    op(OpKind::IsFinite)
        .values("x: float|quant|axisquant", "y: pred")
        .text("$x{attrs} : {same}")
        .is(&[Pure, Elementwise])
        .doc("Whether a number is neither infinite nor NaN."),
    function(OpKind::Log).doc("Natural logarithm."),
    function(OpKind::LogPlusOne).doc("Natural logarithm of one plus the operand, exact near zero."),
    function(OpKind::Logistic).doc("Logistic function, 1 / (1 + exp(-x))."),
    commutative(OpKind::Maximum, TENSORS, "result: tensor").doc("The larger of two; NaN if one is NaN."),
    commutative(OpKind::Minimum, TENSORS, "result: tensor").doc("The smaller of two; NaN if one is NaN."),
    commutative(OpKind::Multiply, TENSORS, "result: tensor")
        .doc("Product; of truth values, the logical and."),
    unary(OpKind::Negate, "operand: int|float|complex|quant|axisquant", NUMBER).doc("Negative."),
    unary(OpKind::Not, "operand: pred|int", "result: pred|int").doc("Logical or bitwise negation."),
    logical(OpKind::Or).doc("Logical or bitwise or."),
    unary(OpKind::Popcnt, "operand: int", "result: int").doc("Number of bits that are set."),
    binary(OpKind::Power, NUMBERS, NUMBER).doc("The left operand to the power of the right."),
    op(OpKind::Real)
        .values("operand: float|complex", "result: float")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .doc("Real part."),
    op(OpKind::ReducePrecision)
        .values("operand: float|quant", "output: float|quant")
        .attrs("exponent_bits: i32, mantissa_bits: i32")
        .text("$operand, format = {exponent_mantissa}{attrs} : {same}")
        .is(&[Pure, Elementwise, SameTypes])
        .doc("Rounds to fewer exponent and mantissa bits and back."),
    binary(OpKind::Remainder, NUMBERS, NUMBER).doc("Remainder of a division, with the sign of the dividend."),
    unary(OpKind::RoundNearestAfz, ROUNDED, ROUNDED_RESULT).doc("Nearest whole number, ties away from zero."),
    unary(OpKind::RoundNearestEven, ROUNDED, ROUNDED_RESULT).doc("Nearest whole number, ties to even."),
    function(OpKind::Rsqrt).doc("Reciprocal of the square root."),
    op(OpKind::Select)
        .values("pred: pred, on_true: tensor, on_false: tensor", "result: tensor")
        .text("$pred, $on_true, $on_false{attrs} : {select}")
        .is(&[Pure, Elementwise])
        .doc("One of two values, as a truth value says, which is a scalar or of their shape."),
    shift(OpKind::ShiftLeft).doc("Left shift; zero when the distance is not less than the width."),
    shift(OpKind::ShiftRightArithmetic).doc("Right shift that repeats the sign bit."),
    shift(OpKind::ShiftRightLogical).doc("Right shift that fills with zeros."),
    unary(
        OpKind::Sign,
        "operand: sint|float|complex|quant|axisquant",
        "result: sint|float|complex|quant|axisquant",
    )
    .doc("Sign: -1, 0 or 1; of a complex number, its direction."),
    function(OpKind::Sine).doc("Sine."),
    function(OpKind::Sqrt).doc("Square root."),
    binary(OpKind::Subtract, NUMBERS, NUMBER).doc("Difference."),
    function(OpKind::Tan).doc("Tangent."),
    function(OpKind::Tanh).doc("Hyperbolic tangent."),
    logical(OpKind::Xor).doc("Logical or bitwise exclusive or."),
];
