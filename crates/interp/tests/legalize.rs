//! Operations of CHLO give the same after they are replaced by StableHLO's own.

use warpforge_diag::Source;
use warpforge_interp::math::real;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::legalize::legalize;
use warpforge_ir::print::print;
use warpforge_ir::{Module, verify};
use warpforge_snakeburger::text;
use warpforge_tensor::compare::ulp_distance;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

fn parse(program: &str) -> Module {
    let source = Source::new("case.mlir", program);
    match text::parse(&source, &text::Options::default()) {
        Ok(module) => module,
        Err(error) => panic!("{error}\n{program}"),
    }
}

fn legal(module: Module) -> Module {
    let legal = legalize(module).expect("it has a replacement");
    let problems = verify(&legal);
    assert!(problems.is_empty(), "{problems:?}\n{}", print(&legal));
    assert!(!print(&legal).contains("chlo."), "{}", print(&legal));
    legal
}

fn run(module: &Module, inputs: &[Tensor]) -> Vec<Tensor> {
    let values = inputs.iter().cloned().map(Value::Tensor).collect();
    let results = Interpreter::new(module, Options::default()).run("main", values).expect("it runs");
    results.iter().map(|value| value.as_tensor().expect("a tensor").clone()).collect()
}

/// Runs a program before and after.
fn both(program: &str, inputs: &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>) {
    let module = parse(program);
    let expected = run(&module, inputs);
    (expected, run(&legal(module), inputs))
}

/// Numbers of both signs over the whole range of a type, closer together where functions bend.
fn numbers() -> Vec<f64> {
    let mut numbers = vec![0.0, f64::INFINITY, f64::NAN, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1e-45, 1e-40];
    numbers.extend((-200..=200).map(|power| 2f64.powf(f64::from(power) / 5.0) * 1.013_7));
    numbers.extend((0..1200).map(|step| f64::from(step) * 0.008_37 + 0.000_1));
    for near in [0.5f64, 1.0, 2.0, 3.0] {
        numbers.extend((1..30).flat_map(|power| [near - 0.5f64.powi(power), near + 0.5f64.powi(power)]));
    }
    let negative: Vec<f64> = numbers.iter().map(|number| -number).collect();
    numbers.extend(negative);
    numbers
}

fn tensor(element: ElementType, values: &[f64]) -> Tensor {
    let shape = Shape::new(vec![values.len()]).expect("a vector");
    Tensor::from_scalars(element, shape, values.iter().map(|&value| Scalar::Float(value))).expect("it fits")
}

/// How far numbers may be apart.
struct Limit {
    ulps: u64,
    absolute: f64,
}

/// Asserts that numbers are near each other; the message has the worst of those that are not.
#[track_caller]
fn near(what: &str, inputs: &[Tensor], actual: &Tensor, expected: &Tensor, limit: &Limit) {
    let problem = difference(what, inputs, actual, expected, limit);
    assert!(problem.is_none(), "{}", problem.unwrap_or_default());
}

fn difference(
    what: &str,
    inputs: &[Tensor],
    actual: &Tensor,
    expected: &Tensor,
    limit: &Limit,
) -> Option<String> {
    let ElementType::Float(float) = expected.element_type() else {
        return Some(format!("{what}: {} are no floats", expected.element_type()));
    };
    let mut worst = None;
    for position in 0..expected.len() {
        let (a, b) = (actual.get(position).to_f64(), expected.get(position).to_f64());
        let ulps = ulp_distance(&float.format(), a, b).unwrap_or(u64::MAX);
        let close = a.is_nan() && b.is_nan() || ulps <= limit.ulps || (a - b).abs() <= limit.absolute;
        if !close && worst.as_ref().is_none_or(|(most, _)| ulps > *most) {
            let at: Vec<f64> = inputs.iter().map(|input| input.get(position).to_f64()).collect();
            worst = Some((ulps, format!("{what} of {at:?}: {a:e}, expected {b:e}, {ulps} apart")));
        }
    }
    worst.map(|(_, message)| message)
}

/// Functions of one number, and what may be lost in `f64`: units in the last place, and near zeros an absolute part.
const FUNCTIONS: &[(&str, u64, f64)] = &[
    ("acos", 2, 0.0),
    ("acosh", 3, 0.0),
    ("asin", 2, 0.0),
    ("asinh", 3, 0.0),
    ("atan", 2, 0.0),
    ("atanh", 3, 0.0),
    ("bessel_i1e", 8, 0.0),
    ("cosh", 4, 0.0),
    ("digamma", 16, 4e-15),
    ("erf", 3, 0.0),
    ("erf_inv", 8, 0.0),
    ("erfc", 12, 0.0),
    ("lgamma", 16, 2e-14),
    ("sinh", 4, 0.0),
    ("square", 0, 0.0),
    ("tan", 0, 0.0),
];

/// Functions that the reference computes as CHLO's tests expect it, which is not as well as they can be.
fn exact(name: &str) -> Option<fn(f64) -> f64> {
    match name {
        "cosh" => Some(real::cosh),
        "sinh" => Some(real::sinh),
        _ => None,
    }
}

#[test]
fn functions_of_one_number() {
    let numbers = numbers();
    let mut problems = Vec::new();
    for &(name, ulps, absolute) in FUNCTIONS {
        for element in [ElementType::F32, ElementType::F64, ElementType::F16, ElementType::BF16] {
            let ty = format!("tensor<{}x{element}>", numbers.len());
            let program = format!(
                "func.func @main(%a: {ty}) -> {ty} {{
                  %r = chlo.{name} %a : {ty} -> {ty}
                  return %r : {ty}
                }}"
            );
            let inputs = [tensor(element, &numbers)];
            let (mut expected, actual) = both(&program, &inputs);
            if let Some(exact) = exact(name) {
                let values: Vec<f64> = inputs[0].iter().map(|value| exact(value.to_f64())).collect();
                expected = vec![tensor(element, &values)];
            }
            let limit = match element {
                ElementType::F64 => Limit { ulps, absolute },
                ElementType::F32 => Limit { ulps: if name == "erf" { 2 } else { 1 }, absolute: 0.0 },
                _ => Limit { ulps: 1, absolute: 0.0 },
            };
            let what = format!("{name} in {element}");
            problems.extend(difference(&what, &inputs, &actual[0], &expected[0], &limit));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn functions_of_two_numbers() {
    let orders = [0.0, 1.0, 2.0, 3.0, 5.0, 1.5, 10.0, 40.0, -1.0, 0.5];
    let places = [0.1, 0.5, 1.0, 1.5, 7.25, 12.0, 100.0, 1e4, -0.5, -1.0, -3.7, f64::INFINITY, f64::NAN];
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for order in orders {
        for place in places {
            first.push(order);
            second.push(place);
        }
    }
    let mut problems = Vec::new();
    for (name, element, ulps) in [
        ("zeta", ElementType::F32, 1),
        ("zeta", ElementType::F64, 64),
        ("polygamma", ElementType::F32, 1),
        ("polygamma", ElementType::F64, 512),
        ("next_after", ElementType::F32, 0),
        ("next_after", ElementType::F64, 0),
        ("next_after", ElementType::F16, 0),
        ("next_after", ElementType::BF16, 0),
    ] {
        let ty = format!("tensor<{}x{element}>", first.len());
        let program = format!(
            "func.func @main(%a: {ty}, %b: {ty}) -> {ty} {{
              %r = chlo.{name} %a, %b : {ty}, {ty} -> {ty}
              return %r : {ty}
            }}"
        );
        let inputs = [tensor(element, &first), tensor(element, &second)];
        let (expected, actual) = both(&program, &inputs);
        let limit = Limit { ulps, absolute: 0.0 };
        let what = format!("{name} in {element}");
        problems.extend(difference(&what, &inputs, &actual[0], &expected[0], &limit));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_has_another_form_is_the_same() {
    let x = tensor(ElementType::F32, &[0.5, f64::NAN, -2.0, f64::INFINITY, f64::NEG_INFINITY, 2.0]);
    let six = "tensor<6xf32>";
    for name in ["is_inf", "is_pos_inf", "is_neg_inf"] {
        let program = format!(
            "func.func @main(%a: {six}) -> tensor<6xi1> {{
              %r = chlo.{name} %a : {six} -> tensor<6xi1>
              return %r : tensor<6xi1>
            }}"
        );
        let (expected, actual) = both(&program, std::slice::from_ref(&x));
        assert_eq!(actual[0].bytes(), expected[0].bytes(), "{name}");
    }
    let program = "func.func @main(%a: tensor<6xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
      %v, %i = chlo.top_k(%a, k = 3) : tensor<6xf32> -> (tensor<3xf32>, tensor<3xi32>)
      return %v, %i : tensor<3xf32>, tensor<3xi32>
    }";
    let (expected, actual) = both(program, &[x]);
    assert_eq!(actual[1].bytes(), expected[1].bytes());
    for element in ["i8", "ui32", "i64", "ui64"] {
        let program = format!(
            "func.func @main() -> tensor<4x{element}> {{
              %a = stablehlo.constant dense<[1, 100, 127, 77]> : tensor<4x{element}>
              %n = stablehlo.negate %a : tensor<4x{element}>
              %s = stablehlo.multiply %a, %n : tensor<4x{element}>
              %r = chlo.mulhi %n, %s : tensor<4x{element}>, tensor<4x{element}> -> tensor<4x{element}>
              return %r : tensor<4x{element}>
            }}"
        );
        let (expected, actual) = both(&program, &[]);
        assert_eq!(actual[0].bytes(), expected[0].bytes(), "{element}");
    }
}

#[test]
fn complex_numbers() {
    for name in ["sinh", "cosh", "conj", "square"] {
        let ty = "tensor<3xcomplex<f32>>";
        let program = format!(
            "func.func @main() -> (tensor<3xf32>, tensor<3xf32>) {{
              %a = stablehlo.constant dense<[(0.5, -1.5), (-3.0, 0.25), (0.0, 2.0)]> : {ty}
              %r = chlo.{name} %a : {ty} -> {ty}
              %x = stablehlo.real %r : ({ty}) -> tensor<3xf32>
              %y = stablehlo.imag %r : ({ty}) -> tensor<3xf32>
              return %x, %y : tensor<3xf32>, tensor<3xf32>
            }}"
        );
        let (expected, actual) = both(&program, &[]);
        for (actual, expected) in actual.iter().zip(&expected) {
            near(name, &[], actual, expected, &Limit { ulps: 1, absolute: 0.0 });
        }
    }
}

#[test]
fn operands_are_repeated() {
    for (a, b, dims, result) in [
        ("tensor<2x3xf32>", "tensor<3xf32>", "", "tensor<2x3xf32>"),
        ("tensor<2x1xf32>", "tensor<1x3xf32>", "", "tensor<2x3xf32>"),
        ("tensor<2x3xf32>", "tensor<2xf32>", " {broadcast_dimensions = array<i64: 0>}", "tensor<2x3xf32>"),
        ("tensor<f32>", "tensor<2x3xf32>", "", "tensor<2x3xf32>"),
    ] {
        let program = format!(
            "func.func @main(%a: {a}, %b: {b}) -> {result} {{
              %s = chlo.broadcast_subtract %a, %b{dims} : ({a}, {b}) -> {result}
              %t = chlo.broadcast_next_after %s, %b{dims} : ({result}, {b}) -> {result}
              return %t : {result}
            }}"
        );
        let dynamic = program.replace("2x", "?x").replace("x3x", "x?x").replace("<3x", "<?x");
        let inputs: Vec<Tensor> = [a, b].into_iter().map(counted).collect();
        let (expected, actual) = both(&program, &inputs);
        assert_eq!(actual[0].bytes(), expected[0].bytes(), "{program}");
        if dims.is_empty() {
            let (_, actual) = both(&dynamic, &inputs);
            assert_eq!(actual[0].bytes(), expected[0].bytes(), "{dynamic}");
        }
    }
}

/// A tensor of a type such as `tensor<2x3xf32>` that counts up.
fn counted(ty: &str) -> Tensor {
    let sizes = ty.trim_start_matches("tensor<").trim_end_matches("f32>");
    let dims: Vec<usize> = sizes.split('x').filter_map(|size| size.parse().ok()).collect();
    let values: Vec<f32> = (0..dims.iter().product()).map(|value| value as f32 + 0.5).collect();
    Tensor::from_slice(&dims, &values).expect("it fits")
}

#[test]
fn shapes_need_not_be_known_and_regions_are_searched() {
    let program = "func.func @main(%a: tensor<?xf32>, %p: tensor<i1>) -> tensor<?xf32> {
      %r = \"stablehlo.if\"(%p) ({
        %e = chlo.erfc %a : tensor<?xf32> -> tensor<?xf32>
        %l = \"chlo.constant_like\"(%e) {value = 2.0 : f32} : (tensor<?xf32>) -> tensor<?xf32>
        %s = stablehlo.add %e, %l : tensor<?xf32>
        stablehlo.return %s : tensor<?xf32>
      }, {
        stablehlo.return %a : tensor<?xf32>
      }) : (tensor<i1>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }";
    let x = tensor(ElementType::F32, &[0.25, -1.0, 3.0]);
    let truth = Tensor::scalar(ElementType::Bool, Scalar::Bool(true)).expect("a truth value");
    let inputs = [x, truth];
    let (expected, actual) = both(program, &inputs);
    assert_eq!(actual[0].dims(), [3]);
    near("erfc", &inputs[..1], &actual[0], &expected[0], &Limit { ulps: 1, absolute: 0.0 });
}
