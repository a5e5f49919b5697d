//! Times two programs over 4096 x 1024 numbers: a chain of element-wise steps, and layer norm with softmax.
//!
//! `cargo run --release -p warpforge-kernels --example program_speed -- [THREADS]`

#![allow(unsafe_code)] // Programs take their buffers as addresses.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use warpforge_kernels::fold::Fold;
use warpforge_kernels::pool::Pool;
use warpforge_kernels::program::{
    Access, BinaryOp, Domain, Input, Output, Program, Register, Sink, Source, Step, UnaryOp,
};
use warpforge_tensor::{ElementType, Scalar};

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

/// Steps under construction.
struct Steps(Vec<Step>);

impl Steps {
    fn push(&mut self, step: Step) -> Register {
        self.0.push(step);
        Register(self.0.len() - 1)
    }

    fn constant(&mut self, value: f64) -> Register {
        self.push(Step::Constant(ElementType::F32, Scalar::Float(value)))
    }

    fn binary(&mut self, op: BinaryOp, a: Register, b: Register) -> Register {
        self.push(Step::Binary(op, a, b))
    }

    fn unary(&mut self, op: UnaryOp, a: Register) -> Register {
        self.push(Step::Unary(op, a))
    }

    fn reduce(&mut self, fold: Fold, a: Register) -> Register {
        self.push(Step::Reduce(fold, a))
    }
}

/// `tanh(relu(x) * y + 0.5) * sigmoid(x)`.
fn chain() -> Program {
    let mut steps = Steps(Vec::new());
    let (x, y) = (steps.push(Step::Load(0)), steps.push(Step::Load(1)));
    let zero = steps.constant(0.0);
    let relu = steps.binary(BinaryOp::Maximum, x, zero);
    let product = steps.binary(BinaryOp::Multiply, relu, y);
    let half = steps.constant(0.5);
    let sum = steps.binary(BinaryOp::Add, product, half);
    let tanh = steps.unary(UnaryOp::Tanh, sum);
    let sigmoid = steps.unary(UnaryOp::Logistic, x);
    let result = steps.binary(BinaryOp::Multiply, tanh, sigmoid);
    program(&[(COLUMNS, 1), (COLUMNS, 1)], &steps.0, result)
}

/// Layer norm with scale and offset, then softmax, of each row.
fn norms() -> Program {
    let mut steps = Steps(Vec::new());
    let (x, scale, offset) =
        (steps.push(Step::Load(0)), steps.push(Step::Load(1)), steps.push(Step::Load(2)));
    let share = steps.constant(1.0 / COLUMNS as f64);
    let sum = steps.reduce(Fold::Sum, x);
    let mean = steps.binary(BinaryOp::Multiply, sum, share);
    let centred = steps.binary(BinaryOp::Subtract, x, mean);
    let square = steps.binary(BinaryOp::Multiply, centred, centred);
    let squares = steps.reduce(Fold::Sum, square);
    let variance = steps.binary(BinaryOp::Multiply, squares, share);
    let epsilon = steps.constant(1e-5);
    let variance = steps.binary(BinaryOp::Add, variance, epsilon);
    let deviation = steps.unary(UnaryOp::Rsqrt, variance);
    let normed = steps.binary(BinaryOp::Multiply, centred, deviation);
    let normed = steps.binary(BinaryOp::Multiply, normed, scale);
    let normed = steps.binary(BinaryOp::Add, normed, offset);
    let largest = steps.reduce(Fold::Maximum, normed);
    let below = steps.binary(BinaryOp::Subtract, normed, largest);
    let powers = steps.unary(UnaryOp::Exp, below);
    let total = steps.reduce(Fold::Sum, powers);
    let result = steps.binary(BinaryOp::Divide, powers, total);
    program(&[(COLUMNS, 1), (0, 1), (0, 1)], &steps.0, result)
}

/// A copy, for comparison.
fn copy() -> Program {
    program(&[(COLUMNS, 1)], &[Step::Load(0)], Register(0))
}

fn error_function() -> Program {
    program(&[(COLUMNS, 1)], &[Step::Load(0), Step::Unary(UnaryOp::Erf, Register(0))], Register(1))
}

fn program(strides: &[(usize, isize)], steps: &[Step], result: Register) -> Program {
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
    Program::new(&domain, &inputs, steps, &outputs).expect("the program is well formed")
}

/// A cache line of numbers: buffers of the engine begin with one.
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
    for (name, program, count) in [
        ("chain", chain(), 2),
        ("layer norm + softmax", norms(), 3),
        ("error function", error_function(), 1),
        ("copy", copy(), 1),
    ] {
        let buffers: Vec<*const u8> = inputs[..count].iter().map(|input| input.as_ptr().cast()).collect();
        let mut best = Duration::MAX;
        for _ in 0..60 {
            let start = Instant::now();
            // SAFETY: all buffers have as many numbers as the domain.
            unsafe { program.run(&pool, &buffers, &[result.as_mut_ptr().cast()]) };
            best = best.min(start.elapsed());
        }
        let first = result.first().map_or(0.0, |line| line.0[0]);
        println!("{name}: {:.3} ms on {threads} threads, first result {first}", best.as_secs_f64() * 1e3);
    }
}
