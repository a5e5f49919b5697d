//! Steps against PyTorch's optimizers: the same gradients, run after run, give the same parameters. `record.py` made the cases.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use warpforge_diag::Source;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::signature::Signature;
use warpforge_ir::{Module, verify};
use warpforge_snakeburger::text;
use warpforge_tensor::{Scalar, Shape, Tensor};
use warpforge_train::{TrainError, step};

/// A module whose gradients are its inputs.
fn gradients_as_inputs(element: &str) -> Module {
    let (weight, bias) = (format!("tensor<2x3x{element}>"), format!("tensor<3x{element}>"));
    let text = format!(
        "func.func @main(
  %w: {weight} {{warpforge.name = \"layer.weight\", warpforge.role = \"parameter\", mhlo.sharding = \"{{replicated}}\"}},
  %b: {bias} {{warpforge.name = \"layer.bias\", warpforge.role = \"parameter\"}},
  %gw: {weight} {{warpforge.name = \"gw\"}}, %gb: {bias} {{warpforge.name = \"gb\"}}
) -> (tensor<f32> {{warpforge.name = \"loss\", warpforge.role = \"loss\"}},
  {weight} {{warpforge.name = \"grad.w\", warpforge.role = \"gradient\", warpforge.of = \"layer.weight\"}},
  {bias} {{warpforge.name = \"grad.b\", warpforge.role = \"gradient\", warpforge.of = \"layer.bias\"}}) {{
  %loss = stablehlo.constant dense<1.0> : tensor<f32>
  func.return %loss, %gw, %gb : tensor<f32>, {weight}, {bias}
}}"
    );
    text::parse(&Source::new("m", text), &text::Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn cases() -> Json {
    serde_json::from_str(include_str!("cases.json")).unwrap()
}

fn tensor(like: &Tensor, values: &Json) -> Tensor {
    let values = values.as_array().unwrap().iter().map(|value| Scalar::Float(value.as_f64().unwrap()));
    Tensor::from_scalars(like.element_type(), like.shape().clone(), values).unwrap()
}

/// Zeros for every argument of a step, by name.
fn zeros(signature: &Signature) -> BTreeMap<String, Tensor> {
    let zero = |ty: &warpforge_ir::TensorType| {
        Tensor::zeros(ty.element().storage().unwrap(), Shape::new(ty.shape_usize().unwrap()).unwrap())
            .unwrap()
    };
    let arguments = signature.arguments.iter();
    arguments.map(|argument| (argument.name.clone(), zero(argument.ty.as_tensor().unwrap()))).collect()
}

fn close(what: &str, found: &Tensor, expected: &Json, tolerance: f64) {
    let expected: Vec<f64> =
        expected.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    let scale = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        let found = found.to_f64();
        assert!((found - expected).abs() <= tolerance * scale, "{what}: {found} is not {expected}");
    }
}

#[test]
fn parameters_are_those_of_pytorch() {
    let all = cases();
    for case in all["cases"].as_array().unwrap() {
        let text = case["recipe"].as_str().unwrap();
        let (element, tolerance) = if case["f64"] == true { ("f64", 1e-12) } else { ("f32", 2e-6) };
        let module = step(&gradients_as_inputs(element), "main", &text.parse().unwrap()).unwrap();
        assert_eq!(verify(&module), []);
        let signature = Signature::of(module.function("main").unwrap());
        let mut values = zeros(&signature);
        for (name, initial) in case["initial"].as_object().unwrap() {
            let content = tensor(&values[name], initial);
            values.insert(name.clone(), content);
        }
        for (run, expected) in case["runs"].as_array().unwrap().iter().enumerate() {
            for (input, parameter) in [("gw", "layer.weight"), ("gb", "layer.bias")] {
                let content = tensor(&values[input], &expected["gradients"][parameter]);
                values.insert(input.to_owned(), content);
            }
            let arguments = signature
                .arguments
                .iter()
                .map(|argument| Value::Tensor(values[&argument.name].clone()))
                .collect();
            let results = Interpreter::new(&module, Options::default()).run("main", arguments).unwrap();
            let result = |at: usize| results[at].as_tensor().unwrap().clone();
            for (_, argument, new) in signature.state() {
                values.insert(argument.name.clone(), result(new));
            }
            for (name, wanted) in expected["parameters"].as_object().unwrap() {
                close(&format!("{text}, run {run}, {name}"), &values[name], wanted, tolerance);
            }
            if let Some(norm) = expected["norm"].as_f64() {
                let at = signature.results.iter().position(|result| result.name == "grad_norm").unwrap();
                let found = result(at).get(0).to_f64();
                assert!((found - norm).abs() <= 1e-6 * norm, "{text}, run {run}: norm {found} is not {norm}");
            }
        }
    }
}

#[test]
fn a_step_says_what_it_takes_and_gives() {
    let recipe = "adamw,lr=0.1,clip=1,keep-gradients".parse().unwrap();
    let module = step(&gradients_as_inputs("f32"), "main", &recipe).unwrap();
    let func = module.function("main").unwrap();
    let signature = Signature::of(func);
    let names = |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(signature.arguments.iter().map(|one| &one.name).collect()),
        "layer.weight layer.bias gw gb optimizer.step exp_avg.layer.weight exp_avg_sq.layer.weight \
         exp_avg.layer.bias exp_avg_sq.layer.bias"
    );
    assert_eq!(
        names(signature.results.iter().map(|one| &one.name).collect()),
        "loss grad.w grad.b grad_norm lr layer.weight exp_avg.layer.weight exp_avg_sq.layer.weight layer.bias \
         exp_avg.layer.bias exp_avg_sq.layer.bias optimizer.step"
    );
    assert_eq!(signature.state().count(), 7);
    assert!(func.argument_attrs(0).unwrap().get("mhlo.sharding").is_some());
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let recipe = "sgd,lr=1".parse().unwrap();
    let refused = |module: &Module| step(module, "main", &recipe).unwrap_err();
    let module = gradients_as_inputs("f32");
    assert!(matches!(step(&module, "other", &recipe), Err(TrainError::NoFunction(_))));
    let once = step(&module, "main", &"sgd,lr=1,keep-gradients".parse().unwrap()).unwrap();
    assert!(matches!(refused(&once), TrainError::Updated(name) if name == "layer.weight"));
    let printed = warpforge_ir::print::print(&module);
    let parse = |text: &str| text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    let plain = parse(&printed.replace("\"gradient\"", "\"output\""));
    assert!(matches!(refused(&plain), TrainError::NoGradients(_)));
    let taken = parse(&printed.replace("warpforge.name = \"gw\"", "warpforge.name = \"optimizer.step\""));
    assert!(matches!(refused(&taken), TrainError::Name(name) if name == "optimizer.step"));
    let integers = gradients_as_inputs("i32");
    assert!(matches!(refused(&integers), TrainError::Parameter { .. }));
}
