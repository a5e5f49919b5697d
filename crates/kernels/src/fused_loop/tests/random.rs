//! Random fused loops, domains and accesses.

use super::*;
use crate::reduce::ReduceOp;

/// Elements that buffers have on each side of where accesses start.
const ROOM: usize = 4000;

struct Case {
    domain: Domain,
    inputs: Vec<Input>,
    insts: Vec<Inst>,
    buffers: Vec<Vec<Scalar>>,
}

fn sizes(random: &mut fastrand::Rng) -> Vec<usize> {
    (0..random.usize(0..4))
        .map(|_| if random.bool() { random.usize(1..4) } else { random.usize(1..12) })
        .collect()
}

/// Dense strides of some dimensions, some of them set to zero, reversed, or stretched.
fn access(random: &mut fastrand::Rng, domain: &Domain) -> Access {
    let mut strides = Vec::new();
    let mut dense = 1isize;
    let dims: Vec<usize> = domain.rows.iter().chain(&domain.columns).copied().collect();
    for &size in dims.iter().rev() {
        strides.push(match random.usize(0..8) {
            0 | 1 => 0,
            2 => -dense,
            3 => dense * 2,
            _ => dense,
        });
        if dense * (size as isize) < 300 {
            dense *= size as isize;
        }
    }
    strides.reverse();
    let columns = strides.split_off(domain.rows.len());
    Access { offset: ROOM as isize, rows: strides, columns }
}

fn value(random: &mut fastrand::Rng, element: ElementType) -> Scalar {
    let small = random.i32(-40..40);
    match element {
        ElementType::Float(_) if random.usize(0..20) == 0 => {
            Scalar::Float([f64::NAN, f64::INFINITY, -0.0, 1e-42][random.usize(0..4)])
        }
        ElementType::Float(_) => Scalar::Float(f64::from(small) / 8.0),
        _ => Scalar::Int(i128::from(small)),
    }
    .rounded_to(element)
}

/// A step whose value does not depend on how it is computed.
fn inst(random: &mut fastrand::Rng, types: &[ElementType], rank: (usize, usize)) -> Inst {
    let any = |random: &mut fastrand::Rng| Register(random.usize(0..types.len()));
    let a = any(random);
    let alike: Vec<usize> = (0..types.len()).filter(|&at| types[at] == types[a.0]).collect();
    let b = Register(alike[random.usize(0..alike.len())]);
    let float = matches!(types[a.0], ElementType::Float(_));
    let factors = |random: &mut fastrand::Rng, rank: usize| (0..rank).map(|_| random.i64(-2..3)).collect();
    match random.usize(0..12) {
        0 => {
            let element = ELEMENTS[random.usize(0..ELEMENTS.len())];
            Inst::Constant(element, value(random, element))
        }
        1 => Inst::Iota {
            element: ELEMENTS[random.usize(0..ELEMENTS.len())],
            offset: random.i64(-5..5),
            rows: factors(random, rank.0),
            columns: factors(random, rank.1),
        },
        2 if types[a.0] == ElementType::Bool => Inst::Unary(Function::Not, a),
        2 if float => {
            let ops = [Function::Abs, Function::Negate, Function::Floor, Function::Sqrt, Function::IsFinite];
            Inst::Unary(ops[random.usize(0..ops.len())], a)
        }
        2 => Inst::Unary([Function::Abs, Function::Not, Function::Popcnt][random.usize(0..3)], a),
        3 => {
            let order = if random.bool() { Order::Partial } else { Order::Total };
            Inst::Compare(Direction::ALL[random.usize(0..6)], order, a, b)
        }
        4 | 5 => {
            let truths: Vec<usize> = (0..types.len()).filter(|&at| types[at] == ElementType::Bool).collect();
            match truths.is_empty() {
                true => Inst::Binary(Function::Maximum, a, b),
                false => Inst::Select(Register(truths[random.usize(0..truths.len())]), a, b),
            }
        }
        6 => Inst::Convert(a, ELEMENTS[random.usize(0..ELEMENTS.len())]),
        7 => {
            let exact = if float { 2..4 } else { 0..4 };
            Inst::Reduce(
                [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Maximum, ReduceOp::Minimum][random.usize(exact)],
                a,
            )
        }
        _ => {
            let ops = [
                Function::Add,
                Function::Subtract,
                Function::Multiply,
                Function::Divide,
                Function::Maximum,
                Function::Minimum,
            ];
            Inst::Binary(ops[random.usize(0..ops.len())], a, b)
        }
    }
}

fn case(random: &mut fastrand::Rng) -> Case {
    let domain = Domain { rows: sizes(random), columns: sizes(random) };
    let with_reductions = random.bool();
    let inputs: Vec<Input> = (0..random.usize(1..4))
        .map(|_| {
            let element = ELEMENTS[random.usize(0..ELEMENTS.len())];
            memory(element, access(random, &domain))
        })
        .collect();
    let buffers =
        inputs.iter().map(|input| (0..3 * ROOM).map(|_| value(random, input.element)).collect()).collect();
    let mut insts: Vec<Inst> = (0..inputs.len()).map(Inst::Load).collect();
    while insts.len() < 16 {
        let types = check::types(&inputs, &insts).unwrap();
        let inst = inst(random, &types, (domain.rows.len(), domain.columns.len()));
        if with_reductions || !matches!(inst, Inst::Reduce(..)) {
            insts.push(inst);
        }
    }
    Case { domain, inputs, insts, buffers }
}

#[test]
fn random_loops_match_naive_evaluation() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let Case { domain, inputs, insts, buffers } = case(&mut random);
        let expected = naive::evaluate(&domain, &inputs, &buffers, &insts);
        let types = check::types(&inputs, &insts).unwrap();
        let count = expected[0].len();
        // Every value is written, densely.
        let columns: usize = domain.columns.iter().product();
        let dense = |sizes: &[usize], inner: usize| -> Vec<isize> {
            let mut strides: Vec<isize> = Vec::new();
            let mut stride = inner as isize;
            for &size in sizes.iter().rev() {
                strides.push(stride);
                stride *= size as isize;
            }
            strides.reverse();
            strides
        };
        let access =
            Access { offset: 0, rows: dense(&domain.rows, columns), columns: dense(&domain.columns, 1) };
        let outputs: Vec<Output> = (0..insts.len()).map(|inst| output(inst, access.clone())).collect();
        let sizes: Vec<(ElementType, usize)> = types.iter().map(|&element| (element, count)).collect();
        let tensors: Vec<Tensor> = inputs
            .iter()
            .zip(&buffers)
            .map(|(input, buffer)| tensor(input.element, buffer.iter().copied()))
            .collect();
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        for isa in Isa::available() {
            let fused_loop = FusedLoop::with_isa(isa, &domain, &inputs, &insts, &outputs).unwrap();
            for threads in 1..=3 {
                let found = run(&fused_loop, &pool(threads), &tensors, &sizes);
                for (inst, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    for (at, (found, &expected)) in values(found).into_iter().zip(expected).enumerate() {
                        assert!(
                            same(found, expected),
                            "seed {seed}, {isa}, inst {inst} at {at}: {found:?}, not {expected:?}\n{domain:?}\n{insts:#?}"
                        );
                    }
                }
            }
        }
    }
}
