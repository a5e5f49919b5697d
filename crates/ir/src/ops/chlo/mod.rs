//! The CHLO dialect: broadcasting arithmetic and functions beyond StableHLO.

mod broadcast;
mod ragged_dot;
mod scan;

use crate::attr::Attribute;
use crate::table::Trait::{Commutative, Elementwise, Pure, SegmentSizes};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, Type};
use crate::verify::{Cx, compatible};

const UNARY: &str = "$operand{attrs} : {operands} -> {results}";
const BROADCAST: &str = "$lhs, $rhs{attrs} : {fn}";
const ANY_TWO: &str = "lhs: tensor|axisquant|unranked, rhs: tensor|axisquant|unranked";

const fn unary(kind: OpKind, operand: &'static str, result: &'static str) -> Entry {
    op(kind).values(operand, result).text(UNARY).is(&[Pure, Elementwise]).rule(same_type)
}

const fn function(kind: OpKind) -> Entry {
    unary(kind, "operand: float|complex|unranked", "result: float|complex|unranked")
}

const fn real_function(kind: OpKind) -> Entry {
    unary(kind, "operand: float|unranked", "result: float|unranked")
}

const fn question(kind: OpKind) -> Entry {
    unary(kind, "operand: float|unranked", "result: pred|unranked").rule(truth)
}

const fn binary(kind: OpKind, operands: &'static str) -> Entry {
    op(kind).values(operands, "result: float|unranked").is(&[Pure, Elementwise]).rule(same_type)
}

const fn broadcast(kind: OpKind) -> Entry {
    op(kind)
        .values(ANY_TWO, "result: tensor|axisquant|unranked")
        .attrs("broadcast_dimensions?: i64s")
        .text(BROADCAST)
        .is(&[Pure])
        .rule(broadcast::like_operands)
}

const fn commutative(kind: OpKind) -> Entry {
    broadcast(kind).is(&[Pure, Commutative])
}

const fn logical(kind: OpKind) -> Entry {
    commutative(kind).values("lhs: pred|int|unranked, rhs: pred|int|unranked", "result: pred|int|unranked")
}

const fn float_broadcast(kind: OpKind) -> Entry {
    broadcast(kind).values("lhs: float|unranked, rhs: float|unranked", "result: float|unranked")
}

pub(super) const ENTRIES: &[Entry] = &[
    function(OpKind::ChloAcos).doc("Arc cosine."),
    function(OpKind::ChloAcosh).doc("Inverse hyperbolic cosine."),
    function(OpKind::ChloAsin).doc("Arc sine."),
    unary(OpKind::ChloAsinAcosKernel, "operand: complex|unranked", "result: complex|unranked").doc("The part that arc sine and arc cosine share."),
    function(OpKind::ChloAsinh).doc("Inverse hyperbolic sine."),
    function(OpKind::ChloAtan).doc("Arc tangent."),
    function(OpKind::ChloAtanh).doc("Inverse hyperbolic tangent."),
    function(OpKind::ChloBesselI1e).doc("Exponentially scaled modified Bessel function of order one."),
    commutative(OpKind::ChloBroadcastAdd).doc("Sum, after broadcasting."),
    logical(OpKind::ChloBroadcastAnd).doc("Logical or bitwise and, after broadcasting."),
    broadcast(OpKind::ChloBroadcastAtan2).doc("Angle of a point, after broadcasting."),
    broadcast(OpKind::ChloBroadcastCompare)
        .values(ANY_TWO, "result: pred|unranked")
        .attrs(
            "broadcast_dimensions?: i64s, comparison_direction: enum comparison_direction, compare_type?: enum comparison_type",
        )
        .rule(broadcast::truth)
        .doc("Comparison, after broadcasting."),
    broadcast(OpKind::ChloBroadcastComplex)
        .values("lhs: float|unranked, rhs: float|unranked", "result: complex|unranked")
        .rule(broadcast::complex)
        .doc("A complex number from its parts, after broadcasting."),
    broadcast(OpKind::ChloBroadcastDivide).doc("Quotient, after broadcasting."),
    commutative(OpKind::ChloBroadcastMaximum).doc("The larger of two, after broadcasting."),
    commutative(OpKind::ChloBroadcastMinimum).doc("The smaller of two, after broadcasting."),
    commutative(OpKind::ChloBroadcastMultiply).doc("Product, after broadcasting."),
    broadcast(OpKind::ChloBroadcastNextAfter).doc("Next number in a direction, after broadcasting."),
    logical(OpKind::ChloBroadcastOr).doc("Logical or bitwise or, after broadcasting."),
    broadcast(OpKind::ChloBroadcastPolygamma).doc("Polygamma function, after broadcasting."),
    broadcast(OpKind::ChloBroadcastPower).doc("Power, after broadcasting."),
    broadcast(OpKind::ChloBroadcastRemainder).doc("Remainder, after broadcasting."),
    op(OpKind::ChloBroadcastSelect)
        .values(
            "pred: pred, on_true: tensor|axisquant|unranked, on_false: tensor|axisquant|unranked",
            "result: tensor|axisquant|unranked",
        )
        .text("$pred, $on_true, $on_false{attrs} : {fn}")
        .is(&[Pure])
        .rule(broadcast::select)
        .doc("One of two values, after broadcasting."),
    broadcast(OpKind::ChloBroadcastShiftLeft).doc("Left shift, after broadcasting."),
    broadcast(OpKind::ChloBroadcastShiftRightArithmetic).doc("Arithmetic right shift, after broadcasting."),
    broadcast(OpKind::ChloBroadcastShiftRightLogical).doc("Logical right shift, after broadcasting."),
    broadcast(OpKind::ChloBroadcastSubtract).doc("Difference, after broadcasting."),
    logical(OpKind::ChloBroadcastXor).doc("Logical or bitwise exclusive or, after broadcasting."),
    float_broadcast(OpKind::ChloBroadcastZeta).doc("Hurwitz zeta function, after broadcasting."),
    function(OpKind::ChloConj).doc("Complex conjugate."),
    op(OpKind::ChloConstant)
        .values("", "output: static tensor")
        .attrs("value: elements")
        .text("$value{attrs}")
        .is(&[Pure])
        .rule(constant)
        .doc("A constant tensor."),
    op(OpKind::ChloConstantLike)
        .values("operand: tensor|axisquant|unranked", "result: tensor|axisquant|unranked")
        .attrs("value: any")
        .is(&[Pure])
        .rule(constant_like)
        .doc("A constant of the operand's shape."),
    function(OpKind::ChloCosh).doc("Hyperbolic cosine."),
    real_function(OpKind::ChloDigamma).doc("Logarithmic derivative of the gamma function."),
    real_function(OpKind::ChloErf).doc("Error function."),
    real_function(OpKind::ChloErfInv).doc("Inverse of the error function."),
    real_function(OpKind::ChloErfc).doc("Complementary error function."),
    question(OpKind::ChloIsInf).doc("Whether a number is infinite."),
    question(OpKind::ChloIsNegInf).doc("Whether a number is minus infinity."),
    question(OpKind::ChloIsPosInf).doc("Whether a number is plus infinity."),
    real_function(OpKind::ChloLgamma).doc("Logarithm of the absolute value of the gamma function."),
    binary(OpKind::ChloMulhi, "lhs: int, rhs: int")
        .values("lhs: int, rhs: int", "result: int")
        .text("$lhs, $rhs{attrs} : {operands} -> {results}")
        .doc("The upper half of a product."),
    binary(OpKind::ChloNextAfter, "x: float|unranked, y: float|unranked")
        .text("$x, $y{attrs} : {operands} -> {results}")
        .doc("The number after the left operand in the direction of the right."),
    binary(OpKind::ChloPolygamma, "n: float|unranked, x: float|unranked")
        .text("$n, $x{attrs} : {operands} -> {results}")
        .doc("Polygamma function."),
    op(OpKind::ChloRaggedDot)
        .values(
            "lhs: tensor|axisquant, rhs: tensor|axisquant, group_sizes: int",
            "result: tensor|axisquant",
        )
        .attrs("ragged_dot_dimension_numbers: ragged_dot, precision_config?: enums precision")
        .is(&[Pure])
        .rule(ragged_dot::rule)
        .doc("A dot whose one dimension is cut into groups, each with a matrix of its own."),
    op(OpKind::ChloScan)
        .values(
            "inputs*: tensor|axisquant, inits*: tensor|axisquant",
            "outputs*: tensor|axisquant, carries*: tensor|axisquant",
        )
        .attrs(
            "dimension: i64, scan_dim_size?: i64, is_reverse: bool = false, is_associative?: bool, operandSegmentSizes?: i32s, resultSegmentSizes?: i32s",
        )
        .regions("body")
        .text("custom")
        .is(&[SegmentSizes])
        .rule(scan::rule)
        .doc("Carries values along a dimension and collects what each step gives."),
    function(OpKind::ChloSinh).doc("Hyperbolic sine."),
    function(OpKind::ChloSquare).doc("Square."),
    function(OpKind::ChloTan).doc("Tangent."),
    op(OpKind::ChloTopK)
        .values("operand: tensor|axisquant|unranked", "values: tensor|axisquant|unranked, indices: int|unranked")
        .attrs("k: i64, largest?: bool")
        .text("($operand, k = $k){attrs} : {operands} -> ({results})")
        .is(&[Pure])
        .rule(top_k).doc("The largest elements along the last dimension and where they are."),
    binary(OpKind::ChloZeta, "x: float|unranked, q: float|unranked")
        .text("$x, $q{attrs} : {operands} -> {results}")
        .doc("Hurwitz zeta function."),
];

/// Operands and results are of one type, ranked or not.
fn same_type(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operands = cx.operands().to_vec();
    let first = *operands.first()?;
    for other in &operands {
        cx.check(compatible::types(first, other), "operands", || {
            format!("the operands have different types: {first} and {other}")
        });
    }
    check_ranked(cx);
    cx.gives("result", vec![first.clone()])
}

/// Operands and results are either all ranked or all unranked.
fn check_ranked(cx: &mut Cx<'_>) {
    let all: Vec<&Type> = cx.operands().iter().chain(cx.results()).copied().collect();
    let ranked = all.iter().filter(|ty| ty.as_tensor().is_some()).count();
    cx.check(ranked == 0 || ranked == all.len(), "rank", || {
        "the rank is known of some operands and results and unknown of others".to_owned()
    });
}

/// Truth values in the operand's shape.
fn truth(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let result = match *cx.operands().first()? {
        Type::Tensor(operand) => Type::Tensor(operand.with_element(ElementType::Bool)),
        _ => Type::UnrankedTensor(ElementType::Bool.into()),
    };
    check_ranked(cx);
    cx.gives("result", vec![result])
}

fn constant(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let value = cx.attr("value")?.as_elements()?.ty().clone();
    cx.gives("result", vec![Type::Tensor(value)])
}

fn constant_like(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let ty = match cx.attr("value")? {
        Attribute::Int(_, ty) | Attribute::Float(_, ty) => ty.clone(),
        Attribute::Bool(_) => Type::scalar(ElementType::Bool),
        // Complex numbers are written as another dialect writes them.
        Attribute::Opaque(_) => return None,
        other => {
            cx.fail("value", format!("{other} is no number"));
            return None;
        }
    };
    let Type::Scalar(element) = ty else { return None };
    let result = match *cx.operands().first()? {
        Type::Tensor(operand) => Type::Tensor(operand.with_element(element)),
        _ => Type::UnrankedTensor(element),
    };
    cx.gives("result", vec![result])
}

fn top_k(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let k = cx.i64("k")?;
    if let [Type::UnrankedTensor(element)] = cx.operands() {
        let indices = Type::UnrankedTensor(ElementType::I32.into());
        let values = Type::UnrankedTensor(element.clone());
        return cx.gives("result", vec![values, indices]);
    }
    let operand = cx.tensor(0)?;
    let Some((&last, rest)) = operand.dims().split_last() else {
        cx.fail("rank", "the operand must have a dimension");
        return None;
    };
    let fits = k >= 0 && last.size().is_none_or(|size| k as u64 <= size);
    if !cx.check(fits, "k", || format!("{operand} has no {k} elements in its last dimension")) {
        return None;
    }
    let dims: Vec<Dim> = rest.iter().copied().chain([Dim::Static(k as u64)]).collect();
    let values = operand.with_dims(dims);
    let indices = values.with_element(ElementType::I32);
    cx.gives("result", vec![Type::Tensor(values), Type::Tensor(indices)])
}
