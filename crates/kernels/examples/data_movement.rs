//! How fast elements are moved: bytes read and written in a second, the best of many runs.
//!
//!     cargo run --release -p warpforge-kernels --example data_movement -- [threads]

// Kernels take pointers.
#![allow(unsafe_code)]

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use warpforge_kernels::data_movement::{Gather, GatherSpec, Indices, StridedCopy};
use warpforge_kernels::pool::Pool;
use warpforge_kernels::reduce::ReduceOp;
use warpforge_kernels::window::{Depthwise, ReduceWindow, WindowAxis};
use warpforge_tensor::ElementType;

/// How long each case is repeated.
const CASE_DURATION: Duration = Duration::from_millis(300);

fn main() -> Result<(), Box<dyn Error>> {
    let threads =
        std::env::args().nth(1).map_or(Ok(2), |text| text.parse::<NonZeroUsize>().map(NonZeroUsize::get))?;
    let pool = Pool::new(NonZeroUsize::new(threads).ok_or("no threads")?)?;
    let _entered = pool.enter();
    println!("{threads} threads");
    copies(&pool)?;
    rows(&pool)?;
    pooling(&pool)?;
    depthwise(&pool)
}

/// Prints the best time of a kernel that touches that many bytes.
fn report(name: &str, bytes: usize, mut run: impl FnMut()) {
    let (begin, mut best) = (Instant::now(), Duration::MAX);
    while begin.elapsed() < CASE_DURATION {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed());
    }
    let seconds = best.as_secs_f64();
    println!("{name:<44} {:>9.1} us {:>8.2} GB/s", seconds * 1e6, bytes as f64 / seconds / 1e9);
}

/// A buffer of values whose start is that of a cache line.
struct Buffer {
    data: Vec<f32>,
    start: usize,
}

impl Buffer {
    fn new(length: usize) -> Self {
        let data: Vec<f32> = (0..length + 16).map(|at| (at % 251) as f32).collect();
        let start = data.as_ptr().align_offset(64);
        Self { data, start }
    }

    fn get(&self) -> *const u8 {
        self.data[self.start..].as_ptr().cast()
    }

    fn get_mut(&mut self) -> *mut u8 {
        self.data[self.start..].as_mut_ptr().cast()
    }
}

fn copies(pool: &Pool) -> Result<(), Box<dyn Error>> {
    for (name, dims, permutation) in [
        ("copy 4096x1024", vec![4096, 1024], vec![0, 1]),
        ("transpose 4096x1024", vec![4096, 1024], vec![1, 0]),
        ("NCHW to NHWC 1x64x112x112", vec![1, 64, 112, 112], vec![0, 2, 3, 1]),
        ("NHWC to NCHW 1x112x112x64", vec![1, 112, 112, 64], vec![0, 3, 1, 2]),
        ("NCHW to NHWC 1x3x224x224", vec![1, 3, 224, 224], vec![0, 2, 3, 1]),
        ("heads 1x128x12x64 to 1x12x128x64", vec![1, 128, 12, 64], vec![0, 2, 1, 3]),
        ("heads 1x128x12x64 to 1x12x64x128", vec![1, 128, 12, 64], vec![0, 2, 3, 1]),
    ] {
        let copy = StridedCopy::transpose(size_of::<f32>(), &dims, &permutation)?;
        let length: usize = dims.iter().product();
        let (source, mut target) = (Buffer::new(length), Buffer::new(length));
        // SAFETY: both buffers have all elements.
        report(name, 2 * copy.bytes(), || unsafe { copy.run(pool, source.get(), target.get_mut()) });
    }
    Ok(())
}

/// Rows of an embedding.
fn rows(pool: &Pool) -> Result<(), Box<dyn Error>> {
    let (table, count) = ([30_522, 384], 1024);
    let indices = Indices {
        element: ElementType::I64,
        dims: vec![count],
        vector_dim: 1,
        map: vec![0],
        batching: Vec::new(),
    };
    let gather = Gather::new(&GatherSpec {
        element_size: size_of::<f32>(),
        operand: table.to_vec(),
        indices,
        window: vec![1, table[1]],
        collapsed: vec![0],
        offset_dims: vec![1],
    })?;
    let positions: Vec<u64> = (0..count as u64).map(|at| at * 7919 % table[0] as u64).collect();
    let (source, mut target) = (Buffer::new(table[0] * table[1]), Buffer::new(count * table[1]));
    report("embedding of 1024 rows of 384", 2 * gather.bytes(), || {
        // SAFETY: all buffers have all elements.
        unsafe { gather.run(pool, source.get(), positions.as_ptr().cast(), target.get_mut()) }
    });
    Ok(())
}

fn pooling(pool: &Pool) -> Result<(), Box<dyn Error>> {
    let (all, axis) =
        (WindowAxis::default(), WindowAxis { size: 3, stride: 2, low: 1, high: 1, ..WindowAxis::default() });
    for (dims, axes, name) in [
        ([1, 112, 112, 64], [all, axis, axis, all], "max pool 3x3/2 of 1x112x112x64"),
        ([1, 64, 112, 112], [all, all, axis, axis], "max pool 3x3/2 of 1x64x112x112, channels first"),
    ] {
        let init = f32::NEG_INFINITY.to_ne_bytes();
        let plan = ReduceWindow::new(ElementType::F32, ReduceOp::Maximum, &dims, &axes, &init)?;
        let (length, result) = (dims.iter().product::<usize>(), plan.dims().iter().product::<usize>());
        let (source, mut target) = (Buffer::new(length), Buffer::new(result));
        report(name, 4 * (length + result), || {
            // SAFETY: both buffers have all elements.
            unsafe { plan.run(pool, source.get(), target.get_mut()) }
        });
    }
    Ok(())
}

fn depthwise(pool: &Pool) -> Result<(), Box<dyn Error>> {
    let dims = [1, 56, 56, 128];
    let axis = WindowAxis { size: 3, stride: 1, low: 1, high: 1, ..WindowAxis::default() };
    let plan = Depthwise::new(&dims, &[axis, axis], 1)?;
    let weights = plan.pack(&[0.5; 9 * 128])?;
    let length: usize = dims.iter().product();
    let (source, mut target) = (Buffer::new(length), Buffer::new(length));
    report("depthwise 3x3 of 1x56x56x128", 8 * length, || {
        let target = target.get_mut().cast();
        // SAFETY: both buffers have all elements.
        unsafe { plan.run(pool, source.get().cast(), &weights, Some(target), None) }
    });
    Ok(())
}
