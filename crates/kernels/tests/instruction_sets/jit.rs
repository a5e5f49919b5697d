//! Compiled loops against the interpreter: bit-identical. They need AVX-512.

use std::num::NonZeroUsize;

use warpforge_tensor::{ElementType, Scalar};

use warpforge_kernels::fused_loop::{
    Access, Direction, Domain, Function, FusedLoop, Input, Inst, Order, Output, Register, Scratch, Sink,
    Source,
};
use warpforge_kernels::pool::Pool;
use warpforge_kernels::reduce::ReduceOp;

const UNARY: [Function; 16] = [
    Function::Abs,
    Function::Negate,
    Function::Ceil,
    Function::Floor,
    Function::RoundNearestEven,
    Function::RoundNearestAfz,
    Function::Sqrt,
    Function::Rsqrt,
    Function::Exponential,
    Function::ExponentialMinusOne,
    Function::Log,
    Function::LogPlusOne,
    Function::Logistic,
    Function::Tanh,
    Function::Erf,
    Function::Gelu,
];

const BINARY: [Function; 6] = [
    Function::Add,
    Function::Subtract,
    Function::Multiply,
    Function::Divide,
    Function::Maximum,
    Function::Minimum,
];

const FLOATS: [ElementType; 3] = [ElementType::F32, ElementType::BF16, ElementType::F16];

fn any(random: &mut fastrand::Rng, count: usize) -> Register {
    Register(random.usize(0..count))
}

/// Values of all magnitudes, and special ones.
fn number(random: &mut fastrand::Rng) -> f32 {
    match random.usize(0..40) {
        0 => f32::NAN,
        1 => f32::NEG_INFINITY,
        2 => f32::INFINITY,
        3 => -0.0,
        4 => 0.0,
        5 => f32::from_bits(random.u32(..)),
        6 => 1e-41,
        _ => random.f32() * 8.0 - 4.0,
    }
}

struct Case {
    domain: Domain,
    inputs: Vec<Input>,
    insts: Vec<Inst>,
    outputs: Vec<Output>,
}

/// A random loop of one float type with random accesses.
fn case(random: &mut fastrand::Rng, element: ElementType, with_reductions: bool) -> Case {
    let rows = [random.usize(1..4), random.usize(1..5)];
    let columns = random.usize(8..150);
    let domain = Domain { rows: rows.to_vec(), columns: vec![columns] };
    let dense = vec![(rows[1] * columns) as isize, columns as isize];
    let mut inputs = Vec::new();
    for at in 0..random.usize(1..4) {
        let (rows, columns) = match random.usize(0..6) {
            _ if at == 0 => (dense.clone(), 1),
            0 => (vec![0, 0], 1),
            1 => (vec![columns as isize, 0], 1),
            2 if element == ElementType::F32 => (vec![rows[1] as isize, 1], 0),
            3 if element == ElementType::F32 => (vec![0, 0], 0),
            _ => (dense.clone(), 1),
        };
        let source = Source::Memory(Access { offset: 0, rows, columns: vec![columns] });
        inputs.push(Input { element, source });
    }
    let mut insts: Vec<Inst> = (0..inputs.len()).map(Inst::Load).collect();
    while insts.len() < 12 {
        let count = insts.len();
        let (a, b) = (any(random, count), any(random, count));
        let truth = insts.iter().position(|inst| matches!(inst, Inst::Compare(..)));
        let is_truth = |register: Register| matches!(insts[register.0], Inst::Compare(..));
        if is_truth(a) || is_truth(b) {
            continue;
        }
        insts.push(match random.usize(0..12) {
            0 => Inst::Constant(element, Scalar::Float(f64::from(number(random))).rounded_to(element)),
            1 => Inst::Compare(Direction::ALL[random.usize(0..6)], Order::Partial, a, b),
            2 if let Some(truth) = truth => Inst::Select(Register(truth), a, b),
            3 if with_reductions => {
                let reductions = match element {
                    ElementType::F32 => &[ReduceOp::Sum, ReduceOp::Maximum, ReduceOp::Minimum][..],
                    _ => &[ReduceOp::Maximum, ReduceOp::Minimum][..],
                };
                Inst::Reduce(reductions[random.usize(0..reductions.len())], a)
            }
            4..=6 => Inst::Unary(UNARY[random.usize(0..UNARY.len())], a),
            _ => Inst::Binary(BINARY[random.usize(0..BINARY.len())], a, b),
        });
    }
    // Sometimes rows are contiguous in memory, for the second input or the outputs.
    let transposed =
        Access { offset: 0, rows: vec![(rows[1] * columns) as isize, 1], columns: vec![rows[1] as isize] };
    if rows[1] > 1 && element == ElementType::F32 && inputs.len() > 1 && random.usize(0..4) == 0 {
        inputs[1].source = Source::Memory(transposed.clone());
    }
    let access = match rows[1] > 1 && random.usize(0..4) == 0 {
        true => transposed,
        false => Access { offset: 0, rows: dense, columns: vec![1] },
    };
    let is_truth = |at: usize| matches!(insts[at], Inst::Compare(..));
    let value = (0..insts.len()).rev().find(|&at| !is_truth(at)).unwrap_or(0);
    let output = |value| Output { value: Register(value), sink: Sink::Memory(access.clone()) };
    let outputs = vec![output(value), output(random.usize(0..inputs.len()))];
    Case { domain, inputs, insts, outputs }
}

/// As f32 bits, with a canonical NaN.
fn widened(bytes: &[u8], element: ElementType) -> Vec<u32> {
    let number = |bytes: &[u8]| match (element, bytes) {
        (ElementType::F32, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]),
        (ElementType::BF16, &[a, b, ..]) => half::bf16::from_ne_bytes([a, b]).to_f32(),
        (_, &[a, b, ..]) => half::f16::from_ne_bytes([a, b]).to_f32(),
        _ => 0.0,
    };
    let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    bytes.chunks(element.byte_width()).map(|bytes| bits(number(bytes))).collect()
}

pub(crate) fn random_loops_match_the_interpreter() {
    let pool = Pool::new(NonZeroUsize::MIN).unwrap();
    let mut compiled = 0;
    for seed in 0..600 {
        let mut random = fastrand::Rng::with_seed(seed);
        let element = FLOATS[[0, 0, 0, 1, 2][random.usize(0..5)]];
        let with_reductions = random.bool();
        let Case { domain, inputs, insts, outputs } = case(&mut random, element, with_reductions);
        let count: usize = domain.rows.iter().chain(&domain.columns).product();
        let buffers: Vec<Vec<u8>> = inputs
            .iter()
            .map(|_| {
                let numbers = (0..count).map(|_| number(&mut random));
                numbers
                    .flat_map(|x| match element {
                        ElementType::F32 => x.to_ne_bytes().to_vec(),
                        ElementType::BF16 => half::bf16::from_f32(x).to_ne_bytes().to_vec(),
                        _ => half::f16::from_f32(x).to_ne_bytes().to_vec(),
                    })
                    .collect()
            })
            .collect();
        let places: Vec<*const u8> = buffers.iter().map(Vec::as_ptr).collect();
        let run = |fused_loop: &FusedLoop| {
            let mut results = vec![vec![0u8; count * element.byte_width()]; outputs.len()];
            let targets: Vec<*mut u8> = results.iter_mut().map(Vec::as_mut_ptr).collect();
            // SAFETY: all buffers have as many elements as the domain.
            unsafe { fused_loop.run(&pool, &places, &targets) };
            results
        };
        let code = FusedLoop::new(&domain, &inputs, &insts, &outputs).unwrap();
        let oracle = FusedLoop::interpreted(&domain, &inputs, &insts, &outputs).unwrap();
        compiled += usize::from(code.is_compiled());
        for (found, expected) in run(&code).iter().zip(&run(&oracle)) {
            let (found, expected) = (widened(found, element), widened(expected, element));
            let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            if let Some(at) = wrong {
                let (found, expected) = (f32::from_bits(found[at]), f32::from_bits(expected[at]));
                panic!(
                    "seed {seed} at {at}: {found:e}, not {expected:e}\n{element} {domain:?}\n{inputs:?}\n{insts:#?}"
                );
            }
        }
    }
    // Reductions of per-row values are interpreted.
    assert!(compiled > 400, "only {compiled} of 600 loops were compiled");
}

pub(crate) fn masked_softmax_in_a_tile() {
    // Softmax of the scaled tile and a mask of bytes, in the tile; rows that are masked altogether become zeros.
    let (rows, columns, stride) = (5, 70, 80);
    let domain = Domain { rows: vec![rows], columns: vec![columns] };
    let mask = Access { offset: 0, rows: vec![columns as isize], columns: vec![1] };
    let inputs = [
        Input { element: ElementType::F32, source: Source::Tile },
        Input { element: ElementType::Bool, source: Source::Memory(mask) },
    ];
    let float = |value| Inst::Constant(ElementType::F32, Scalar::Float(value));
    let register = Register;
    let insts = [
        Inst::Load(0),
        Inst::Load(1),
        float(0.3),
        Inst::Binary(Function::Multiply, register(0), register(2)),
        float(f64::NEG_INFINITY),
        Inst::Select(register(1), register(3), register(4)),
        Inst::Reduce(ReduceOp::Maximum, register(5)),
        Inst::Binary(Function::Subtract, register(5), register(6)),
        Inst::Unary(Function::Exponential, register(7)),
        Inst::Reduce(ReduceOp::Sum, register(8)),
        Inst::Binary(Function::Divide, register(8), register(9)),
        Inst::Compare(Direction::Eq, Order::Partial, register(6), register(4)),
        float(0.0),
        Inst::Select(register(11), register(12), register(10)),
    ];
    let outputs = [Output { value: Register(13), sink: Sink::Tile }];
    let mut random = fastrand::Rng::with_seed(7);
    let tile: Vec<f32> = (0..rows * stride).map(|_| random.f32() * 20.0 - 10.0).collect();
    let truths: Vec<u8> = (0..rows * columns).map(|at| u8::from(at % 7 != 0 && at / columns != 2)).collect();
    let run = |fused_loop: &FusedLoop| {
        let mut tile = tile.clone();
        let places = [std::ptr::null(), truths.as_ptr()];
        let mut scratch = Scratch::new();
        // SAFETY: the tile and the mask have all rows and columns.
        unsafe {
            let data = tile.as_mut_ptr().cast();
            fused_loop.run_block(
                &mut scratch,
                &places,
                &[std::ptr::null_mut()],
                0..rows,
                0..columns,
                data,
                stride,
            );
        }
        tile.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let code = FusedLoop::new(&domain, &inputs, &insts, &outputs).unwrap();
    assert!(code.is_compiled());
    let oracle = FusedLoop::interpreted(&domain, &inputs, &insts, &outputs).unwrap();
    let found = run(&code);
    assert_eq!(found, run(&oracle));
    assert!(found[2 * stride..2 * stride + columns].iter().all(|&bits| bits == 0));
}

pub(crate) fn rounding_to_bf16() {
    // Ties and their neighbours, next to odd and even values, infinities and NaN of all signs and sizes.
    let uppers =
        (0..=u16::MAX).step_by(97).chain([0, 1, 0x3f80, 0x3f81, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0xff7f]);
    let lowers = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
    let bits = uppers.flat_map(|upper| lowers.map(|lower| u32::from(upper) << 16 | lower));
    let numbers: Vec<f32> = bits.map(f32::from_bits).collect();
    let count = numbers.len();
    let domain = Domain { rows: vec![1], columns: vec![count] };
    let access = || Access { offset: 0, rows: vec![count as isize], columns: vec![1] };
    let inputs = [Input { element: ElementType::F32, source: Source::Memory(access()) }];
    // Once with bf16 stores only, once with other uses.
    let insts = [
        Inst::Load(0),
        Inst::Convert(Register(0), ElementType::BF16),
        Inst::Unary(Function::Abs, Register(0)),
        Inst::Convert(Register(2), ElementType::BF16),
        Inst::Convert(Register(3), ElementType::F32),
    ];
    let outputs = [1, 3, 4].map(|value| Output { value: Register(value), sink: Sink::Memory(access()) });
    let fused_loop = FusedLoop::new(&domain, &inputs, &insts, &outputs).unwrap();
    assert!(fused_loop.is_compiled());
    let (mut narrow, mut magnitudes, mut wide) = (vec![0u16; count], vec![0u16; count], vec![0f32; count]);
    let targets = [narrow.as_mut_ptr().cast(), magnitudes.as_mut_ptr().cast(), wide.as_mut_ptr().cast()];
    let pool = Pool::new(NonZeroUsize::MIN).unwrap();
    // SAFETY: all buffers have as many elements as the domain.
    unsafe { fused_loop.run(&pool, &[numbers.as_ptr().cast()], &targets) };
    for (at, &number) in numbers.iter().enumerate() {
        assert_eq!(narrow[at], half::bf16::from_f32(number).to_bits(), "{:x}", number.to_bits());
        let magnitude = half::bf16::from_f32(number.abs());
        assert_eq!(magnitudes[at], magnitude.to_bits(), "{:x}", number.to_bits());
        assert_eq!(wide[at].to_bits(), magnitude.to_f32().to_bits(), "{:x}", number.to_bits());
    }
}

pub(crate) fn narrow_blocks_use_pairs_of_rows() {
    // silu(tile + bias) * other, in bf16, for any number of rows and for columns on both sides of a pair's.
    let (rows, columns, stride) = (7, 100, 48);
    let domain = Domain { rows: vec![rows], columns: vec![columns] };
    let memory = |row: usize| Access { offset: 0, rows: vec![row as isize], columns: vec![1] };
    let inputs = [
        Input { element: ElementType::F32, source: Source::Tile },
        Input { element: ElementType::F32, source: Source::Memory(memory(0)) },
        Input { element: ElementType::F32, source: Source::Memory(memory(columns)) },
    ];
    let insts = [
        Inst::Load(0),
        Inst::Load(1),
        Inst::Load(2),
        Inst::Binary(Function::Add, Register(0), Register(1)),
        Inst::Unary(Function::Logistic, Register(3)),
        Inst::Binary(Function::Multiply, Register(3), Register(4)),
        Inst::Binary(Function::Multiply, Register(5), Register(2)),
        Inst::Convert(Register(6), ElementType::BF16),
    ];
    let outputs = [
        Output { value: Register(7), sink: Sink::Memory(memory(columns)) },
        Output { value: Register(5), sink: Sink::Tile },
    ];
    let mut random = fastrand::Rng::with_seed(3);
    let mut numbers = |count: usize| (0..count).map(|_| number(&mut random)).collect::<Vec<f32>>();
    let (tile, bias, other) = (numbers(rows * stride), numbers(columns), numbers(rows * columns));
    let code = FusedLoop::new(&domain, &inputs, &insts, &outputs).unwrap();
    assert!(code.is_compiled());
    let oracle = FusedLoop::interpreted(&domain, &inputs, &insts, &outputs).unwrap();
    for (count, width) in [(7, 32), (6, 32), (2, 32), (1, 32), (5, 31), (5, 33), (4, 48), (3, 16)] {
        let run = |fused_loop: &FusedLoop| {
            let (mut tile, mut result) = (tile.clone(), vec![0u16; rows * columns]);
            let places = [std::ptr::null(), bias.as_ptr().cast(), other.as_ptr().cast()];
            let targets = [result.as_mut_ptr().cast(), std::ptr::null_mut()];
            let (rows, columns) = (rows - count..rows, 40..40 + width);
            let mut scratch = Scratch::new();
            // SAFETY: the buffers have all rows and columns, and the tile those of the block.
            unsafe {
                let data = tile.as_mut_ptr().cast();
                fused_loop.run_block(&mut scratch, &places, &targets, rows, columns, data, stride);
            }
            let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
            (tile.into_iter().map(bits).collect::<Vec<u32>>(), result)
        };
        assert_eq!(run(&code), run(&oracle), "{count} rows of {width}");
    }
}
