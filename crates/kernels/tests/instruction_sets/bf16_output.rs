//! GEMMs with bf16 outputs: sums are rounded to the nearest value, ties to even. They need AMX.

use std::num::NonZeroUsize;

use half::bf16;
use warpforge_kernels::gemm::{ComputeType, Gemm, Operand, Rhs, Shape};
use warpforge_kernels::pool::Pool;
use warpforge_tensor::ElementType;

/// Multiplies random rows by random columns and compares each sum with its rounding.
pub(crate) fn outputs_are_correctly_rounded() {
    let mut random = fastrand::Rng::with_seed(6);
    for (m, n, k) in [(33, 40, 70), (290, 70, 600), (64, 64, 1100)] {
        // Eighths from -16 to 16: sums of their products are exact in f32.
        let mut values =
            |count: usize| -> Vec<f32> { (0..count).map(|_| random.i32(-100..=100) as f32 / 8.0).collect() };
        let (lhs, rhs) = (values(m * k), values(k * n));
        let found = multiply(&lhs, &rhs, Shape { m, n, k }, n + 3);
        for (row, found) in found.chunks(n + 3).enumerate() {
            for (column, found) in found[..n].iter().enumerate() {
                let sum: f32 = (0..k).map(|at| lhs[row * k + at] * rhs[at * n + column]).sum();
                assert_eq!(*found, bf16::from_f32(sum), "{m}x{n}x{k} at {row}, {column}");
            }
            assert!(found[n..].iter().all(|beyond| beyond.is_nan()), "{m}x{n}x{k}: out-of-bounds write");
        }
    }
}

/// NaN, infinities, overflow and ties, in outputs with and without non-temporal stores.
pub(crate) fn special_values_are_rounded() {
    let mut random = fastrand::Rng::with_seed(3);
    for (m, n) in [(70, 64), (2100, 2048)] {
        let k = 32;
        let mut lhs = vec![0f32; m * k];
        for row in lhs.chunks_mut(k) {
            // The sum of the first two has up to 16 significant bits.
            row[0] = bf16::from_f32(random.f32() + 1.0).to_f32();
            row[1] = bf16::from_f32((random.f32() - 0.5) / 128.0).to_f32();
        }
        let largest = bf16::MAX.to_f32();
        let special = [
            [f32::NAN, 1.0],
            [f32::INFINITY, 1.0],
            [f32::NEG_INFINITY, 1.0],
            [largest, largest / 256.0],
            [1.0, 1.0 / 256.0],
            [1.0 + 1.0 / 128.0, 1.0 / 256.0],
            [-0.0, 0.0],
        ];
        for (row, special) in lhs.chunks_mut(k).step_by(5).zip(special) {
            row[..2].copy_from_slice(&special);
        }
        let mut rhs = vec![0f32; k * n];
        rhs[..2 * n].fill(1.0);
        let found = multiply(&lhs, &rhs, Shape { m, n, k }, n);
        for (row, found) in found.chunks(n).enumerate() {
            let wanted = bf16::from_f32(lhs[row * k] + lhs[row * k + 1]);
            let same = |found: &bf16| *found == wanted || found.is_nan() && wanted.is_nan();
            assert!(found.iter().all(same), "{m}x{n}, row {row}: {:?}, not {wanted:?}", found[0]);
        }
    }
}

/// The bf16 output of f32 operands that are exact in bf16; what is beyond the columns is NaN.
fn multiply(lhs: &[f32], rhs: &[f32], shape: Shape, stride: usize) -> Vec<bf16> {
    let gemm = Gemm::new(ComputeType::Bf16);
    let pool = Pool::new(NonZeroUsize::new(2).unwrap()).unwrap();
    let operand = |data: &[f32], columns: usize| Operand {
        data: data.as_ptr().cast(),
        element: ElementType::F32,
        row_stride: columns,
        column_stride: 1,
    };
    // Rows start at cache lines, as non-temporal stores need it.
    let bytes = shape.m * stride * size_of::<bf16>();
    let buffer = warpforge_kernels::buffer::AlignedBuffer::new(bytes).unwrap();
    // SAFETY: the operands and the output have these sizes.
    unsafe {
        let out = buffer.as_ptr().cast::<bf16>();
        std::slice::from_raw_parts_mut(out, shape.m * stride).fill(bf16::NAN);
        let rhs = Rhs::Strided(operand(rhs, shape.n));
        gemm.multiply_to_bf16(&pool, shape, &operand(lhs, shape.k), rhs, out.cast(), stride).unwrap();
        std::slice::from_raw_parts(out, shape.m * stride).to_vec()
    }
}
