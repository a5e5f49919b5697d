//! Programs that would not end are refused before they run.

use warpforge_diag::Source;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Tensor};

/// Functions of which each but the last calls the next one twice.
fn doubling(count: usize) -> String {
    let mut text = String::new();
    for index in 0..count {
        text.push_str(&format!("func.func @f{index}(%a: tensor<f32>) -> tensor<f32> {{\n"));
        let (first, second) = if index + 1 < count {
            let call = |value| format!("func.call @f{}({value}) : (tensor<f32>) -> tensor<f32>", index + 1);
            (call("%a"), call("%0"))
        } else {
            ("stablehlo.add %a, %a : tensor<f32>".to_owned(), "stablehlo.add %a, %0 : tensor<f32>".to_owned())
        };
        text.push_str(&format!("  %0 = {first}\n  %1 = {second}\n  return %1 : tensor<f32>\n}}\n"));
    }
    text
}

fn run(text: &str) -> Result<Vec<Value>, String> {
    let module = text::parse(&Source::new("m", text), &text::Options::default()).expect("a module");
    assert!(warpforge_ir::verify(&module).is_empty());
    let input = Tensor::scalar(ElementType::F32, Scalar::Float(1.0)).expect("a scalar");
    Interpreter::new(&module, Options::default())
        .run("f0", vec![Value::Tensor(input)])
        .map_err(|error| error.to_string())
}

#[test]
fn calls_that_double_are_bounded() {
    let refused = run(&doubling(41)).expect_err("2^40 calls");
    assert!(refused.contains("@f0 makes calls that add up to more than 67108864 operations"), "{refused}");
    assert_eq!(run(&doubling(3)).expect("8 additions").len(), 1);
}
