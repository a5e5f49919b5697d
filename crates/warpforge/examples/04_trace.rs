//! Every value of a run as a line of JSON, and the operation that makes the first NaN.
//!
//!     cargo run -p warpforge --example 04_trace

use std::sync::Arc;

use warpforge::trace::{Trace, TraceOptions};
use warpforge::{CompileOptions, Model, RunOptions, Tensor, Tier};

const PROGRAM: &str = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.subtract %x, %x : tensor<3xf32>
  %1 = stablehlo.divide %0, %0 : tensor<3xf32>
  %2 = stablehlo.tanh %1 : tensor<3xf32>
  func.return %2 : tensor<3xf32>
}
";

fn main() -> warpforge::Result<()> {
    // Only this tier shows single values: the others fuse them away.
    let options = CompileOptions { tier: Some(Tier::Correctness), ..CompileOptions::default() };
    let model = Model::from_text("zero_by_zero.mlir", PROGRAM)?.compile(&options)?;
    let options = TraceOptions { break_on_nan: true, ..TraceOptions::default() };
    let trace = Arc::new(Trace::new(std::io::stdout(), Some(model.model().source().clone()), options));
    let run = RunOptions { observer: Some(trace), ..RunOptions::default() };
    match model.run_with([Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0])?], &run) {
        Ok(_) => println!("no NaN"),
        Err(error) => println!("{error}"),
    }
    Ok(())
}
