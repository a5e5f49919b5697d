//! Operations that work on one element at a time.

use crate::attr::{Attribute, ComparisonType, ResultAccuracyMode};
use crate::table::Trait::{Commutative, Elementwise, Pure, SameTypes};
use crate::table::{Entry, OpKind, op};
use crate::types::{Element, ElementType, FloatType, TensorType, Type};
use crate::verify::quantized::axis;
use crate::verify::{Cx, compatible};

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
    unary(kind, "operand: float|complex|quant", "result: float|complex|quant").attrs(ACCURACY).rule(accuracy)
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

const NUMBERS: &str = "lhs: int|float|complex|quant, rhs: int|float|complex|quant";
const NUMBER: &str = "result: int|float|complex|quant";
const TENSORS: &str = "lhs: tensor, rhs: tensor";
const ROUNDED: &str = "operand: float|quant";
const ROUNDED_RESULT: &str = "result: float|quant";

pub(super) const ENTRIES: &[Entry] = &[
    unary(OpKind::Abs, "operand: sint|float|complex|quant", "result: sint|float|quant")
        .text("$operand{attrs} : {same}")
        .is(&[Pure, Elementwise])
        .rule(abs)
        .doc("Absolute value; of a complex number, its distance from zero."),
    commutative(OpKind::Add, "lhs: tensor|axisquant, rhs: tensor|axisquant", "result: tensor|axisquant")
        .is(&[Pure, Elementwise, Commutative])
        .rule(add)
        .doc("Sum; of truth values, the logical or."),
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
        .rule(clamp)
        .doc("The operand, kept between a minimum and a maximum, each a scalar or of the operand's shape."),
    op(OpKind::Compare)
        .values(TENSORS, "result: pred")
        .attrs("comparison_direction: enum comparison_direction, compare_type?: enum comparison_type")
        .text("$comparison_direction, $lhs, $rhs?(, $compare_type)?{attrs} : {fn}")
        .is(&[Pure, Elementwise])
        .rule(compare)
        .doc("Whether the operands compare as asked."),
    op(OpKind::Complex)
        .values("lhs: float, rhs: float", "result: complex")
        .text("$lhs, $rhs{attrs} : {complex}")
        .is(&[Pure, Elementwise])
        .rule(complex)
        .doc("A complex number from its real and imaginary part."),
    op(OpKind::Convert)
        .values("operand: pred|int|float|complex", "result: pred|int|float|complex")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .rule(shape_only)
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
        .rule(part)
        .doc("Imaginary part; zero for a real number."),
    op(OpKind::IsFinite)
        .values("x: float|quant", "y: pred")
        .text("$x{attrs} : {same}")
        .is(&[Pure, Elementwise])
        .rule(is_finite)
        .doc("Whether a number is neither infinite nor NaN."),
    function(OpKind::Log).doc("Natural logarithm."),
    function(OpKind::LogPlusOne).doc("Natural logarithm of one plus the operand, exact near zero."),
    function(OpKind::Logistic).doc("Logistic function, 1 / (1 + exp(-x))."),
    commutative(OpKind::Maximum, TENSORS, "result: tensor").doc("The larger of two; NaN if one is NaN."),
    commutative(OpKind::Minimum, TENSORS, "result: tensor").doc("The smaller of two; NaN if one is NaN."),
    commutative(OpKind::Multiply, TENSORS, "result: tensor")
        .doc("Product; of truth values, the logical and."),
    unary(OpKind::Negate, "operand: int|float|complex|quant", NUMBER).doc("Negative."),
    unary(OpKind::Not, "operand: pred|int", "result: pred|int").doc("Logical or bitwise negation."),
    logical(OpKind::Or).doc("Logical or bitwise or."),
    unary(OpKind::Popcnt, "operand: int", "result: int").doc("Number of bits that are set."),
    binary(OpKind::Power, NUMBERS, NUMBER).doc("The left operand to the power of the right."),
    op(OpKind::Real)
        .values("operand: float|complex", "result: float")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .rule(part)
        .doc("Real part."),
    op(OpKind::ReducePrecision)
        .values("operand: float|quant", "output: float|quant")
        .attrs("exponent_bits: i32, mantissa_bits: i32")
        .text("$operand, format = {exponent_mantissa}{attrs} : {same}")
        .is(&[Pure, Elementwise, SameTypes])
        .rule(reduce_precision)
        .doc("Rounds to fewer exponent and mantissa bits and back."),
    binary(OpKind::Remainder, NUMBERS, NUMBER).doc("Remainder of a division, with the sign of the dividend."),
    unary(OpKind::RoundNearestAfz, ROUNDED, ROUNDED_RESULT).doc("Nearest whole number, ties away from zero."),
    unary(OpKind::RoundNearestEven, ROUNDED, ROUNDED_RESULT).doc("Nearest whole number, ties to even."),
    function(OpKind::Rsqrt).doc("Reciprocal of the square root."),
    op(OpKind::Select)
        .values("pred: pred, on_true: tensor, on_false: tensor", "result: tensor")
        .text("$pred, $on_true, $on_false{attrs} : {select}")
        .is(&[Pure, Elementwise])
        .rule(select)
        .doc("One of two values, as a truth value says, which is a scalar or of their shape."),
    shift(OpKind::ShiftLeft).doc("Left shift; zero when the distance is not less than the width."),
    shift(OpKind::ShiftRightArithmetic).doc("Right shift that repeats the sign bit."),
    shift(OpKind::ShiftRightLogical).doc("Right shift that fills with zeros."),
    unary(OpKind::Sign, "operand: sint|float|complex|quant", "result: sint|float|complex|quant")
        .doc("Sign: -1, 0 or 1; of a complex number, its direction."),
    function(OpKind::Sine).doc("Sine."),
    function(OpKind::Sqrt).doc("Square root."),
    binary(OpKind::Subtract, NUMBERS, NUMBER).doc("Difference."),
    function(OpKind::Tan).doc("Tangent."),
    function(OpKind::Tanh).doc("Hyperbolic tangent."),
    logical(OpKind::Xor).doc("Logical or bitwise exclusive or."),
];

/// Tolerances are given exactly when the mode asks for them, and are not negative.
fn accuracy(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let Attribute::ResultAccuracy(asked) = cx.attr("result_accuracy")? else { return None };
    let tolerances = asked.atol != 0.0 || asked.rtol != 0.0 || asked.ulps != 0;
    let tolerant = asked.mode == ResultAccuracyMode::Tolerance;
    cx.check(!tolerances || tolerant, "result_accuracy", || {
        format!("tolerances go with the mode TOLERANCE, not {}", asked.mode)
    });
    cx.check(tolerances || !tolerant, "result_accuracy", || {
        "the mode TOLERANCE needs a tolerance".to_owned()
    });
    let negative = asked.atol < 0.0 || asked.rtol < 0.0 || asked.ulps < 0;
    cx.check(!negative, "result_accuracy", || "a tolerance is negative".to_owned());
    None
}

/// Operands and results have one shape and one kind of element, as most elementwise operations ask.
pub(crate) fn same_types(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operands = cx.tensors(0..cx.operands().len())?;
    let first = *operands.first()?;
    for other in &operands[1..] {
        cx.same_shape("C1", "the operands", first, other);
        cx.same_elements("C1", "the operands", first, other);
    }
    if cx.is_broken() {
        return None;
    }
    let dims = compatible::meet_all(operands);
    cx.gives_like("C1", first, dims)
}

/// Sums of quantized numbers may have other scales than their terms.
fn add(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let result = cx.result(0);
    let all: Vec<&TensorType> = [lhs, rhs].into_iter().chain(result).collect();
    if !all.iter().any(|tensor| tensor.element().is_quantized()) {
        return same_types(cx);
    }
    cx.same_shape("C1", "the operands", lhs, rhs);
    if let Some(result) = result {
        cx.same_shape("C1", "the operands and the result", lhs, result);
    }
    let quantized: Vec<_> = all.iter().filter_map(|tensor| tensor.element().quantized()).collect();
    cx.same_count("C2", "quantized operands and results", quantized.len(), all.len());
    let storage = quantized.iter().all(|q| q.storage == quantized[0].storage);
    cx.check(storage, "C3", || "the operands and the result store different integers".to_owned());
    let expressed = quantized.iter().all(|q| q.expressed == quantized[0].expressed);
    cx.check(expressed, "C4", || "the operands and the result express different numbers".to_owned());
    if let Some(result) = result {
        let (left, right, given) = (axis(lhs), axis(rhs), axis(result));
        let along = left.or(right).is_some();
        if cx.check(along == given.is_some(), "C5", || {
            "the result has scales along an axis exactly when an operand has".to_owned()
        }) {
            for (label, operand) in [("C6", left), ("C7", right)] {
                cx.check(operand.is_none() || operand == given, label, || {
                    "the scales of an operand and of the result are along different axes".to_owned()
                });
            }
        }
    }
    if cx.is_broken() {
        return None;
    }
    let like = if axis(rhs).is_some() { rhs } else { lhs };
    let inferred = vec![Type::Tensor(like.with_dims(compatible::meet_all([lhs, rhs])))];
    if result.is_some() { None } else { Some(inferred) }
}

fn abs(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let result = match operand.element() {
        Element::Plain(ElementType::Complex(part)) => operand.with_element(ElementType::Float(*part)),
        _ => operand.clone(),
    };
    cx.gives(["C1", "C2"], vec![Type::Tensor(result)])
}

fn clamp(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (min, operand, max) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    for (label, what, bound) in
        [("C1", "the minimum and the operand", min), ("C2", "the maximum and the operand", max)]
    {
        if bound.rank() != 0 {
            cx.same_shape(label, what, bound, operand);
        }
        cx.same_elements("C3", what, bound, operand);
    }
    cx.gives("C4", vec![Type::Tensor(operand.clone())])
}

fn compare(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C1", "the operands", lhs, rhs);
    if !cx.same_shape("C2", "the operands", lhs, rhs) {
        return None;
    }
    check_order(cx, lhs);
    let dims = compatible::meet_all([lhs, rhs]);
    cx.gives("C2", vec![Type::Tensor(TensorType::new(dims, ElementType::Bool))])
}

/// The order that is compared by is one that the elements have. StableHLO's own tools do not hold this constraint, and
/// files that break it are about.
fn check_order(cx: &mut Cx<'_>, operand: &TensorType) {
    let order = cx.attr("compare_type").and_then(Attribute::as_enum::<ComparisonType>);
    let Some(order) = order.filter(|order| *order != ComparisonType::NoType) else { return };
    let fits = match operand.element() {
        Element::Plain(ElementType::Float(_)) => {
            matches!(order, ComparisonType::Float | ComparisonType::TotalOrder)
        }
        Element::Plain(ElementType::Complex(_)) => order == ComparisonType::Float,
        Element::Plain(ElementType::Int(int)) if int.is_signed() => order == ComparisonType::Signed,
        Element::Plain(_) => order == ComparisonType::Unsigned,
        Element::Quantized(_) | Element::Opaque(_) => true,
    };
    if !fits {
        cx.warn("C3", format!("{operand} cannot be compared as {order}"));
    }
}

fn complex(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C1", "the operands", lhs, rhs);
    cx.same_shape("C1", "the operands", lhs, rhs);
    match lhs.element() {
        Element::Plain(ElementType::Float(part @ (FloatType::F32 | FloatType::F64))) => {
            cx.gives(["C2", "C3"], vec![Type::Tensor(lhs.with_element(ElementType::Complex(*part)))])
        }
        other => {
            cx.fail("I1", format!("complex numbers have parts of f32 or f64, not {other}"));
            None
        }
    }
}

/// The shape stays and the elements change.
fn shape_only(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    if let Some(result) = cx.result(0) {
        cx.same_shape("C1", "the operand and the result", operand, result);
    }
    None
}

fn part(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let element = operand.element().plain().and_then(ElementType::float_part)?;
    cx.gives(["C1", "C2"], vec![Type::Tensor(operand.with_element(ElementType::Float(element)))])
}

fn is_finite(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    cx.gives("C1", vec![Type::Tensor(operand.with_element(ElementType::Bool))])
}

fn reduce_precision(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (exponent, mantissa) = (cx.i64("exponent_bits")?, cx.i64("mantissa_bits")?);
    cx.check(exponent >= 1, "C2", || format!("exponent_bits is {exponent}, which is less than 1"));
    cx.check(mantissa >= 0, "C3", || format!("mantissa_bits is {mantissa}, which is negative"));
    None
}

fn select(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (pred, on_true, on_false) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if pred.rank() != 0 {
        cx.same_shape("C1", "the condition and the values", pred, on_true);
    }
    cx.same_shape("C2", "the values", on_true, on_false);
    cx.same_elements("C2", "the values", on_true, on_false);
    if cx.is_broken() {
        return None;
    }
    let dims = compatible::meet_all([on_true, on_false]);
    cx.gives_like("C2", on_true, dims)
}
