//! Weights of 4 bits that PyTorch packs for the processor it runs on, and products with them.

use super::super::matrix::{DotPairing as Pairing, dot};
use super::super::prelude::*;
use crate::packing::PackedRows;

pub(super) const TABLE: &[Op] = &[
    op("aten._convert_weight_to_int4pack_for_cpu.default", pack),
    op("aten._weight_int4pack_mm_for_cpu.default", product),
];

const PACK: &str = "aten._convert_weight_to_int4pack_for_cpu.default";
/// Graphs that pack weights themselves read nothing else of them than their values: one layout is as good as another.
const OWN: PackedRows = PackedRows::AVX512;
const BITS: i64 = 4;
const MASK: i64 = 15;
/// What is subtracted from codes.
const MIDDLE: f64 = 8.0;

/// Rows in whole blocks, and those behind them.
fn parts(rows: i64, PackedRows(block): PackedRows) -> (i64, i64) {
    (rows / block * block, rows % block)
}

pub(super) fn sizes<const N: usize>(sizes: [i64; N]) -> [Size; N] {
    sizes.map(Size::Int)
}

/// Codes `[rows, depth]` as bytes with two codes each.
fn pack(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // A matter of GPUs.
    args.ignore(&["innerKTiles"]);
    let codes = args.tensor("self")?;
    let &[rows, depth] = cx.known(&codes.dims)?.as_slice() else { return refuse("codes of no matrix") };
    if rows % 16 != 0 || depth % 2 != 0 {
        return refuse(format!("{rows} rows of {depth} codes, which PyTorch does not pack"));
    }
    let codes = cx.convert(&codes, ElementType::U8)?;
    let (whole, rest) = parts(rows, OWN);
    let mut packed = Vec::new();
    // The rows of one byte: those of the halves of a block, or neighbours.
    for (start, end, shape, order) in [
        (0, whole, [whole / OWN.0, 2, OWN.0 / 2, depth], [1, 0, 3, 2]),
        (whole, rows, [1, rest / 2, 2, depth], [2, 0, 3, 1]),
    ] {
        if start == end {
            continue;
        }
        let part = cx.slice(&codes, 0, &Size::Int(start), &Size::Int(end), 1)?;
        let split = cx.reshape(&part, &sizes(shape))?;
        let split = cx.transpose(&split, &order)?;
        let low = cx.slice(&split, 0, &Size::Int(0), &Size::Int(1), 1)?;
        let high = cx.slice(&split, 0, &Size::Int(1), &Size::Int(2), 1)?;
        let high = cx.with_number(OpKind::ShiftLeft, &high, BITS)?;
        let bytes = cx.or(&high, &low)?;
        packed.push(cx.reshape(&bytes, &sizes([end - start, depth / 2]))?);
    }
    one(cx.concatenate(&packed, 0)?)
}

/// The codes `[rows, depth]` in packed bytes.
fn unpacked(cx: &mut Cx<'_>, bytes: &Tensor, layout: PackedRows) -> Lowered<Tensor> {
    let &[rows, half] = cx.known(&bytes.dims)?.as_slice() else { return refuse("packed codes of no matrix") };
    let (depth, (whole, rest)) = (2 * half, parts(rows, layout));
    let mut parts = Vec::new();
    for (start, end, shape, order) in [
        (0, whole, [whole / layout.0, depth, layout.0 / 2], [1, 0, 3, 2]),
        (whole, rows, [1, depth, rest / 2], [1, 3, 0, 2]),
    ] {
        if start == end {
            continue;
        }
        let part = cx.slice(bytes, 0, &Size::Int(start), &Size::Int(end), 1)?;
        let split = cx.reshape(&part, &sizes([1, shape[0], shape[1], shape[2]]))?;
        let low = cx.with_number(OpKind::And, &split, MASK)?;
        let high = cx.with_number(OpKind::ShiftRightLogical, &split, BITS)?;
        let both = cx.concatenate(&[low, high], 0)?;
        // From which code of a byte, block, depth and byte to block, row in it and depth.
        let turned = cx.transpose(&both, &order)?;
        parts.push(cx.reshape(&turned, &sizes([end - start, depth]))?);
    }
    cx.concatenate(&parts, 0)
}

/// A product with `(code - 8) · scale + zero`, where groups of a row share a scale and a zero.
fn product(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, bytes, factors) = (args.tensor("self")?, args.tensor("mat2")?, args.tensor("qScaleAndZeros")?);
    let layout = if args.is_given_by("mat2", PACK) { Some(OWN) } else { cx.packing.rows };
    let Some(layout) = layout else {
        return refuse(
            "the archive does not say for which processor its weights are packed: trace the model with \
             `python -m warpforge.trace` on one with AVX2 or AVX-512",
        );
    };
    if bytes.dtype != ElementType::U8 {
        return refuse(format!("packed codes of {}", bytes.dtype));
    }
    let codes = unpacked(cx, &bytes, layout)?;
    product_of_codes(cx, &x, &codes, args.int("qGroupSize")?, &factors)
}

/// The same of codes `[rows, depth]` that are no longer packed.
pub(super) fn product_of_codes(
    cx: &mut Cx<'_>,
    x: &Tensor,
    codes: &Tensor,
    group: i64,
    factors: &Tensor,
) -> Lowered<Outcome> {
    let &[rows, depth] = cx.known(&codes.dims)?.as_slice() else {
        return refuse("packed codes of no matrix");
    };
    if x.rank() != 2 || factors.rank() != 3 {
        return refuse("a product of something else than a matrix and packed codes");
    }
    if group < 1 || depth % group != 0 || *factors.dims != sizes([depth / group, rows, 2]) {
        return refuse(format!("groups of {group} in rows of {depth}"));
    }
    let split = sizes([rows, depth / group, group]);
    let codes = cx.reshape(codes, &split)?;
    let codes = cx.convert(&codes, ElementType::F32)?;
    let mut weights = cx.with_number(OpKind::Subtract, &codes, MIDDLE)?;
    for (at, kind) in [(0, OpKind::Multiply), (1, OpKind::Add)] {
        let factor = cx.slice(factors, 2, &Size::Int(at), &Size::Int(at + 1), 1)?;
        let factor = cx.reshape(&factor, &sizes([depth / group, rows]))?;
        let factor = cx.transpose(&factor, &[1, 0])?;
        let factor = cx.convert(&factor, ElementType::F32)?;
        let factor = cx.broadcast(&factor, &split, &[0, 1])?;
        weights = cx.binary(kind, &weights, &factor)?;
    }
    let weights = cx.reshape(&weights, &sizes([rows, depth]))?;
    let wide = cx.convert(x, ElementType::F32)?;
    let sums = dot(cx, &wide, &weights, &Pairing::summing(&[1], &[1]))?;
    one(cx.convert(&sums, x.dtype)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    #[should_panic(expected = "does not say for which processor")]
    fn packed_weights_of_an_unknown_processor_are_refused() {
        let arguments = vec![
            ("self", Floats(&[1, 32], vec![1.0; 32])),
            ("mat2", Ints(&[16, 16], vec![0; 256])),
            ("qGroupSize", Plain(json!({"as_int": 32}))),
            ("qScaleAndZeros", Floats(&[1, 16, 2], vec![1.0; 32])),
        ];
        evaluated("aten._weight_int4pack_mm_for_cpu.default", arguments, &[(F32, &[1, 16])]);
    }
}
