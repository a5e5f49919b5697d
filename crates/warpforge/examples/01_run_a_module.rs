//! A module in the program itself: read, compiled, run.
//!
//!     cargo run -p warpforge --example 01_run_a_module

use warpforge::{CompileOptions, Model, Tensor};

const SOFTMAX: &str = r#"
func.func @main(%x: tensor<2x3xf32> {warpforge.name = "logits"})
    -> (tensor<2x3xf32> {warpforge.name = "probabilities"}) {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %largest = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %below = stablehlo.subtract %x, %largest : tensor<2x3xf32>
  %powers = stablehlo.exponential %below : tensor<2x3xf32>
  %sum = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %total = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %probabilities = stablehlo.divide %powers, %total : tensor<2x3xf32>
  func.return %probabilities : tensor<2x3xf32>
}
"#;

fn main() -> warpforge::Result<()> {
    let model = Model::from_text("softmax.mlir", SOFTMAX)?.compile(&CompileOptions::default())?;
    let logits = Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 0.0, 0.0, 10.0])?;
    let outputs = model.run([("logits", logits)])?;
    println!("{} at tier {}", model.target().device, model.target().tier);
    println!("{:?}", outputs["probabilities"]);
    Ok(())
}
