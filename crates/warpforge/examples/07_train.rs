//! A line fitted to points: a graph with a loss and gradients becomes a training step, whose parameters stay where it computes.
//!
//!     cargo run -p warpforge --example 07_train

use std::collections::BTreeMap;

use warpforge::{CompileOptions, Inputs, Model, Tensor};

/// The mean squared error of `a x + b`, and its derivatives by `a` and `b`. PyTorch models give such a graph with
/// `python -m warpforge.trace --train`.
const LOSS: &str = r#"func.func @main(
    %a: tensor<f32> {warpforge.name = "a", warpforge.role = "parameter"},
    %b: tensor<f32> {warpforge.name = "b", warpforge.role = "parameter"},
    %x: tensor<8xf32> {warpforge.name = "x"}, %y: tensor<8xf32> {warpforge.name = "y"}
  ) -> (tensor<f32> {warpforge.name = "loss", warpforge.role = "loss"},
    tensor<f32> {warpforge.name = "grad.a", warpforge.role = "gradient", warpforge.of = "a"},
    tensor<f32> {warpforge.name = "grad.b", warpforge.role = "gradient", warpforge.of = "b"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %eight = stablehlo.constant dense<8.0> : tensor<f32>
  %quarter = stablehlo.constant dense<0.25> : tensor<f32>
  %slope = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %offset = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %ax = stablehlo.multiply %slope, %x : tensor<8xf32>
  %line = stablehlo.add %ax, %offset : tensor<8xf32>
  %error = stablehlo.subtract %line, %y : tensor<8xf32>
  %square = stablehlo.multiply %error, %error : tensor<8xf32>
  %times = stablehlo.multiply %error, %x : tensor<8xf32>
  %s = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %sa = stablehlo.reduce(%times init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %sb = stablehlo.reduce(%error init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %eight : tensor<f32>
  %ga = stablehlo.multiply %sa, %quarter : tensor<f32>
  %gb = stablehlo.multiply %sb, %quarter : tensor<f32>
  func.return %loss, %ga, %gb : tensor<f32>, tensor<f32>, tensor<f32>
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut model = Model::from_text("line.mlir", LOSS)?.train(&"sgd,lr=0.1,momentum=0.9".parse()?)?;
    let start = Tensor::from_slice(&[], &[0.0f32])?;
    model.bind_weights(&BTreeMap::from([("a".to_owned(), start.clone()), ("b".to_owned(), start)]))?;
    let step = model.compile_with_state(&CompileOptions::default(), Inputs::new())?;

    let x: Vec<f32> = (0..8).map(|at| at as f32 / 8.0).collect();
    let y: Vec<f32> = x.iter().map(|x| 3.0 * x - 1.0).collect();
    for number in 1..=200 {
        let outputs =
            step.run([("x", Tensor::from_slice(&[8], &x)?), ("y", Tensor::from_slice(&[8], &y)?)])?;
        if number % 40 == 0 {
            println!("step {number}: loss {:?}", outputs["loss"].get(0));
        }
    }
    if let Some(state) = step.state() {
        println!("y = {:?} x + {:?}", state.read("a")?.get(0), state.read("b")?.get(0));
    }
    Ok(())
}
