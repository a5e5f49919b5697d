//! GEMMs against f64 sums, for all compute types, instruction sets, strides and numbers of threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use half::{bf16, f16};
use warpforge_tensor::ElementType;

use super::operand::size_of_element;
use super::*;
use crate::buffer::AlignedBuffer;
use crate::isa::Isa;
use crate::output_block::OutputBlock;
use crate::pool::Pool;

const SHAPES: [(usize, usize, usize); 19] = [
    (0, 5, 3),
    (5, 0, 3),
    (5, 3, 0),
    (1, 1, 1),
    (1, 100, 37),
    (2, 3, 5),
    (7, 47, 11),
    (8, 48, 256),
    (9, 49, 257),
    (13, 64, 31),
    (33, 97, 300),
    (101, 16, 3),
    (128, 113, 65),
    (200, 200, 17),
    (64, 17, 769),
    (3, 331, 515),
    (70, 520, 1024),
    (290, 33, 600),
    (1603, 60, 21),
];

/// A matrix of random small values that are exact in all types.
struct Matrix {
    bytes: Vec<u8>,
    values: Vec<f64>,
    columns: usize,
    element: ElementType,
    strides: (usize, usize),
}

impl Matrix {
    fn random(random: &mut fastrand::Rng, rows: usize, columns: usize, element: ElementType) -> Self {
        let strides = match random.usize(..4) {
            0 => (columns.max(1), 1),
            1 => (columns + random.usize(..9), 1),
            2 => (1, rows + random.usize(..9)),
            _ => (3, 3 * rows + random.usize(..9)),
        };
        let size = size_of_element(element);
        let mut bytes = vec![0; (rows * strides.0 + columns * strides.1 + 1) * size];
        let mut values = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                // Eighths from -16 to 16: sums of their products are exact in f32.
                let value = f64::from(random.i32(-100..=100)) / 8.0;
                let value = match element {
                    ElementType::Int(int) if int.is_signed() => value.round(),
                    ElementType::Int(_) => value.round().abs(),
                    _ => value,
                };
                let at = (row * strides.0 + column * strides.1) * size;
                write(&mut bytes[at..at + size], element, value);
                values.push(value);
            }
        }
        Self { bytes, values, columns, element, strides }
    }

    fn operand(&self) -> Operand {
        Operand {
            data: self.bytes.as_ptr(),
            element: self.element,
            row_stride: self.strides.0,
            column_stride: self.strides.1,
        }
    }
}

fn write(to: &mut [u8], element: ElementType, value: f64) {
    match element {
        ElementType::F64 => to.copy_from_slice(&value.to_ne_bytes()),
        ElementType::F32 => to.copy_from_slice(&(value as f32).to_ne_bytes()),
        ElementType::BF16 => to.copy_from_slice(&bf16::from_f64(value).to_ne_bytes()),
        ElementType::F16 => to.copy_from_slice(&f16::from_f64(value).to_ne_bytes()),
        ElementType::I64 | ElementType::U64 => to.copy_from_slice(&(value as i64).to_ne_bytes()),
        ElementType::I32 | ElementType::U32 => to.copy_from_slice(&(value as i32).to_ne_bytes()),
        ElementType::I16 | ElementType::U16 => to.copy_from_slice(&(value as i16).to_ne_bytes()),
        _ => to[0] = value as i8 as u8,
    }
}

fn read(from: &[u8], element: ElementType) -> f64 {
    match element {
        ElementType::F64 => f64::from_ne_bytes(from.try_into().unwrap()),
        ElementType::I32 => f64::from(i32::from_ne_bytes(from.try_into().unwrap())),
        ElementType::I64 => i64::from_ne_bytes(from.try_into().unwrap()) as f64,
        _ => f64::from(f32::from_ne_bytes(from.try_into().unwrap())),
    }
}

fn expected(lhs: &Matrix, rhs: &Matrix, (m, n, k): (usize, usize, usize)) -> Vec<f64> {
    let mut sums = vec![0.0; m * n];
    for row in 0..m {
        for at in 0..k {
            for column in 0..n {
                sums[row * n + column] +=
                    lhs.values[row * lhs.columns + at] * rhs.values[at * rhs.columns + column];
            }
        }
    }
    sums
}

const INTEGERS: [ElementType; 8] = [
    ElementType::I8,
    ElementType::U8,
    ElementType::I16,
    ElementType::U16,
    ElementType::I32,
    ElementType::U32,
    ElementType::I64,
    ElementType::U64,
];

fn elements(compute_type: ComputeType) -> &'static [ElementType] {
    match compute_type {
        ComputeType::F32 | ComputeType::Bf16 => &[ElementType::F32, ElementType::BF16, ElementType::F16],
        ComputeType::F64 => &[ElementType::F64],
        ComputeType::I8 => &[ElementType::I8],
        ComputeType::I32 => &INTEGERS[..6],
        ComputeType::I64 => &INTEGERS,
    }
}

fn all() -> impl Iterator<Item = Gemm> {
    Isa::available().flat_map(|isa| {
        let all = ComputeType::ALL.map(|compute_type| Gemm::with_isa(compute_type, isa));
        // For few rows, panels may have a format of their own.
        all.into_iter().chain([Gemm::of(ComputeType::Bf16, isa, 1)])
    })
}

fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
}

/// Fill of the bytes beyond the columns of the output, which must not change.
const UNTOUCHED: u8 = 0x5a;

#[test]
fn gemms_of_all_shapes_without_out_of_bounds_writes() {
    let mut random = fastrand::Rng::with_seed(1);
    let pools = [pool(1), pool(2), pool(3)];
    for gemm in all() {
        let size = size_of_element(gemm.compute_type().accumulator());
        for shape in SHAPES {
            let (m, n, k) = shape;
            let mut pick = || random.choice(elements(gemm.compute_type())).copied().unwrap();
            let (left, right) = (pick(), pick());
            let lhs = Matrix::random(&mut random, m, k, left);
            let rhs = Matrix::random(&mut random, k, n, right);
            let want = expected(&lhs, &rhs, shape);
            // SAFETY: the matrices have these sizes.
            let packed = unsafe { gemm.pack_rhs(&rhs.operand(), k, n, Some(&pools[1])) }.unwrap();
            for (threads, pool) in pools.iter().enumerate() {
                for rhs in [Rhs::Packed(&packed), Rhs::View(packed.view()), Rhs::Strided(rhs.operand())] {
                    let stride = n + 3;
                    let mut out = vec![UNTOUCHED; (m * stride + 1) * size];
                    // SAFETY: the matrices and the result have these sizes.
                    unsafe {
                        let shape = Shape { m, n, k };
                        gemm.multiply(pool, shape, &lhs.operand(), rhs, Some(out.as_mut_ptr()), stride, None)
                    }
                    .unwrap();
                    for (at, out) in out.chunks(size).enumerate() {
                        let (row, column) = (at / stride, at % stride);
                        if row < m && column < n {
                            let got = read(out, gemm.compute_type().accumulator());
                            let what = (gemm.compute_type(), shape, threads + 1, row, column);
                            assert_eq!(got, want[row * n + column], "{what:?}");
                        } else {
                            assert!(out.iter().all(|&byte| byte == UNTOUCHED), "{shape:?} wrote beyond");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sinks_receive_every_element_once() {
    let mut random = fastrand::Rng::with_seed(2);
    for gemm in all() {
        let compute_type = gemm.compute_type();
        let (sum, size) = (compute_type.accumulator(), size_of_element(compute_type.accumulator()));
        for shape in [(70, 130, 20), (1, 5, 3), (300, 64, 700), (9, 9, 0), (900, 70, 6)] {
            let (m, n, k) = shape;
            let lhs = Matrix::random(&mut random, m, k, elements(compute_type)[0]);
            let rhs = Matrix::random(&mut random, k, n, elements(compute_type)[0]);
            let want = expected(&lhs, &rhs, shape);
            for in_place in [false, true] {
                let seen = Mutex::new(vec![Vec::new(); m * n]);
                let sink = |block: &OutputBlock| {
                    let mut seen = seen.lock().unwrap();
                    for (at, row) in block.rows.clone().enumerate() {
                        for (beside, column) in block.columns.clone().enumerate() {
                            // SAFETY: the block has this element.
                            let bytes = unsafe {
                                let data = block.data.add((at * block.stride + beside) * size);
                                std::slice::from_raw_parts(data, size)
                            };
                            seen[row * n + column].push(read(bytes, sum));
                        }
                    }
                };
                let mut out = vec![0u8; m * n * size];
                let out = in_place.then_some(out.as_mut_ptr());
                // SAFETY: the matrices and the result have these sizes.
                unsafe {
                    let rhs = Rhs::Strided(rhs.operand());
                    gemm.multiply(&pool(2), Shape { m, n, k }, &lhs.operand(), rhs, out, n, Some(&sink))
                        .unwrap();
                }
                for (seen, want) in seen.into_inner().unwrap().iter().zip(&want) {
                    assert_eq!(seen, &[*want]);
                }
            }
        }
    }
}

#[test]
fn results_are_bit_identical_for_any_number_of_threads() {
    let mut random = fastrand::Rng::with_seed(3);
    // The left-hand operand of the second case is column-major, so that workers copy stripes of its rows.
    for (m, n, k, transposed) in [(130, 200, 1000, false), (1601, 70, 300, true)] {
        let mut floats = |count| (0..count).map(|_| random.f32() - 0.5).collect::<Vec<_>>();
        let (lhs, rhs) = (floats(m * k), floats(k * n));
        let operand = |data: &[f32], row_stride, column_stride| Operand {
            data: data.as_ptr().cast(),
            element: ElementType::F32,
            row_stride,
            column_stride,
        };
        for compute_type in [ComputeType::F32, ComputeType::Bf16] {
            let gemm = Gemm::new(compute_type);
            let results = [1, 2, 3].map(|threads| {
                let mut out = vec![0f32; m * n];
                // SAFETY: the matrices and the result have these sizes.
                unsafe {
                    let lhs = if transposed { operand(&lhs, 1, m) } else { operand(&lhs, k, 1) };
                    let (rhs, out) = (Rhs::Strided(operand(&rhs, n, 1)), Some(out.as_mut_ptr().cast()));
                    gemm.multiply(&pool(threads), Shape { m, n, k }, &lhs, rhs, out, n, None).unwrap();
                }
                out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            });
            assert!(results.iter().all(|result| *result == results[0]), "{compute_type:?}, {m} rows");
        }
    }
}

#[test]
fn batched_and_single_threaded_gemms() {
    let mut random = fastrand::Rng::with_seed(4);
    for gemm in all() {
        let compute_type = gemm.compute_type();
        let (element, size) = (elements(compute_type)[0], size_of_element(compute_type.accumulator()));
        let mut scratch = Scratch::default();
        for (batch, shape) in
            [(3, (5, 7, 9)), (4, (70, 99, 21)), (12, (20, 33, 17)), (9, (4, 50, 0)), (0, (1, 1, 1))]
        {
            let (m, n, k) = shape;
            let lhs: Vec<_> = (0..batch).map(|_| Matrix::random(&mut random, m, k, element)).collect();
            let rhs: Vec<_> = (0..batch).map(|_| Matrix::random(&mut random, k, n, element)).collect();
            // SAFETY: the matrices have these sizes.
            let packed: Vec<_> =
                rhs.iter().map(|rhs| unsafe { gemm.pack_rhs(&rhs.operand(), k, n, None).unwrap() }).collect();
            let mut out = vec![0u8; batch * m * n * size];
            // Packed now or before, into the result or for the sink alone: the same bits.
            for (before, alone) in [(false, false), (true, false), (false, true), (true, true)] {
                let seen = Mutex::new((vec![0; batch], vec![0u8; batch * m * n * size]));
                let address = out.as_mut_ptr() as usize;
                // SAFETY: the matrices, the results and the blocks have these sizes.
                unsafe {
                    let item = |at: usize| BatchItem {
                        lhs: lhs[at].operand(),
                        rhs: match before {
                            true => Rhs::Packed(&packed[at]),
                            false => Rhs::Strided(rhs[at].operand()),
                        },
                        out: (!alone).then(|| (address as *mut u8).add(at * m * n * size)),
                    };
                    let sink = |at: usize, block: &OutputBlock| {
                        let (counts, given) = &mut *seen.lock().unwrap();
                        counts[at] += block.rows.len() * block.columns.len();
                        for (row, from) in block.rows.clone().zip(0..) {
                            let bytes = block.columns.len() * size;
                            let from = block.data.add(from * block.stride * size);
                            let from = std::slice::from_raw_parts(from, bytes);
                            let to = ((at * m + row) * n + block.columns.start) * size;
                            given[to..to + bytes].copy_from_slice(from);
                        }
                    };
                    gemm.batched(&pool(2), Shape { m, n, k }, batch, &item, n, Some(&sink)).unwrap();
                }
                let (counts, given) = seen.into_inner().unwrap();
                assert_eq!(counts, vec![m * n; batch]);
                assert_eq!(given, out, "{compute_type:?} {shape:?} {before} {alone}");
            }
            for at in 0..batch {
                let want = expected(&lhs[at], &rhs[at], shape);
                let part = &mut out[at * m * n * size..][..m * n * size];
                let values = |part: &[u8]| {
                    part.chunks(size).map(|out| read(out, compute_type.accumulator())).collect::<Vec<_>>()
                };
                assert_eq!(values(part), want, "{compute_type:?} {shape:?} product {at}");
                // SAFETY: as above.
                unsafe {
                    let packed = gemm.pack_rhs(&rhs[at].operand(), k, n, None).unwrap();
                    let lhs = lhs[at].operand();
                    gemm.multiply_single_threaded(
                        &mut scratch,
                        m,
                        k,
                        &lhs,
                        packed.view(),
                        part.as_mut_ptr(),
                        n,
                        true,
                    )
                    .unwrap();
                }
                let twice: Vec<f64> = want.iter().map(|value| 2.0 * value).collect();
                assert_eq!(values(part), twice, "{compute_type:?} {shape:?} block {at}");
            }
        }
    }
}

/// Row-major bf16 operands with a depth of whole AMX steps: read in place except for the remaining rows, or copied
/// where the row stride is a multiple of a page.
#[test]
fn bf16_rows_are_read_in_place() {
    let mut random = fastrand::Rng::with_seed(5);
    let gemm = Gemm::new(ComputeType::Bf16);
    let mut scratch = Scratch::default();
    for (m, n, k, apart) in [(67, 80, 64, 72), (300, 33, 800, 800), (64, 70, 96, 2048), (5, 16, 32, 32)] {
        let mut lhs = Matrix::random(&mut random, m, k, ElementType::BF16);
        let mut bytes = vec![0; m * apart * 2];
        for (at, &value) in lhs.values.iter().enumerate() {
            let place = (at / k * apart + at % k) * 2;
            write(&mut bytes[place..place + 2], ElementType::BF16, value);
        }
        (lhs.bytes, lhs.strides) = (bytes, (apart, 1));
        let rhs = Matrix::random(&mut random, k, n, ElementType::BF16);
        let want = expected(&lhs, &rhs, (m, n, k));
        let mut out = vec![0f32; m * n];
        // SAFETY: the matrices and the results have these sizes.
        unsafe {
            let right = Rhs::Strided(rhs.operand());
            let to = Some(out.as_mut_ptr().cast());
            gemm.multiply(&pool(2), Shape { m, n, k }, &lhs.operand(), right, to, n, None).unwrap();
            assert!(out.iter().zip(&want).all(|(got, want)| f64::from(*got) == *want), "{m}x{n}x{k}");
            let packed = gemm.pack_rhs(&rhs.operand(), k, n, None).unwrap();
            let to = out.as_mut_ptr().cast();
            gemm.multiply_single_threaded(&mut scratch, m, k, &lhs.operand(), packed.view(), to, n, true)
                .unwrap();
        }
        assert!(out.iter().zip(&want).all(|(got, want)| f64::from(*got) == 2.0 * want), "{m}x{n}x{k} block");
    }
}

#[test]
fn large_outputs_with_nontemporal_stores() {
    let (m, n, k) = (2065, 2072, 33);
    let mut random = fastrand::Rng::with_seed(8);
    let mut lhs = Matrix::random(&mut random, m, k, ElementType::F32);
    while lhs.strides.1 != 1 {
        lhs = Matrix::random(&mut random, m, k, ElementType::F32);
    }
    let rhs = Matrix::random(&mut random, k, n, ElementType::BF16);
    let want = expected(&lhs, &rhs, (m, n, k));
    let (shape, right) = (Shape { m, n, k }, Rhs::Strided(rhs.operand()));
    for (gemm, stride) in [
        (ComputeType::Bf16, n.next_multiple_of(32)),
        (ComputeType::F32, n.next_multiple_of(16)),
        (ComputeType::F32, n),
    ]
    .map(|(compute_type, stride)| (Gemm::new(compute_type), stride))
    {
        let memory = AlignedBuffer::new(m * stride * size_of::<f32>()).unwrap();
        // SAFETY: the matrices and the result have these sizes.
        unsafe {
            gemm.multiply(&pool(2), shape, &lhs.operand(), right, Some(memory.as_ptr()), stride, None)
                .unwrap();
            let sums = std::slice::from_raw_parts(memory.as_ptr().cast::<f32>(), m * stride);
            for (got, want) in sums.chunks(stride).zip(want.chunks(n)) {
                assert!(got.iter().zip(want).all(|(got, want)| f64::from(*got) == *want));
            }
            if gemm.writes_bf16() {
                gemm.multiply_to_bf16(&pool(2), shape, &lhs.operand(), right, memory.as_ptr(), stride)
                    .unwrap();
                let rounded = std::slice::from_raw_parts(memory.as_ptr().cast::<bf16>(), m * stride);
                for (got, want) in rounded.chunks(stride).zip(want.chunks(n)) {
                    assert!(got.iter().zip(want).all(|(got, want)| *got == bf16::from_f32(*want as f32)));
                }
            }
        }
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let gemm = Gemm::new(ComputeType::F32);
    let values = [0f64; 16];
    let wrong =
        Operand { data: values.as_ptr().cast(), element: ElementType::F64, row_stride: 4, column_stride: 1 };
    let right = Operand { element: ElementType::F32, ..wrong };
    let mut out = [0f32; 16];
    // SAFETY: the matrices and the result have these sizes.
    unsafe {
        let refused = gemm.pack_rhs(&wrong, 4, 4, None).unwrap_err();
        assert!(refused.to_string().contains("f64"), "{refused}");
        let packed = gemm.pack_rhs(&right, 4, 4, None).unwrap();
        let mut product = |shape, lhs, packed: &PackedRhs| {
            let out = Some(out.as_mut_ptr().cast());
            gemm.multiply(&pool(1), shape, lhs, Rhs::Packed(packed), out, 4, None)
        };
        let shape = Shape { m: 4, n: 4, k: 4 };
        assert!(matches!(product(shape, &wrong, &packed), Err(GemmError::Element { .. })));
        assert!(matches!(product(Shape { k: 3, ..shape }, &right, &packed), Err(GemmError::Packed { .. })));
        let other = Gemm::new(ComputeType::F64).pack_rhs(&wrong, 4, 4, None).unwrap();
        assert!(matches!(product(shape, &right, &other), Err(GemmError::Packed { .. })));
        assert!(gemm.packed_len(usize::MAX / 8, 16).is_err());
    }
}

#[test]
fn few_rows_by_an_operand_in_memory_without_out_of_bounds_writes() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut multiplied = 0;
    for gemm in all() {
        for (m, n, k) in
            [(1, 128, 64), (3, 64, 129), (3, 65, 64), (8, 33, 47), (7, 15, 3), (2, 1, 1), (5, 80, 0)]
        {
            for _ in 0..8 {
                let mut pick = || random.choice(elements(gemm.compute_type())).copied().unwrap();
                let (left, right) = (pick(), pick());
                let lhs = Matrix::random(&mut random, m, k, left);
                let rhs = Matrix::random(&mut random, k, n, right);
                let Some(product) = gemm.in_place(m, &rhs.operand()) else { continue };
                multiplied += 1;
                let want = expected(&lhs, &rhs, (m, n, k));
                let (stride, mut rows) = (n + 3, Vec::new());
                let mut out = vec![f32::MAX; m * stride + 1];
                let shape = Shape { m, n, k };
                // SAFETY: the matrices and the result have these sizes.
                unsafe {
                    let (lhs, rhs) = (lhs.operand(), rhs.operand());
                    product.multiply(&mut rows, shape, &lhs, &rhs, out.as_mut_ptr(), stride);
                }
                for (at, &got) in out.iter().enumerate() {
                    let (row, column) = (at / stride, at % stride);
                    let right = if row < m && column < n { want[row * n + column] as f32 } else { f32::MAX };
                    assert_eq!(got, right, "{:?} {shape:?} {row} {column}", gemm.compute_type());
                }
            }
        }
    }
    assert!(multiplied > 50, "{multiplied}");
    let many = Matrix::random(&mut random, 4, 4, ElementType::F32);
    assert!(Gemm::new(ComputeType::F32).in_place(9, &many.operand()).is_none());
    assert!(Gemm::new(ComputeType::F64).in_place(1, &many.operand()).is_none());
}
