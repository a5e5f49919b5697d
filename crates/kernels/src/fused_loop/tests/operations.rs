//! Every operation on every type.

use crate::reduce::ReduceOp;
use warpforge_tensor::FloatFormat;

use super::*;

/// Edge cases of each element type.
fn samples(element: ElementType) -> Vec<Scalar> {
    match element {
        ElementType::Bool => [false, true].map(Scalar::Bool).to_vec(),
        ElementType::Float(_) => {
            let mut values = vec![0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 10.5, 88.0, 1e-3, 1e-7];
            values.extend([65504.0, 1e30, 1e-40, 6e-8, f64::MAX, f64::INFINITY, 0.1, 100.0, 1e9, 1.0001]);
            values.extend(values.clone().iter().map(|value| -value));
            values.push(f64::NAN);
            floats(values).into_iter().map(|value| value.rounded_to(element)).collect()
        }
        _ => {
            let wide = [
                0,
                1,
                2,
                3,
                5,
                7,
                8,
                15,
                16,
                31,
                32,
                63,
                64,
                100,
                127,
                128,
                255,
                1 << 31,
                i128::from(u64::MAX),
            ];
            let negative = wide.iter().map(|value| -value);
            wide.iter().copied().chain(negative).map(|value| Scalar::Int(value).rounded_to(element)).collect()
        }
    }
}

/// All pairs of samples, as two columns of operands.
fn pairs(element: ElementType) -> (Vec<Scalar>, Vec<Scalar>) {
    let samples = samples(element);
    samples.iter().flat_map(|&a| samples.iter().map(move |&b| (a, b))).unzip()
}

fn format(element: ElementType) -> Option<FloatFormat> {
    match element {
        ElementType::Float(float) => Some(float.format()),
        _ => None,
    }
}

/// Units in the last place between two values; 0 for the same.
fn ulps(element: ElementType, left: Scalar, right: Scalar) -> u64 {
    let Some(format) = format(element) else { return u64::from(left != right) * u64::MAX };
    match (format.ordinal(left.to_f64()), format.ordinal(right.to_f64())) {
        (Some(left), Some(right)) => left.abs_diff(right),
        (None, None) => 0,
        _ => u64::MAX,
    }
}

/// Runs steps on one row of operands and compares the value of the last with what is expected.
fn check(
    inputs: &[(ElementType, &[Scalar])],
    inst: &Inst,
    result: ElementType,
    allowed: u64,
    expected: impl Fn(usize) -> Scalar,
) -> bool {
    let count = inputs[0].1.len();
    let mut insts: Vec<Inst> = (0..inputs.len()).map(Inst::Load).collect();
    insts.push(inst.clone());
    let sources: Vec<Input> = inputs.iter().map(|&(element, _)| memory(element, strides(0, 1))).collect();
    let tensors: Vec<Tensor> =
        inputs.iter().map(|&(element, values)| tensor(element, values.iter().copied())).collect();
    for isa in Isa::available() {
        let outputs = [output(inputs.len(), strides(0, 1))];
        let fused_loop = match FusedLoop::with_isa(isa, &matrix(1, count), &sources, &insts, &outputs) {
            Ok(fused_loop) => fused_loop,
            Err(FusedLoopError::Unsupported { .. }) => return false,
            Err(error) => panic!("{inst:?}: {error}"),
        };
        let found = run(&fused_loop, &pool(1), &tensors.iter().collect::<Vec<_>>(), &[(result, count)]);
        for (at, found) in values(&found[0]).into_iter().enumerate() {
            let expected = expected(at);
            let given: Vec<Scalar> = inputs.iter().map(|(_, values)| values[at]).collect();
            let off = ulps(result, found, expected);
            assert!(
                same(found, expected) || (allowed > 0 && off <= allowed),
                "{isa} {inst:?} of {given:?} ({result}): {found:?}, not {expected:?}: {off} ULP"
            );
        }
    }
    true
}

/// Units in the last place that a function may be off; see the tests of accuracy for those that depend on the argument.
fn allowed(op: Function) -> u64 {
    match op {
        _ if exact(op) => 0,
        _ => 2,
    }
}

fn exact(op: Function) -> bool {
    matches!(
        op,
        Function::Abs
            | Function::Negate
            | Function::Sign
            | Function::Not
            | Function::Popcnt
            | Function::CountLeadingZeros
            | Function::IsFinite
            | Function::Ceil
            | Function::Floor
            | Function::RoundNearestAfz
            | Function::RoundNearestEven
            | Function::Sqrt
    )
}

/// The functions of so many operands that fused loops have; the rest is made of them.
fn functions(arity: usize) -> impl Iterator<Item = Function> {
    let made = |function: &Function| {
        matches!(function, Function::Convert | Function::GeluTanh | Function::GeluTanhGradient)
    };
    Function::ALL.iter().copied().filter(move |function| function.arity() == arity && !made(function))
}

#[test]
fn unary_operations() {
    for element in ELEMENTS {
        let all = samples(element);
        let mut known = 0;
        for op in functions(1) {
            // Below zero this one has the digits that its sum with one leaves: see its own tests.
            let apt = |value: &&Scalar| op != Function::Gelu || value.is_nan() || value.to_f64() >= -0.5;
            let samples: Vec<Scalar> = all.iter().filter(apt).copied().collect();
            let result = if op == Function::IsFinite { ElementType::Bool } else { element };
            let inst = Inst::Unary(op, Register(0));
            known += usize::from(check(&[(element, &samples)], &inst, result, allowed(op), |at| {
                naive::unary(op, samples[at], element).rounded_to(result)
            }));
        }
        let expected = match element {
            ElementType::Bool => 1,
            ElementType::Float(_) => 23,
            _ => 6,
        };
        assert_eq!(known, expected, "operations on {element}");
    }
}

#[test]
fn binary_operations() {
    for element in ELEMENTS {
        let (a, b) = pairs(element);
        let mut known = 0;
        for op in functions(2) {
            let allowed = u64::from(matches!(op, Function::Power | Function::Atan2)) * 2;
            let inst = Inst::Binary(op, Register(0), Register(1));
            known += usize::from(check(&[(element, &a), (element, &b)], &inst, element, allowed, |at| {
                naive::binary(op, a[at], b[at], element).rounded_to(element)
            }));
        }
        let expected = match element {
            ElementType::Bool => 11,
            ElementType::Float(_) => 9,
            _ => 14,
        };
        assert_eq!(known, expected, "operations on {element}");
    }
}

#[test]
fn comparisons() {
    for element in ELEMENTS {
        let (a, b) = pairs(element);
        for direction in Direction::ALL {
            for order in [Order::Partial, Order::Total] {
                let inst = Inst::Compare(direction, order, Register(0), Register(1));
                let known = check(&[(element, &a), (element, &b)], &inst, ElementType::Bool, 0, |at| {
                    Scalar::Bool(naive::compare(direction, order, a[at], b[at]))
                });
                assert!(known);
            }
        }
    }
}

#[test]
fn selections() {
    for element in ELEMENTS {
        let (a, b) = pairs(element);
        let which: Vec<Scalar> = (0..a.len()).map(|at| Scalar::Bool(at % 3 == 0)).collect();
        let inst = Inst::Select(Register(0), Register(1), Register(2));
        let inputs = [(ElementType::Bool, &which[..]), (element, &a), (element, &b)];
        assert!(check(&inputs, &inst, element, 0, |at| if which[at].is_true() { a[at] } else { b[at] }));
    }
}

#[test]
fn conversions() {
    for from in ELEMENTS {
        let samples = samples(from);
        for to in ELEMENTS {
            let inst = Inst::Convert(Register(0), to);
            assert!(check(&[(from, &samples)], &inst, to, 0, |at| naive::convert(samples[at], to)));
        }
    }
}

#[test]
fn row_reductions() {
    for element in ELEMENTS {
        let samples: Vec<Scalar> = samples(element).into_iter().filter(|value| !value.is_nan()).collect();
        for reduction in ReduceOp::ALL {
            for isa in Isa::available() {
                let (rows, columns) = (5, 150);
                let mut random = fastrand::Rng::with_seed(7);
                let given: Vec<Scalar> =
                    (0..rows * columns).map(|_| samples[random.usize(..samples.len())]).collect();
                let sources = [memory(element, strides(columns as isize, 1))];
                let insts = [Inst::Load(0), Inst::Reduce(reduction, Register(0))];
                let fused_loop = FusedLoop::with_isa(
                    isa,
                    &matrix(rows, columns),
                    &sources,
                    &insts,
                    &[output(1, strides(1, 0))],
                );
                let Ok(fused_loop) = fused_loop else {
                    assert!(matches!(reduction, ReduceOp::And | ReduceOp::Or) && format(element).is_some());
                    continue;
                };
                // Sums and products of floats depend on their order: those have tests of their own.
                if format(element).is_some() && matches!(reduction, ReduceOp::Sum | ReduceOp::Product) {
                    continue;
                }
                let input = tensor(element, given.iter().copied());
                let found = run(&fused_loop, &pool(2), &[&input], &[(element, rows)]);
                for (row, found) in values(&found[0]).into_iter().enumerate() {
                    let expected = naive::reduce(reduction, &given[row * columns..][..columns], element);
                    assert!(
                        same(found, expected),
                        "{isa} {reduction:?} {element}: {found:?}, not {expected:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn float_sums_are_as_accurate_as_pairwise() {
    let mut random = fastrand::Rng::with_seed(11);
    for columns in [1, 7, 64, 1000, 100_000] {
        let given: Vec<f64> = (0..columns).map(|_| f64::from(random.f32() - 0.3)).collect();
        let exact: f64 = given.iter().sum();
        let magnitudes: f64 = given.iter().map(|value| value.abs()).sum();
        let insts = [Inst::Load(0), Inst::Reduce(ReduceOp::Sum, Register(0))];
        for isa in Isa::available() {
            let sources = [memory(ElementType::F32, strides(columns as isize, 1))];
            let fused_loop =
                FusedLoop::with_isa(isa, &matrix(1, columns), &sources, &insts, &[output(1, strides(1, 0))])
                    .unwrap();
            let input = tensor(ElementType::F32, floats(given.iter().copied()));
            let found = run(&fused_loop, &pool(1), &[&input], &[(ElementType::F32, 1)])[0].get(0).to_f64();
            let bound = 0.5f64.powi(24) * (columns as f64).log2().max(1.0) * magnitudes;
            assert!((found - exact).abs() <= bound, "{columns}: {found}, not {exact}");
        }
    }
}

#[test]
fn narrow_float_sums_round_within_short_runs() {
    // 256 + 1 rounds to 256 in bf16: a run stays there, the next starts anew.
    let given: Vec<f64> = std::iter::once(256.0).chain(std::iter::repeat_n(1.0, 199)).collect();
    let sources = [memory(ElementType::BF16, strides(200, 1))];
    let insts = [Inst::Load(0), Inst::Reduce(ReduceOp::Sum, Register(0))];
    let fused_loop = FusedLoop::new(&matrix(1, 200), &sources, &insts, &[output(1, strides(1, 0))]).unwrap();
    let input = tensor(ElementType::BF16, floats(given));
    let found = run(&fused_loop, &pool(1), &[&input], &[(ElementType::BF16, 1)])[0].get(0).to_f64();
    assert_eq!(found, 256.0 + 72.0);
}
