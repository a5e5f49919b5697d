//! Conversion to and from quantized numbers.

use crate::table::Trait::{Elementwise, Pure};
use crate::table::{Entry, OpKind, op};

const CONVERTING: &str = "$operand{attrs} : {same}";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::UniformDequantize)
        .values("operand: quant|axisquant", "result: float")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .doc("The real numbers that quantized ones express."),
    op(OpKind::UniformQuantize)
        .values("operand: float|quant|axisquant", "result: quant|axisquant")
        .text(CONVERTING)
        .is(&[Pure, Elementwise])
        .doc("The quantized numbers nearest to given ones."),
];
