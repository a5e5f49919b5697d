//! The CHLO dialect: broadcasting arithmetic and functions beyond StableHLO.

use crate::table::Trait::{Commutative, Elementwise, Pure, SegmentSizes};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, TensorType, Type};
use crate::verify::Cx;

const UNARY: &str = "$operand{attrs} : {operands} -> {results}";
const BROADCAST: &str = "$lhs, $rhs{attrs} : {fn}";

const fn unary(kind: OpKind, operand: &'static str, result: &'static str) -> Entry {
    op(kind).values(operand, result).text(UNARY).is(&[Pure, Elementwise]).rule(same_shape)
}

const fn function(kind: OpKind) -> Entry {
    unary(kind, "operand: float|complex", "result: float|complex")
}

const fn real_function(kind: OpKind) -> Entry {
    unary(kind, "operand: float", "result: float")
}

const fn broadcast(kind: OpKind) -> Entry {
    op(kind)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("broadcast_dimensions?: i64s")
        .text(BROADCAST)
        .is(&[Pure])
        .rule(broadcast_shape)
}

const fn commutative(kind: OpKind) -> Entry {
    broadcast(kind).is(&[Pure, Commutative])
}

const fn logical(kind: OpKind) -> Entry {
    commutative(kind).values("lhs: pred|int, rhs: pred|int", "result: pred|int")
}

const fn float_broadcast(kind: OpKind) -> Entry {
    broadcast(kind).values("lhs: float, rhs: float", "result: float")
}

pub(super) const ENTRIES: &[Entry] = &[
    function(OpKind::ChloAcos).doc("Arc cosine."),
    function(OpKind::ChloAcosh).doc("Inverse hyperbolic cosine."),
    function(OpKind::ChloAsin).doc("Arc sine."),
    function(OpKind::ChloAsinAcosKernel).doc("The part that arc sine and arc cosine share."),
    function(OpKind::ChloAsinh).doc("Inverse hyperbolic sine."),
    function(OpKind::ChloAtan).doc("Arc tangent."),
    function(OpKind::ChloAtanh).doc("Inverse hyperbolic tangent."),
    function(OpKind::ChloBesselI1e).doc("Exponentially scaled modified Bessel function of order one."),
    commutative(OpKind::ChloBroadcastAdd).doc("Sum, after broadcasting."),
    logical(OpKind::ChloBroadcastAnd).doc("Logical or bitwise and, after broadcasting."),
    broadcast(OpKind::ChloBroadcastAtan2).doc("Angle of a point, after broadcasting."),
    broadcast(OpKind::ChloBroadcastCompare)
        .values("lhs: tensor, rhs: tensor", "result: pred")
        .attrs(
            "broadcast_dimensions?: i64s, comparison_direction: enum comparison_direction, compare_type?: enum comparison_type",
        )
        .doc("Comparison, after broadcasting."),
    broadcast(OpKind::ChloBroadcastComplex)
        .values("lhs: float, rhs: float", "result: complex")
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
        .values("pred: pred, on_true: tensor, on_false: tensor", "result: tensor")
        .text("$pred, $on_true, $on_false{attrs} : {fn}")
        .is(&[Pure])
        .doc("One of two values, after broadcasting."),
    broadcast(OpKind::ChloBroadcastShiftLeft).doc("Left shift, after broadcasting."),
    broadcast(OpKind::ChloBroadcastShiftRightArithmetic).doc("Arithmetic right shift, after broadcasting."),
    broadcast(OpKind::ChloBroadcastShiftRightLogical).doc("Logical right shift, after broadcasting."),
    broadcast(OpKind::ChloBroadcastSubtract).doc("Difference, after broadcasting."),
    logical(OpKind::ChloBroadcastXor).doc("Logical or bitwise exclusive or, after broadcasting."),
    float_broadcast(OpKind::ChloBroadcastZeta).doc("Hurwitz zeta function, after broadcasting."),
    unary(OpKind::ChloConj, "operand: tensor", "result: tensor").doc("Complex conjugate."),
    op(OpKind::ChloConstant)
        .values("", "output: tensor")
        .attrs("value: elements")
        .text("$value{attrs}")
        .is(&[Pure])
        .doc("A constant tensor."),
    op(OpKind::ChloConstantLike)
        .values("operand: tensor", "result: tensor")
        .attrs("value: any")
        .is(&[Pure])
        .doc("A constant of the operand's shape."),
    function(OpKind::ChloCosh).doc("Hyperbolic cosine."),
    function(OpKind::ChloDigamma).doc("Logarithmic derivative of the gamma function."),
    function(OpKind::ChloErf).doc("Error function."),
    real_function(OpKind::ChloErfInv).doc("Inverse of the error function."),
    function(OpKind::ChloErfc).doc("Complementary error function."),
    unary(OpKind::ChloIsInf, "operand: float", "result: pred").doc("Whether a number is infinite."),
    unary(OpKind::ChloIsNegInf, "operand: float", "result: pred").doc("Whether a number is minus infinity."),
    unary(OpKind::ChloIsPosInf, "operand: float", "result: pred").doc("Whether a number is plus infinity."),
    function(OpKind::ChloLgamma).doc("Logarithm of the absolute value of the gamma function."),
    op(OpKind::ChloMulhi)
        .values("lhs: int, rhs: int", "result: int")
        .text("$lhs, $rhs{attrs} : {operands} -> {results}")
        .is(&[Pure, Elementwise])
        .doc("The upper half of a product."),
    op(OpKind::ChloNextAfter)
        .values("x: float, y: float", "result: float")
        .text("$x, $y{attrs} : {operands} -> {results}")
        .is(&[Pure, Elementwise])
        .doc("The number after the left operand in the direction of the right."),
    op(OpKind::ChloPolygamma)
        .values("n: float, x: float", "result: float")
        .text("$n, $x{attrs} : {operands} -> {results}")
        .is(&[Pure, Elementwise])
        .doc("Polygamma function."),
    op(OpKind::ChloRaggedDot)
        .values("lhs: tensor, rhs: tensor, group_sizes: tensor", "result: tensor")
        .attrs("ragged_dot_dimension_numbers: ragged_dot, precision_config?: enums precision")
        .is(&[Pure])
        .doc("A dot whose one dimension is cut into groups, each with a matrix of its own."),
    op(OpKind::ChloScan)
        .values("inputs*: tensor, inits*: tensor", "outputs*: tensor, carries*: tensor")
        .attrs(
            "dimension: i64, scan_dim_size?: i64, is_reverse: bool = false, is_associative?: bool, operandSegmentSizes?: i32s, resultSegmentSizes?: i32s",
        )
        .regions("body")
        .text("custom")
        .is(&[SegmentSizes])
        .doc("Carries values along a dimension and collects what each step gives."),
    function(OpKind::ChloSinh).doc("Hyperbolic sine."),
    function(OpKind::ChloSquare).doc("Square."),
    function(OpKind::ChloTan).doc("Tangent."),
    op(OpKind::ChloTopK)
        .values("operand: tensor", "values: tensor, indices: tensor")
        .attrs("k: i64, largest?: bool")
        .text("($operand, k = $k){attrs} : {operands} -> ({results})")
        .is(&[Pure])
        .rule(top_k).doc("The largest elements along the last dimension and where they are."),
    op(OpKind::ChloZeta)
        .values("x: float, q: float", "result: float")
        .text("$x, $q{attrs} : {operands} -> {results}")
        .is(&[Pure, Elementwise])
        .doc("Hurwitz zeta function."),
];

/// The shape stays; the elements do unless the result's class says otherwise.
fn same_shape(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    if let Some(result) = cx.result(0) {
        cx.same_shape("shape", "the operand and the result", operand, result);
        return None;
    }
    let same = Type::Tensor(operand.clone());
    let keeps = cx.def().results.first().is_some_and(|result| result.class.accepts(&same));
    Some(vec![if keeps { same } else { Type::Tensor(operand.with_element(ElementType::Bool)) }])
}

fn broadcast_shape(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    if let Some(dims) = cx.i64s("broadcast_dimensions") {
        let (small, large) = if lhs.rank() <= rhs.rank() { (lhs, rhs) } else { (rhs, lhs) };
        cx.same_count("broadcast", "broadcast_dimensions", dims.len(), small.rank());
        cx.in_rank("broadcast", "broadcast_dimensions", dims, large.rank());
        cx.unique("broadcast", "broadcast_dimensions", dims);
        cx.sorted("broadcast", "broadcast_dimensions", dims);
    }
    None
}

fn top_k(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, k) = (cx.tensor(0)?, cx.i64("k")?);
    let Some(&last) = operand.dims().last() else {
        cx.fail("rank", "the operand must have a dimension");
        return None;
    };
    let fits = k >= 0 && last.bound().is_none_or(|size| k as u64 <= size);
    if !cx.check(fits, "k", || format!("{operand} has no {k} elements in its last dimension")) {
        return None;
    }
    let mut dims = operand.dims().to_vec();
    *dims.last_mut()? = Dim::Static(k as u64);
    let indices = TensorType::new(dims.clone(), ElementType::I32);
    cx.gives("result", vec![Type::Tensor(operand.with_dims(dims)), Type::Tensor(indices)])
}
