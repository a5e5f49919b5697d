//! Conversion to and from quantized numbers.

use crate::table::Trait::{Elementwise, Pure};
use crate::table::{Entry, OpKind, op};
use crate::types::{Element, ElementType, Type};
use crate::verify::Cx;

const CONVERTING: &str = "$operand{attrs} : {same}";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::UniformDequantize)
        .values("operand: quant|axisquant", "result: float")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .rule(dequantize)
        .doc("The real numbers that quantized ones express."),
    op(OpKind::UniformQuantize)
        .values("operand: float|quant|axisquant", "result: quant|axisquant")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .rule(quantize)
        .doc("The quantized numbers nearest to given ones."),
];

fn dequantize(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let expressed = operand.element().quantized()?.expressed;
    cx.gives(["C1", "C2"], vec![Type::Tensor(operand.with_element(ElementType::Float(expressed)))])
}

fn quantize(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    cx.same_shape("C1", "the operand and the result", operand, result);
    let expressed = match operand.element() {
        Element::Quantized(quantized) => Some(quantized.expressed),
        other => other.plain().and_then(ElementType::float_part),
    };
    let wanted = result.element().quantized().map(|quantized| quantized.expressed);
    cx.check(expressed == wanted, "C2", || format!("{result} does not express what {operand} has"));
    None
}
