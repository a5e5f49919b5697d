//! How fast convolutions are: the best of many repetitions, for those of a ResNet-50 and one image.
//!
//! `cargo run --release -p warpforge-kernels --example conv -- [THREADS] [f32|bf16]`

// Kernels take addresses.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpforge_kernels::conv::{Convolution, Dimension, Geometry, Input, Weights};
use warpforge_kernels::gemm::{ComputeType, Gemm};
use warpforge_kernels::pool::Pool;
use warpforge_tensor::ElementType;

/// Input size, channels, outputs, window, stride and how often the network has it.
const LAYERS: [(usize, usize, usize, usize, usize, usize); 23] = [
    (224, 3, 64, 7, 2, 1),
    (56, 64, 64, 1, 1, 1),
    (56, 64, 64, 3, 1, 3),
    (56, 64, 256, 1, 1, 4),
    (56, 256, 64, 1, 1, 2),
    (56, 256, 128, 1, 1, 1),
    (56, 128, 128, 3, 2, 1),
    (56, 256, 512, 1, 2, 1),
    (28, 128, 512, 1, 1, 4),
    (28, 512, 128, 1, 1, 3),
    (28, 128, 128, 3, 1, 3),
    (28, 512, 256, 1, 1, 1),
    (28, 256, 256, 3, 2, 1),
    (28, 512, 1024, 1, 2, 1),
    (14, 256, 1024, 1, 1, 6),
    (14, 1024, 256, 1, 1, 5),
    (14, 256, 256, 3, 1, 5),
    (14, 1024, 512, 1, 1, 1),
    (14, 512, 512, 3, 2, 1),
    (14, 1024, 2048, 1, 2, 1),
    (7, 512, 2048, 1, 1, 3),
    (7, 2048, 512, 1, 1, 2),
    (7, 512, 512, 3, 1, 2),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let compute_type =
        if arguments.next().as_deref() == Some("bf16") { ComputeType::Bf16 } else { ComputeType::F32 };
    let pool = Pool::new(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)).expect("threads");
    let _entered = pool.enter();
    let gemm = Arc::new(Gemm::new(compute_type));
    let (mut operations, mut seconds) = (0.0, 0.0);
    for (size, channels, outputs, window, stride, times) in LAYERS {
        let padding = window as i64 / 2;
        let dimension = Dimension { stride, padding: (padding, padding), ..Dimension::new(size, window) };
        let dimensions = vec![dimension; 2];
        let geometry = Geometry { batch: 1, channels, outputs, groups: 1, dimensions };
        let (flops, best) = measure(&pool, &gemm, geometry, window);
        operations += flops * times as f64;
        seconds += best * times as f64;
        let speed = flops / best / 1e9;
        println!(
            "{size:3}² {channels:4} -> {outputs:4} {window}x{window}/{stride}  {speed:7.1} GFLOP/s {:8.1} us",
            best * 1e6
        );
    }
    println!("all {:.1} GFLOP/s, {:.2} ms", operations / seconds / 1e9, seconds * 1e3);
}

fn measure(pool: &Pool, gemm: &Arc<Gemm>, geometry: Geometry, window: usize) -> (f64, f64) {
    let Geometry { channels, outputs, .. } = geometry;
    let size = geometry.dimensions[0].input;
    let random = |count| (0..count).map(|_| fastrand::f32() - 0.5).collect::<Vec<f32>>();
    let (input, weights) = (random(size * size * channels), random(window * window * channels * outputs));
    let convolution = Convolution::new(Arc::clone(gemm), geometry).expect("sizes");
    let each = (channels * outputs) as isize;
    let weights = Weights {
        data: weights.as_ptr().cast(),
        element: ElementType::F32,
        window_strides: vec![window as isize * each, each],
        input_stride: outputs,
        output_stride: 1,
    };
    // SAFETY: the weights have these sizes.
    let packed = unsafe { convolution.prepare(&weights, Some(pool)) }.expect("memory");
    let mut out = vec![0f32; convolution.rows() * outputs];
    let strides = [size * channels, channels];
    let input = Input {
        data: input.as_ptr().cast(),
        element: ElementType::F32,
        channel_stride: 1,
        batch_stride: 0,
        strides: &strides,
    };
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(100) {
        let start = Instant::now();
        let out = Some(out.as_mut_ptr().cast());
        // SAFETY: the input and the result have these sizes.
        unsafe { convolution.run(pool, &input, &packed, out, outputs, None) }.expect("convolution");
        best = best.min(start.elapsed());
    }
    (2.0 * (convolution.rows() * outputs * channels * window * window) as f64, best.as_secs_f64())
}
