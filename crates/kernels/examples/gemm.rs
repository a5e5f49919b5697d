//! How fast GEMMs are: the best of many repetitions, for the shapes of common models; and those that read many packed operands in turn,
//! which come from memory.
//!
//! `cargo run --release -p warpforge-kernels --example gemm -- [THREADS] [f32|bf16|f64|i8|i8wo|f8wo|int4wo|i8wo-bf16|…] [MxNxK …]`

// Kernels take addresses.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use half::bf16;
use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_kernels::gemm::{ComputeType, Gemm, GroupedRhs, Operand, PackedRhs, Rhs, Shape, WeightType};
use warpforge_kernels::pool::Pool;
use warpforge_tensor::{ElementType, FloatType};

const SHAPES: [&str; 14] = [
    "2048x2048x2048",
    "128x768x768",
    "128x3072x768",
    "128x768x3072",
    "1024x384x384",
    "1024x1536x384",
    "1024x384x1536",
    "197x768x768",
    "128x512x512",
    "128x1408x512",
    "128x512x1408",
    "128x32000x512",
    "1x768x768",
    "1x32000x512",
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let name = arguments.next();
    let (kind, rows) = name.as_deref().and_then(|name| name.split_once('-')).unzip();
    let weights = match kind.or(name.as_deref()) {
        Some("i8wo") => Some(WeightType::I8),
        Some("f8wo") => Some(WeightType::F8E4M3Fn),
        Some("int4wo") => Some(WeightType::Int4 { group: 64 }),
        _ => None,
    };
    let compute_type = match rows.or(name.as_deref()) {
        Some("bf16") => ComputeType::Bf16,
        Some("f64") => ComputeType::F64,
        Some("i8") => ComputeType::I8,
        Some("i32") => ComputeType::I32,
        Some("i64") => ComputeType::I64,
        _ => ComputeType::F32,
    };
    let named: Vec<String> = arguments.collect();
    let shapes: Vec<&str> =
        if named.is_empty() { SHAPES.to_vec() } else { named.iter().map(String::as_str).collect() };
    let pool = Pool::new(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)).expect("threads");
    let _entered = pool.enter();
    match weights {
        Some(weights) => println!("{weights:?}, {threads} threads: packed weights, packed weights in turn"),
        None => println!(
            "{compute_type:?}, {threads} threads: packed operand, both strided; of few rows packed operand, and many in turn"
        ),
    }
    for text in shapes {
        let sizes: Vec<usize> = text.split('x').filter_map(|size| size.parse().ok()).collect();
        let [m, n, k] = sizes[..] else { continue };
        match weights {
            Some(weights) => measure_weights(&pool, weights, compute_type, Shape { m, n, k }),
            None => measure(&pool, compute_type, Shape { m, n, k }),
        }
    }
}

fn measure(pool: &Pool, compute_type: ComputeType, shape: Shape) {
    let Shape { m, n, k } = shape;
    let gemm = Gemm::new(compute_type);
    let (element, bytes) = match compute_type {
        ComputeType::F64 => (ElementType::F64, 8),
        ComputeType::Bf16 => (ElementType::BF16, 2),
        ComputeType::F32 => (ElementType::F32, 4),
        ComputeType::I8 => (ElementType::I8, 1),
        ComputeType::I32 => (ElementType::I32, 4),
        ComputeType::I64 => (ElementType::I64, 8),
    };
    let random = |count: usize| -> AlignedBuffer {
        let value = |_| fastrand::f32() - 0.5;
        let values: Vec<u8> = match compute_type {
            ComputeType::F64 => {
                (0..count).map(value).flat_map(|value| f64::from(value).to_ne_bytes()).collect()
            }
            ComputeType::Bf16 => {
                (0..count).map(value).flat_map(|value| bf16::from_f32(value).to_ne_bytes()).collect()
            }
            ComputeType::I8 => (0..count).map(value).map(|value| (value * 200.0) as i8 as u8).collect(),
            ComputeType::I32 => {
                (0..count).map(value).flat_map(|value| ((value * 200.0) as i32).to_ne_bytes()).collect()
            }
            ComputeType::I64 => {
                (0..count).map(value).flat_map(|value| ((value * 200.0) as i64).to_ne_bytes()).collect()
            }
            ComputeType::F32 => (0..count).map(value).flat_map(f32::to_ne_bytes).collect(),
        };
        let memory = AlignedBuffer::new(values.len()).expect("memory");
        // SAFETY: the memory has as many bytes.
        unsafe { memory.as_ptr().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        memory
    };
    let (lhs, rhs) = (random(m * k), random(k * n));
    let out = AlignedBuffer::new(m * n * bytes.max(4)).expect("memory");
    let operand = |data: &AlignedBuffer, columns| Operand {
        data: data.as_ptr(),
        element,
        row_stride: columns,
        column_stride: 1,
    };
    let (lhs, rhs) = (operand(&lhs, k), operand(&rhs, n));
    // SAFETY: the memory has these sizes.
    let packed = unsafe { gemm.pack_rhs(&rhs, k, n, Some(pool)) }.expect("memory");
    let speeds = [Rhs::Packed(&packed), Rhs::Strided(rhs)].map(|rhs| {
        let mut best = Duration::MAX;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(400) {
            let start = Instant::now();
            let out = out.as_ptr();
            // SAFETY: the memory has these sizes.
            unsafe {
                match gemm.writes_bf16() {
                    true => gemm.multiply_to_bf16(pool, shape, &lhs, rhs, out, n),
                    false => gemm.multiply(pool, shape, &lhs, rhs, Some(out), n, None),
                }
            }
            .expect("product");
            best = best.min(start.elapsed());
        }
        (2.0 * (m * n * k) as f64 / best.as_secs_f64() / 1e9, best.as_secs_f64() * 1e6)
    });
    println!(
        "{m:5} x {n:5} x {k:5}  {:8.1} GFLOP/s {:9.1} us   {:8.1} GFLOP/s {:9.1} us   {}",
        speeds[0].0,
        speeds[0].1,
        speeds[1].0,
        speeds[1].1,
        in_turn(pool, compute_type, shape, &lhs, &rhs)
    );
}

/// Bytes of the packed operands that are read in turn: more than most caches hold.
const IN_TURN_BYTES: usize = 256 << 20;
/// The most rows of a GEMM that waits for its operand.
const FEW_ROWS: usize = 16;

/// GEMMs of few rows by one packed operand and by many in turn: median times, and the bytes of the operands per second.
fn in_turn(pool: &Pool, compute_type: ComputeType, shape: Shape, lhs: &Operand, rhs: &Operand) -> String {
    let Shape { m, n, k } = shape;
    if m > FEW_ROWS {
        return String::new();
    }
    let gemm = Gemm::for_rows(compute_type, m);
    // SAFETY: the memory has these sizes.
    waiting(pool, &gemm, shape, lhs, || unsafe { gemm.pack_rhs(rhs, k, n, Some(pool)) }.expect("memory"))
}

fn waiting(pool: &Pool, gemm: &Gemm, shape: Shape, lhs: &Operand, pack: impl Fn() -> PackedRhs) -> String {
    let out = AlignedBuffer::new(shape.m * shape.n * 4).expect("memory");
    let first = pack();
    let bytes = first.bytes();
    let others = (1..IN_TURN_BYTES / bytes).map(|_| pack());
    let operands: Vec<_> = std::iter::once(first).chain(others).collect();
    let median = |operands: &[PackedRhs], times: usize| {
        let mut times: Vec<f64> = (0..times)
            .flat_map(|_| operands)
            .map(|packed| {
                let start = Instant::now();
                let rhs = Rhs::Packed(packed);
                // SAFETY: the memory has these sizes.
                unsafe { gemm.multiply(pool, shape, lhs, rhs, Some(out.as_ptr()), shape.n, None) }
                    .expect("product");
                start.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [again, turn] = [median(&operands[..1], 1000), median(&operands, 5)]
        .map(|time| format!("{:8.1} us {:6.1} GB/s", time * 1e6, bytes as f64 / time / 1e9));
    format!("{again}  {turn}")
}

/// Rows of f32 or bf16 by weights of few bits.
fn measure_weights(pool: &Pool, weights: WeightType, compute_type: ComputeType, shape: Shape) {
    let Shape { m, n, k } = shape;
    let gemm = Gemm::for_weights(weights, compute_type);
    let rows: Vec<f32> = (0..m * k).map(|_| fastrand::f32() - 0.5).collect();
    let narrow: Vec<bf16> = rows.iter().map(|&value| bf16::from_f32(value)).collect();
    let codes: Vec<u8> = (0..n * k).map(|_| fastrand::u8(..) & 0xf).collect();
    let operand = |data: *const u8, element, row_stride, column_stride| Operand {
        data,
        element,
        row_stride,
        column_stride,
    };
    let lhs = match compute_type {
        ComputeType::Bf16 => operand(narrow.as_ptr().cast(), ElementType::BF16, k, 1),
        _ => operand(rows.as_ptr().cast(), ElementType::F32, k, 1),
    };
    let pack = || match weights {
        WeightType::Int4 { group } => {
            let scales = vec![bf16::ONE; n * k / group];
            let weights = GroupedRhs { codes: &codes, scales: &scales, offsets: &scales };
            gemm.pack_groups(weights, k, n).expect("groups")
        }
        WeightType::I8 | WeightType::F8E4M3Fn => {
            let element = match weights {
                WeightType::I8 => ElementType::I8,
                _ => ElementType::Float(FloatType::F8E4M3Fn),
            };
            let rhs = operand(codes.as_ptr(), element, 1, k);
            // SAFETY: the memory has these sizes.
            unsafe { gemm.pack_rhs(&rhs, k, n, Some(pool)) }.expect("memory")
        }
    };
    println!("{m:5} x {n:5} x {k:5}  {}", waiting(pool, &gemm, shape, &lhs, pack));
}
