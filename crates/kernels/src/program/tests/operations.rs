//! Every operation on every type.

use crate::fold::Fold;
use warpforge_tensor::FloatFormat;

use super::*;

/// Values that have shown bugs before, of any type.
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
    step: &Step,
    result: ElementType,
    allowed: u64,
    expected: impl Fn(usize) -> Scalar,
) -> bool {
    let count = inputs[0].1.len();
    let mut steps: Vec<Step> = (0..inputs.len()).map(Step::Load).collect();
    steps.push(step.clone());
    let sources: Vec<Input> = inputs.iter().map(|&(element, _)| memory(element, strides(0, 1))).collect();
    let tensors: Vec<Tensor> =
        inputs.iter().map(|&(element, values)| tensor(element, values.iter().copied())).collect();
    for isa in Isa::available() {
        let outputs = [output(inputs.len(), strides(0, 1))];
        let program = match Program::with_isa(isa, &matrix(1, count), &sources, &steps, &outputs) {
            Ok(program) => program,
            Err(ProgramError::Unsupported { .. }) => return false,
            Err(error) => panic!("{step:?}: {error}"),
        };
        let found = run(&program, &pool(1), &tensors.iter().collect::<Vec<_>>(), &[(result, count)]);
        for (at, found) in values(&found[0]).into_iter().enumerate() {
            let expected = expected(at);
            let given: Vec<Scalar> = inputs.iter().map(|(_, values)| values[at]).collect();
            let off = ulps(result, found, expected);
            assert!(
                same(found, expected) || (allowed > 0 && off <= allowed),
                "{isa} {step:?} of {given:?} ({result}): {found:?}, not {expected:?}: {off} ULP"
            );
        }
    }
    true
}

/// Units in the last place that a function may be off; see the tests of accuracy for those that depend on the argument.
fn allowed(op: UnaryOp) -> u64 {
    match op {
        _ if exact(op) => 0,
        _ => 2,
    }
}

fn exact(op: UnaryOp) -> bool {
    matches!(
        op,
        UnaryOp::Abs
            | UnaryOp::Negate
            | UnaryOp::Sign
            | UnaryOp::Not
            | UnaryOp::Popcnt
            | UnaryOp::CountLeadingZeros
            | UnaryOp::IsFinite
            | UnaryOp::Ceil
            | UnaryOp::Floor
            | UnaryOp::RoundNearestAfz
            | UnaryOp::RoundNearestEven
            | UnaryOp::Sqrt
    )
}

#[test]
fn functions_of_one_value() {
    for element in ELEMENTS {
        let all = samples(element);
        let mut known = 0;
        for op in UnaryOp::ALL {
            // Below zero this one has the digits that its sum with one leaves: see its own tests.
            let apt = |value: &&Scalar| op != UnaryOp::Gelu || value.is_nan() || value.to_f64() >= -0.5;
            let samples: Vec<Scalar> = all.iter().filter(apt).copied().collect();
            let result = if op == UnaryOp::IsFinite { ElementType::Bool } else { element };
            let step = Step::Unary(op, Register(0));
            known += usize::from(check(&[(element, &samples)], &step, result, allowed(op), |at| {
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
fn functions_of_two_values() {
    for element in ELEMENTS {
        let (a, b) = pairs(element);
        let mut known = 0;
        for op in BinaryOp::ALL {
            let allowed = u64::from(matches!(op, BinaryOp::Power | BinaryOp::Atan2)) * 2;
            let step = Step::Binary(op, Register(0), Register(1));
            known += usize::from(check(&[(element, &a), (element, &b)], &step, element, allowed, |at| {
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
                let step = Step::Compare(direction, order, Register(0), Register(1));
                let known = check(&[(element, &a), (element, &b)], &step, ElementType::Bool, 0, |at| {
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
        let step = Step::Select(Register(0), Register(1), Register(2));
        let inputs = [(ElementType::Bool, &which[..]), (element, &a), (element, &b)];
        assert!(check(&inputs, &step, element, 0, |at| if which[at].is_true() { a[at] } else { b[at] }));
    }
}

#[test]
fn conversions() {
    for from in ELEMENTS {
        let samples = samples(from);
        for to in ELEMENTS {
            let step = Step::Convert(Register(0), to);
            assert!(check(&[(from, &samples)], &step, to, 0, |at| naive::convert(samples[at], to)));
        }
    }
}

#[test]
fn folds_of_rows() {
    for element in ELEMENTS {
        let samples: Vec<Scalar> = samples(element).into_iter().filter(|value| !value.is_nan()).collect();
        for fold in Fold::ALL {
            for isa in Isa::available() {
                let (rows, columns) = (5, 150);
                let mut random = fastrand::Rng::with_seed(7);
                let given: Vec<Scalar> =
                    (0..rows * columns).map(|_| samples[random.usize(..samples.len())]).collect();
                let sources = [memory(element, strides(columns as isize, 1))];
                let steps = [Step::Load(0), Step::Reduce(fold, Register(0))];
                let program = Program::with_isa(
                    isa,
                    &matrix(rows, columns),
                    &sources,
                    &steps,
                    &[output(1, strides(1, 0))],
                );
                let Ok(program) = program else {
                    assert!(matches!(fold, Fold::And | Fold::Or) && format(element).is_some());
                    continue;
                };
                // Sums and products of floats depend on their order: those have tests of their own.
                if format(element).is_some() && matches!(fold, Fold::Sum | Fold::Product) {
                    continue;
                }
                let input = tensor(element, given.iter().copied());
                let found = run(&program, &pool(2), &[&input], &[(element, rows)]);
                for (row, found) in values(&found[0]).into_iter().enumerate() {
                    let expected = naive::reduce(fold, &given[row * columns..][..columns], element);
                    assert!(same(found, expected), "{isa} {fold:?} {element}: {found:?}, not {expected:?}");
                }
            }
        }
    }
}

#[test]
fn sums_of_floats_are_as_good_as_pairwise() {
    let mut random = fastrand::Rng::with_seed(11);
    for columns in [1, 7, 64, 1000, 100_000] {
        let given: Vec<f64> = (0..columns).map(|_| f64::from(random.f32() - 0.3)).collect();
        let exact: f64 = given.iter().sum();
        let magnitudes: f64 = given.iter().map(|value| value.abs()).sum();
        let steps = [Step::Load(0), Step::Reduce(Fold::Sum, Register(0))];
        for isa in Isa::available() {
            let sources = [memory(ElementType::F32, strides(columns as isize, 1))];
            let program =
                Program::with_isa(isa, &matrix(1, columns), &sources, &steps, &[output(1, strides(1, 0))])
                    .unwrap();
            let input = tensor(ElementType::F32, floats(given.iter().copied()));
            let found = run(&program, &pool(1), &[&input], &[(ElementType::F32, 1)])[0].get(0).to_f64();
            let bound = 0.5f64.powi(24) * (columns as f64).log2().max(1.0) * magnitudes;
            assert!((found - exact).abs() <= bound, "{columns}: {found}, not {exact}");
        }
    }
}

#[test]
fn sums_of_narrow_floats_are_rounded_each_time_in_short_runs() {
    // 256 + 1 rounds to 256 in bfloat16: a run stays there, the next starts anew.
    let given: Vec<f64> = std::iter::once(256.0).chain(std::iter::repeat_n(1.0, 199)).collect();
    let sources = [memory(ElementType::BF16, strides(200, 1))];
    let steps = [Step::Load(0), Step::Reduce(Fold::Sum, Register(0))];
    let program = Program::new(&matrix(1, 200), &sources, &steps, &[output(1, strides(1, 0))]).unwrap();
    let input = tensor(ElementType::BF16, floats(given));
    let found = run(&program, &pool(1), &[&input], &[(ElementType::BF16, 1)])[0].get(0).to_f64();
    assert_eq!(found, 256.0 + 72.0);
}
