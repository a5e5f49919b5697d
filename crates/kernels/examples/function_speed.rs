//! Times functions of numbers that stay in the first-level cache, as the loops of programs compute them.
//!
//! `cargo run --release -p warpforge-kernels --example function_speed -- [NAME...]`

#![allow(unsafe_code)] // Programs take their buffers as addresses.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use warpforge_kernels::pool::Pool;
use warpforge_kernels::program::{
    Access, BinaryOp, Domain, Input, Output, Program, Register, Sink, Source, Step, UnaryOp,
};
use warpforge_tensor::{ElementType, Scalar};

/// Numbers that a program is run on.
const COUNT: usize = 4096;

/// Runs that are timed together.
const RUNS: u32 = 200;

fn float(value: f64) -> Step {
    Step::Constant(ElementType::F32, Scalar::Float(value))
}

fn unary(op: UnaryOp) -> Vec<Step> {
    vec![Step::Load(0), Step::Unary(op, Register(0))]
}

/// `x / 2 * (1 + erf(x / √2))`.
fn gelu() -> Vec<Step> {
    vec![
        Step::Load(0),
        float(0.5),
        Step::Binary(BinaryOp::Multiply, Register(0), Register(1)),
        float(std::f64::consts::FRAC_1_SQRT_2),
        Step::Binary(BinaryOp::Multiply, Register(0), Register(3)),
        Step::Unary(UnaryOp::Erf, Register(4)),
        float(1.0),
        Step::Binary(BinaryOp::Add, Register(5), Register(6)),
        Step::Binary(BinaryOp::Multiply, Register(2), Register(7)),
    ]
}

/// The last step's value in bf16.
fn narrowed(mut steps: Vec<Step>) -> Vec<Step> {
    steps.push(Step::Convert(Register(steps.len() - 1), ElementType::BF16));
    steps
}

/// `x / (1 + e^-x)`.
fn silu() -> Vec<Step> {
    vec![
        Step::Load(0),
        Step::Unary(UnaryOp::Logistic, Register(0)),
        Step::Binary(BinaryOp::Multiply, Register(0), Register(1)),
    ]
}

fn program(steps: &[Step]) -> Program {
    let access = || Access { offset: 0, rows: vec![COUNT as isize], columns: vec![1] };
    let inputs = [Input { element: ElementType::F32, source: Source::Memory(access()) }];
    let outputs = [Output { value: Register(steps.len() - 1), sink: Sink::Memory(access()) }];
    let domain = Domain { rows: vec![1], columns: vec![COUNT] };
    Program::new(&domain, &inputs, steps, &outputs).expect("the program is well formed")
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let pool = Pool::new(NonZeroUsize::MIN).expect("a thread");
    let _entered = pool.enter();
    let mut random = fastrand::Rng::with_seed(1);
    let input: Vec<f32> = (0..COUNT).map(|_| random.f32() * 8.0 - 4.0).collect();
    let mut result = vec![0f32; COUNT];
    let functions = [UnaryOp::Exp, UnaryOp::Logistic, UnaryOp::Tanh, UnaryOp::Erf];
    let mut cases: Vec<(String, Vec<Step>)> =
        functions.iter().map(|op| (format!("{op:?}").to_lowercase(), unary(*op))).collect();
    cases.extend([("gelu".to_owned(), gelu()), ("silu".to_owned(), silu())]);
    cases.push(("copy".to_owned(), vec![Step::Load(0)]));
    let narrow = ["gelu", "copy"].map(|name| {
        let steps = cases.iter().find(|case| case.0 == name).map(|case| case.1.clone());
        (format!("{name} to bf16"), narrowed(steps.unwrap_or_default()))
    });
    cases.extend(narrow);
    for (name, steps) in cases {
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let program = program(&steps);
        let mut best = Duration::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            for _ in 0..RUNS {
                // SAFETY: both buffers have as many numbers as the domain.
                unsafe { program.run(&pool, &[input.as_ptr().cast()], &[result.as_mut_ptr().cast()]) };
            }
            best = best.min(start.elapsed());
        }
        let each = best.as_secs_f64() / f64::from(RUNS) / (COUNT / 16) as f64;
        println!("{name:12} {:6.2} ns for 16 numbers", each * 1e9);
    }
}
