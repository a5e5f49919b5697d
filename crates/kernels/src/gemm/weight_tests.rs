//! GEMMs on weights of few bits, against sums in f64, on every instruction set of this CPU.

use std::num::NonZeroUsize;

use half::bf16;
use warpforge_tensor::{ElementType, FloatType};

use super::drive::WIDENED_ROWS;
use super::{ComputeType, Gemm, GroupedRhs, Operand, PackedRhs, Rhs, Shape, WeightType};
use crate::isa::Isa;
use crate::pool::Pool;

/// Ragged shapes: one row, few and many rows, depths and widths off every multiple.
const SHAPES: [(usize, usize, usize); 11] = [
    (40, 112, 72),
    (33, 400, 64),
    (1, 1, 8),
    (1, 47, 64),
    (3, 49, 40),
    (5, 16, 2056),
    (8, 97, 24),
    (17, 33, 128),
    (100, 70, 136),
    (130, 64, 1032),
    (2, 200, 8),
];

fn rows(m: usize, k: usize, random: &mut fastrand::Rng) -> Vec<f32> {
    (0..m * k).map(|_| random.f32() - 0.5).collect()
}

fn multiplied(gemm: &Gemm, lhs: Operand, rhs: &PackedRhs, (m, n, k): (usize, usize, usize)) -> Vec<[u8; 4]> {
    let pool = Pool::new(NonZeroUsize::new(2).unwrap()).unwrap();
    let mut out = vec![[0xff; 4]; m * n];
    let shape = Shape { m, n, k };
    // SAFETY: the operands have these sizes.
    unsafe {
        gemm.multiply(&pool, shape, &lhs, Rhs::Packed(rhs), Some(out.as_mut_ptr().cast()), n, None).unwrap();
    }
    out
}

fn operand<T>(data: &[T], element: ElementType, k: usize) -> Operand {
    Operand { data: data.as_ptr().cast(), element, row_stride: k, column_stride: 1 }
}

/// `[n, k]` weights seen as `k × n`.
fn transposed<T>(data: &[T], element: ElementType, k: usize) -> Operand {
    Operand { data: data.as_ptr().cast(), element, row_stride: 1, column_stride: k }
}

/// Compares with sums in f64 of `weight(column, depth)`.
fn check(
    out: &[[u8; 4]],
    lhs: &[f32],
    (m, n, k): (usize, usize, usize),
    weight: &dyn Fn(usize, usize) -> f64,
    name: &str,
) {
    for row in 0..m {
        for column in 0..n {
            let terms = (0..k).map(|at| f64::from(lhs[row * k + at]) * weight(column, at));
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            let ours = f64::from(f32::from_le_bytes(out[row * n + column]));
            assert!(
                (ours - sum).abs() <= 2e-6 * size + 1e-12,
                "{name} {m}x{n}x{k} at {row}, {column}: {ours} is not {sum}"
            );
        }
    }
}

#[test]
fn weights_of_8_bits_are_widened_exactly() {
    let mut random = fastrand::Rng::with_seed(1);
    for isa in Isa::available() {
        for (m, n, k) in SHAPES {
            let lhs = rows(m, k, &mut random);
            let codes: Vec<u8> = (0..n * k)
                .map(|_| random.u8(..))
                .map(|code| if code & 0x7f == 0x7f { 0 } else { code })
                .collect();
            let f8 = FloatType::F8E4M3Fn;
            let of_i8 = |column: usize, at: usize| f64::from(codes[column * k + at].cast_signed());
            let of_f8 = |column: usize, at: usize| f8.format().decode(codes[column * k + at].into());
            let cases: [(_, _, &dyn Fn(usize, usize) -> f64); 2] = [
                (WeightType::I8, ElementType::I8, &of_i8),
                (WeightType::F8E4M3Fn, ElementType::Float(f8), &of_f8),
            ];
            for (weights, element, weight) in cases {
                let gemm = Gemm::for_weights_with_isa(weights, ComputeType::F32, isa);
                // SAFETY: the codes are that many.
                let packed = unsafe { gemm.pack_rhs(&transposed(&codes, element, k), k, n, None).unwrap() };
                let out = multiplied(&gemm, operand(&lhs, ElementType::F32, k), &packed, (m, n, k));
                check(&out, &lhs, (m, n, k), weight, &format!("{weights:?} {isa}"));
                let narrow: Vec<bf16> = lhs.iter().map(|&value| bf16::from_f32(value)).collect();
                let wide: Vec<f32> = narrow.iter().map(|value| value.to_f32()).collect();
                let out = multiplied(&gemm, operand(&narrow, ElementType::BF16, k), &packed, (m, n, k));
                check(&out, &wide, (m, n, k), weight, &format!("bf16 and {weights:?} {isa}"));
                let gemm = Gemm::for_weights_with_isa(weights, ComputeType::Bf16, isa);
                let out = multiplied(&gemm, operand(&narrow, ElementType::BF16, k), &packed, (m, n, k));
                check(&out, &wide, (m, n, k), weight, &format!("in bf16 {weights:?} {isa}"));
            }
        }
    }
}

#[test]
fn weights_of_4_bits_are_scaled_group_by_group() {
    let mut random = fastrand::Rng::with_seed(2);
    for isa in Isa::available() {
        for ((m, n, k), group) in
            SHAPES.into_iter().flat_map(|shape| [8, 24, 32, 40, 64, 128].map(|group| (shape, group)))
        {
            if k % group != 0 {
                continue;
            }
            let lhs = rows(m, k, &mut random);
            let codes: Vec<u8> = (0..n * k).map(|_| random.u8(..16)).collect();
            let vector = |random: &mut fastrand::Rng| -> Vec<bf16> {
                (0..n * (k / group)).map(|_| bf16::from_f32(random.f32() - 0.5)).collect()
            };
            let (scales, offsets) = (vector(&mut random), vector(&mut random));
            let gemm = Gemm::for_weights_with_isa(WeightType::Int4 { group }, ComputeType::F32, isa);
            let weights = GroupedRhs { codes: &codes, scales: &scales, offsets: &offsets };
            let packed = gemm.pack_groups(weights, k, n).unwrap();
            let out = multiplied(&gemm, operand(&lhs, ElementType::F32, k), &packed, (m, n, k));
            let weight = |column: usize, at: usize| {
                let code = f64::from((codes[column * k + at] << 4).cast_signed() >> 4);
                let group = column * (k / group) + at / group;
                code * scales[group].to_f64() + offsets[group].to_f64()
            };
            check_within(&out, &lhs, (m, n, k), &weight, 4e-6, &format!("groups of {group} {isa}"));
            let gemm = Gemm::for_weights_with_isa(WeightType::Int4 { group }, ComputeType::Bf16, isa);
            let packed = gemm.pack_groups(weights, k, n).unwrap();
            let narrow: Vec<bf16> = lhs.iter().map(|&value| bf16::from_f32(value)).collect();
            let wide: Vec<f32> = narrow.iter().map(|value| value.to_f32()).collect();
            // Where many rows are multiplied by tiles, weights have 16 bits.
            let part = if m > WIDENED_ROWS { 8e-6 } else { 4e-6 };
            let out = multiplied(&gemm, operand(&narrow, ElementType::BF16, k), &packed, (m, n, k));
            check_within(&out, &wide, (m, n, k), &weight, part, &format!("bf16 and groups of {group} {isa}"));
        }
    }
    let gemm = Gemm::for_weights(WeightType::Int4 { group: 16 }, ComputeType::F32);
    let (codes, vector) = ([0u8; 48], [bf16::ZERO; 3]);
    let weights = GroupedRhs { codes: &codes, scales: &vector, offsets: &vector };
    assert!(gemm.pack_groups(weights, 24, 2).is_err());
    assert!(gemm.pack_groups(weights, 48, 2).is_err());
    assert!(gemm.pack_groups(weights, 48, 1).is_ok());
    assert!(Gemm::new(ComputeType::F32).pack_groups(weights, 48, 1).is_err());
}

fn check_within(
    out: &[[u8; 4]],
    lhs: &[f32],
    (m, n, k): (usize, usize, usize),
    weight: &dyn Fn(usize, usize) -> f64,
    part: f64,
    name: &str,
) {
    for row in 0..m {
        for column in 0..n {
            let terms = (0..k).map(|at| (f64::from(lhs[row * k + at]), weight(column, at)));
            let sum: f64 = terms.clone().map(|(x, w)| x * w).sum();
            // Codes and offset are summed apart, and each may be larger than the weight.
            let size: f64 = terms.map(|(x, _)| x.abs() * 8.0).sum();
            let ours = f64::from(f32::from_le_bytes(out[row * n + column]));
            assert!(
                (ours - sum).abs() <= part * size,
                "{name} {m}x{n}x{k} at {row}, {column}: {ours} is not {sum}"
            );
        }
    }
}

#[test]
fn products_of_8_bits_are_exact() {
    let mut random = fastrand::Rng::with_seed(3);
    for isa in Isa::available() {
        for (m, n, k) in SHAPES.into_iter().chain([(4, 20, 1), (9, 5, 3), (33, 48, 4099)]) {
            let bytes = |count: usize, random: &mut fastrand::Rng| -> Vec<i8> {
                (0..count).map(|_| random.i8(..)).collect()
            };
            let (mut lhs, mut rhs) = (bytes(m * k, &mut random), bytes(n * k, &mut random));
            lhs[0] = -128;
            rhs[0] = -128;
            let gemm = Gemm::of(ComputeType::I8, isa, m);
            // SAFETY: the operands have these sizes.
            let packed = unsafe { gemm.pack_rhs(&transposed(&rhs, ElementType::I8, k), k, n, None).unwrap() };
            let out = multiplied(&gemm, operand(&lhs, ElementType::I8, k), &packed, (m, n, k));
            for (at, out) in out.iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let sum: i32 =
                    (0..k).map(|at| i32::from(lhs[row * k + at]) * i32::from(rhs[column * k + at])).sum();
                assert_eq!(i32::from_le_bytes(*out), sum, "{m}x{n}x{k} {isa} at {row}, {column}");
            }
        }
    }
}
