//! Times functions of values that stay in the L1 cache, as the loops of fused loops compute them.
//!
//! `cargo run --release -p warpforge-kernels --example math_functions -- [NAME...]`

#![allow(unsafe_code)] // Programs take their buffers as addresses.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use warpforge_kernels::fused_loop::{
    Access, Domain, Function, FusedLoop, Input, Inst, Output, Register, Sink, Source,
};
use warpforge_kernels::pool::Pool;
use warpforge_tensor::{ElementType, Scalar};

/// Numbers that a fused loop is run on.
const COUNT: usize = 4096;

/// Runs that are timed together.
const RUNS: u32 = 200;

fn float(value: f64) -> Inst {
    Inst::Constant(ElementType::F32, Scalar::Float(value))
}

fn unary(op: Function) -> Vec<Inst> {
    vec![Inst::Load(0), Inst::Unary(op, Register(0))]
}

/// `x / 2 * (1 + erf(x / √2))`.
fn gelu() -> Vec<Inst> {
    vec![
        Inst::Load(0),
        float(0.5),
        Inst::Binary(Function::Multiply, Register(0), Register(1)),
        float(std::f64::consts::FRAC_1_SQRT_2),
        Inst::Binary(Function::Multiply, Register(0), Register(3)),
        Inst::Unary(Function::Erf, Register(4)),
        float(1.0),
        Inst::Binary(Function::Add, Register(5), Register(6)),
        Inst::Binary(Function::Multiply, Register(2), Register(7)),
    ]
}

/// The last step's value in bf16.
fn narrowed(mut insts: Vec<Inst>) -> Vec<Inst> {
    insts.push(Inst::Convert(Register(insts.len() - 1), ElementType::BF16));
    insts
}

/// `x / (1 + e^-x)`.
fn silu() -> Vec<Inst> {
    vec![
        Inst::Load(0),
        Inst::Unary(Function::Logistic, Register(0)),
        Inst::Binary(Function::Multiply, Register(0), Register(1)),
    ]
}

fn fused_loop(insts: &[Inst]) -> FusedLoop {
    let access = || Access { offset: 0, rows: vec![COUNT as isize], columns: vec![1] };
    let inputs = [Input { element: ElementType::F32, source: Source::Memory(access()) }];
    let outputs = [Output { value: Register(insts.len() - 1), sink: Sink::Memory(access()) }];
    let domain = Domain { rows: vec![1], columns: vec![COUNT] };
    FusedLoop::new(&domain, &inputs, insts, &outputs).expect("a valid fused loop")
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let pool = Pool::new(NonZeroUsize::MIN).expect("a thread");
    let _entered = pool.enter();
    let mut random = fastrand::Rng::with_seed(1);
    let input: Vec<f32> = (0..COUNT).map(|_| random.f32() * 8.0 - 4.0).collect();
    let mut result = vec![0f32; COUNT];
    let functions = [Function::Exponential, Function::Logistic, Function::Tanh, Function::Erf];
    let mut cases: Vec<(String, Vec<Inst>)> =
        functions.iter().map(|op| (format!("{op:?}").to_lowercase(), unary(*op))).collect();
    cases.extend([("gelu".to_owned(), gelu()), ("silu".to_owned(), silu())]);
    cases.push(("copy".to_owned(), vec![Inst::Load(0)]));
    let narrow = ["gelu", "copy"].map(|name| {
        let insts = cases.iter().find(|case| case.0 == name).map(|case| case.1.clone());
        (format!("{name} to bf16"), narrowed(insts.unwrap_or_default()))
    });
    cases.extend(narrow);
    for (name, insts) in cases {
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let fused_loop = fused_loop(&insts);
        let mut best = Duration::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            for _ in 0..RUNS {
                // SAFETY: both buffers have as many values as the domain.
                unsafe { fused_loop.run(&pool, &[input.as_ptr().cast()], &[result.as_mut_ptr().cast()]) };
            }
            best = best.min(start.elapsed());
        }
        let each = best.as_secs_f64() / f64::from(RUNS) / (COUNT / 16) as f64;
        println!("{name:12} {:6.2} ns for 16 numbers", each * 1e9);
    }
}
