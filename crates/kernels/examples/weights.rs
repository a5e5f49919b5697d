//! The time of GEMMs with weights of few bits, and the rate at which they read them.
//!
//!     cargo run --release -p warpforge-kernels --example weights [threads] [m]

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use half::bf16;
use warpforge_kernels::gemm::{ComputeType, Gemm, GroupedRhs, Operand, PackedRhs, Rhs, Shape, WeightType};
use warpforge_kernels::pool::Pool;
use warpforge_tensor::{ElementType, FloatType};

/// Depth and columns.
const SHAPES: [(usize, usize); 4] = [(768, 3072), (4096, 4096), (4096, 1024), (1024, 1024)];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: usize| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (threads, rows) = (number(2), number(0));
    let pool = Pool::new(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)).expect("threads");
    let _entered = pool.enter();
    println!(
        "{:>6} {:>6} {:>6}  {:<10} {:>10} {:>10} {:>8}",
        "m", "k", "n", "weights", "us", "GFLOP/s", "GB/s"
    );
    for m in if rows > 0 { vec![rows] } else { vec![1, 4, 16, 128, 1024] } {
        for (k, n) in SHAPES {
            measure(&pool, Shape { m, n, k });
        }
    }
}

fn measure(pool: &Pool, shape: Shape) {
    let Shape { m, n, k } = shape;
    let bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| fastrand::u8(..)).collect() };
    let floats: Vec<f32> = (0..m * k).map(|_| fastrand::f32() - 0.5).collect();
    let lhs =
        Operand { data: floats.as_ptr().cast(), element: ElementType::F32, row_stride: k, column_stride: 1 };
    let codes = bytes(n * k);
    let right = |data: &[u8], element: ElementType| Operand {
        data: data.as_ptr(),
        element,
        row_stride: 1,
        column_stride: k,
    };
    // SAFETY: every operand has n · k elements.
    let pack =
        |gemm: &Gemm, data: &[u8], element| unsafe { gemm.pack_rhs(&right(data, element), k, n, Some(pool)) };
    let wide: Vec<u8> = (0..n * k).flat_map(|_| (fastrand::f32() - 0.5).to_ne_bytes()).collect();
    for compute_type in [ComputeType::F32, ComputeType::Bf16] {
        let gemm = Gemm::for_rows(compute_type, m);
        let packed = pack(&gemm, &wide, ElementType::F32).expect("memory");
        time(
            pool,
            if compute_type == ComputeType::F32 { "f32" } else { "bf16" },
            &gemm,
            shape,
            &lhs,
            &packed,
        );
    }
    let gemm = Gemm::for_weights(WeightType::I8);
    time(pool, "int8wo", &gemm, shape, &lhs, &pack(&gemm, &codes, ElementType::I8).expect("memory"));
    let gemm = Gemm::for_weights(WeightType::F8E4M3Fn);
    let f8 = ElementType::Float(FloatType::F8E4M3Fn);
    time(pool, "float8wo", &gemm, shape, &lhs, &pack(&gemm, &codes, f8).expect("memory"));
    let vector = vec![bf16::from_f32(0.1); n * k / 128];
    let gemm = Gemm::for_weights(WeightType::Int4 { group: 128 });
    let grouped = GroupedRhs { codes: &codes, scales: &vector, offsets: &vector };
    time(pool, "int4wo-128", &gemm, shape, &lhs, &gemm.pack_groups(grouped, k, n).expect("memory"));
    let gemm = Gemm::for_rows(ComputeType::I8, m);
    let narrow = bytes(m * k);
    let lhs = Operand { data: narrow.as_ptr(), element: ElementType::I8, row_stride: k, column_stride: 1 };
    time(pool, "i8 x i8", &gemm, shape, &lhs, &pack(&gemm, &codes, ElementType::I8).expect("memory"));
}

fn time(pool: &Pool, name: &str, gemm: &Gemm, shape: Shape, lhs: &Operand, packed: &PackedRhs) {
    let Shape { m, n, k } = shape;
    let mut out = vec![0f32; m * n];
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(150) {
        let start = Instant::now();
        let to = Some(out.as_mut_ptr().cast());
        // SAFETY: the operands and the result have these sizes.
        unsafe { gemm.multiply(pool, shape, lhs, Rhs::Packed(packed), to, n, None) }.expect("product");
        best = best.min(start.elapsed());
    }
    let seconds = best.as_secs_f64();
    let (flops, rate) = (2.0 * (m * n * k) as f64 / seconds / 1e9, packed.bytes() as f64 / seconds / 1e9);
    println!("{m:6} {k:6} {n:6}  {name:<10} {:10.1} {flops:10.1} {rate:8.2}", seconds * 1e6);
}
