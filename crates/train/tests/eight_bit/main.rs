//! Steps of AdamW with moments of 8 bits against `bitsandbytes`. `record.py` made the cases.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge_diag::Source;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::Module;
use warpforge_ir::signature::Signature;
use warpforge_snakeburger::text;
use warpforge_tensor::io::safetensors;
use warpforge_tensor::{ElementType, Shape, Tensor};
use warpforge_train::step;

/// Steps in the cases.
const STEPS: usize = 6;

/// A module whose gradients are its inputs.
fn gradients_as_inputs() -> Module {
    let text = "func.func @main(
  %w: tensor<65x64xf32> {warpforge.name = \"layer.weight\", warpforge.role = \"parameter\"},
  %b: tensor<64xf32> {warpforge.name = \"layer.bias\", warpforge.role = \"parameter\"},
  %gw: tensor<65x64xf32> {warpforge.name = \"gradient.layer.weight\"},
  %gb: tensor<64xf32> {warpforge.name = \"gradient.layer.bias\"}
) -> (tensor<65x64xf32> {warpforge.name = \"grad.w\", warpforge.role = \"gradient\", warpforge.of = \"layer.weight\"},
  tensor<64xf32> {warpforge.name = \"grad.b\", warpforge.role = \"gradient\", warpforge.of = \"layer.bias\"}) {
  func.return %gw, %gb : tensor<65x64xf32>, tensor<64xf32>
}";
    text::parse(&Source::new("m", text), &text::Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn cases() -> BTreeMap<String, Tensor> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eight_bit/cases.safetensors");
    safetensors::read(&path).unwrap()
}

fn largest_difference(found: &Tensor, expected: &Tensor) -> f64 {
    let pairs = found.iter().zip(expected.iter());
    pairs.fold(0.0, |most, (one, other)| f64::max(most, (one.to_f64() - other.to_f64()).abs()))
}

#[test]
fn codes_scales_and_parameters_are_those_of_bitsandbytes() {
    let cases = cases();
    let recipe = "adamw-8bit,lr=1e-3,weight-decay=0.01".parse().unwrap();
    let module = step(&gradients_as_inputs(), "main", &recipe).unwrap();
    let signature = Signature::of(module.function("main").unwrap());
    let mut values: BTreeMap<String, Tensor> = BTreeMap::new();
    for argument in &signature.arguments {
        let ty = argument.ty.as_tensor().unwrap();
        let zeros = || {
            let shape = Shape::new(ty.shape_usize().unwrap()).unwrap();
            Tensor::zeros(ty.element().storage().unwrap(), shape).unwrap()
        };
        let initial = cases.get(&format!("initial.{}", argument.name)).cloned();
        values.insert(argument.name.clone(), initial.unwrap_or_else(zeros));
    }
    assert_eq!(values["state1.layer.weight"].element_type(), ElementType::U8);
    assert_eq!(values["absmax2.layer.weight"].dims(), [17]);
    assert_eq!(values["state2.layer.bias"].element_type(), ElementType::F32);
    let (mut codes, mut other) = (0, 0);
    for step in 0..STEPS {
        for name in ["gradient.layer.weight", "gradient.layer.bias"] {
            values.insert(name.to_owned(), cases[&format!("{step}.{name}")].clone());
        }
        let arguments = signature.arguments.iter();
        let arguments = arguments.map(|argument| Value::Tensor(values[&argument.name].clone())).collect();
        let results = Interpreter::new(&module, Options::default()).run("main", arguments).unwrap();
        for (_, argument, new) in signature.state() {
            values.insert(argument.name.clone(), results[new].as_tensor().unwrap().clone());
        }
        for (name, found) in &values {
            let Some(expected) = cases.get(&format!("{step}.{name}")) else { continue };
            if found.element_type() == ElementType::U8 {
                codes += found.len();
                other += found.iter().zip(expected.iter()).filter(|(one, other)| one != other).count();
            } else {
                let apart = largest_difference(found, expected);
                assert!(apart <= 1e-6, "step {step}, {name}: {apart:e}");
            }
        }
    }
    // PyTorch fuses the multiplication and the addition of the first moment, so a value next to a border may round to the other
    // side of it: at most one code in ten thousand.
    assert_eq!(codes, STEPS * 2 * 65 * 64);
    assert!(other * 10_000 <= codes, "{other} of {codes} codes differ");
}
