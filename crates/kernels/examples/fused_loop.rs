//! Times two fused loops over 4096 x 1024 values: a chain of element-wise steps, and layer norm with softmax.
//!
//! `cargo run --release -p warpforge-kernels --example fused_loop -- [THREADS]`

#![allow(unsafe_code)] // Programs take their buffers as addresses.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use warpforge_kernels::fused_loop::{
    Access, Domain, Function, FusedLoop, Input, Inst, Output, Register, Sink, Source,
};
use warpforge_kernels::pool::Pool;
use warpforge_kernels::reduce::ReduceOp;
use warpforge_tensor::{ElementType, Scalar};

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

/// Steps under construction.
struct InstBuilder(Vec<Inst>);

impl InstBuilder {
    fn push(&mut self, inst: Inst) -> Register {
        self.0.push(inst);
        Register(self.0.len() - 1)
    }

    fn constant(&mut self, value: f64) -> Register {
        self.push(Inst::Constant(ElementType::F32, Scalar::Float(value)))
    }

    fn binary(&mut self, op: Function, a: Register, b: Register) -> Register {
        self.push(Inst::Binary(op, a, b))
    }

    fn unary(&mut self, op: Function, a: Register) -> Register {
        self.push(Inst::Unary(op, a))
    }

    fn reduce(&mut self, reduction: ReduceOp, a: Register) -> Register {
        self.push(Inst::Reduce(reduction, a))
    }
}

/// `tanh(relu(x) * y + 0.5) * sigmoid(x)`.
fn chain() -> FusedLoop {
    let mut insts = InstBuilder(Vec::new());
    let (x, y) = (insts.push(Inst::Load(0)), insts.push(Inst::Load(1)));
    let zero = insts.constant(0.0);
    let relu = insts.binary(Function::Maximum, x, zero);
    let product = insts.binary(Function::Multiply, relu, y);
    let half = insts.constant(0.5);
    let sum = insts.binary(Function::Add, product, half);
    let tanh = insts.unary(Function::Tanh, sum);
    let sigmoid = insts.unary(Function::Logistic, x);
    let result = insts.binary(Function::Multiply, tanh, sigmoid);
    fused_loop(&[(COLUMNS, 1), (COLUMNS, 1)], &insts.0, result)
}

/// Layer norm with scale and offset, then softmax, of each row.
fn norms() -> FusedLoop {
    let mut insts = InstBuilder(Vec::new());
    let (x, scale, offset) =
        (insts.push(Inst::Load(0)), insts.push(Inst::Load(1)), insts.push(Inst::Load(2)));
    let share = insts.constant(1.0 / COLUMNS as f64);
    let sum = insts.reduce(ReduceOp::Sum, x);
    let mean = insts.binary(Function::Multiply, sum, share);
    let centred = insts.binary(Function::Subtract, x, mean);
    let square = insts.binary(Function::Multiply, centred, centred);
    let squares = insts.reduce(ReduceOp::Sum, square);
    let variance = insts.binary(Function::Multiply, squares, share);
    let epsilon = insts.constant(1e-5);
    let variance = insts.binary(Function::Add, variance, epsilon);
    let deviation = insts.unary(Function::Rsqrt, variance);
    let normed = insts.binary(Function::Multiply, centred, deviation);
    let normed = insts.binary(Function::Multiply, normed, scale);
    let normed = insts.binary(Function::Add, normed, offset);
    let largest = insts.reduce(ReduceOp::Maximum, normed);
    let below = insts.binary(Function::Subtract, normed, largest);
    let powers = insts.unary(Function::Exponential, below);
    let total = insts.reduce(ReduceOp::Sum, powers);
    let result = insts.binary(Function::Divide, powers, total);
    fused_loop(&[(COLUMNS, 1), (0, 1), (0, 1)], &insts.0, result)
}

/// A copy, for comparison.
fn copy() -> FusedLoop {
    fused_loop(&[(COLUMNS, 1)], &[Inst::Load(0)], Register(0))
}

fn error_function() -> FusedLoop {
    fused_loop(&[(COLUMNS, 1)], &[Inst::Load(0), Inst::Unary(Function::Erf, Register(0))], Register(1))
}

fn fused_loop(strides: &[(usize, isize)], insts: &[Inst], result: Register) -> FusedLoop {
    let access = |row: usize, column| Access { offset: 0, rows: vec![row as isize], columns: vec![column] };
    let inputs: Vec<Input> = strides
        .iter()
        .map(|&(row, column)| Input {
            element: ElementType::F32,
            source: Source::Memory(access(row, column)),
        })
        .collect();
    let outputs = [Output { value: result, sink: Sink::Memory(access(COLUMNS, 1)) }];
    let domain = Domain { rows: vec![ROWS], columns: vec![COLUMNS] };
    FusedLoop::new(&domain, &inputs, insts, &outputs).expect("a valid fused loop")
}

/// A cache line of values: buffers of the engine begin with one.
#[repr(align(64))]
struct Line([f32; 16]);

fn aligned(mut number: impl FnMut() -> f32) -> Vec<Line> {
    (0..ROWS * COLUMNS / 16).map(|_| Line(std::array::from_fn(|_| number()))).collect()
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(2);
    let pool = Pool::new(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)).expect("threads");
    let _entered = pool.enter();
    let numbers = |seed: u64| -> Vec<Line> {
        let mut random = fastrand::Rng::with_seed(seed);
        aligned(|| random.f32() * 4.0 - 2.0)
    };
    let inputs = [numbers(1), numbers(2), numbers(3)];
    let mut result = aligned(|| 0.0);
    for (name, fused_loop, count) in [
        ("chain", chain(), 2),
        ("layer norm + softmax", norms(), 3),
        ("error function", error_function(), 1),
        ("copy", copy(), 1),
    ] {
        let buffers: Vec<*const u8> = inputs[..count].iter().map(|input| input.as_ptr().cast()).collect();
        let mut best = Duration::MAX;
        for _ in 0..60 {
            let start = Instant::now();
            // SAFETY: all buffers have as many values as the domain.
            unsafe { fused_loop.run(&pool, &buffers, &[result.as_mut_ptr().cast()]) };
            best = best.min(start.elapsed());
        }
        let first = result.first().map_or(0.0, |line| line.0[0]);
        println!("{name}: {:.3} ms on {threads} threads, first result {first}", best.as_secs_f64() * 1e3);
    }
}
