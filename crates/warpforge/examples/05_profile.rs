//! Which operations of a run took the time.
//!
//!     cargo run -p warpforge --example 05_profile

use std::collections::BTreeMap;
use std::time::Duration;

use warpforge::{CompileOptions, Model, RunOptions, seeded};

const PROGRAM: &str = "func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.add %0, %a : tensor<64x64xf32>
  %2 = stablehlo.tanh %1 : tensor<64x64xf32>
  func.return %2 : tensor<64x64xf32>
}
";

fn main() -> warpforge::Result<()> {
    let model = Model::from_text("layer.mlir", PROGRAM)?.compile(&CompileOptions::default())?;
    let slots = model.model().inputs();
    let inputs = [seeded(slots[0].ty, 1, 0)?, seeded(slots[1].ty, 1, 1)?];
    let outputs = model.run_with(inputs, &RunOptions { profile: true, ..RunOptions::default() })?;
    let mut times: BTreeMap<&str, Duration> = BTreeMap::new();
    for event in &outputs.profile().events {
        *times.entry(&event.name).or_default() += event.duration;
    }
    for (name, time) in times {
        println!("{name}: {time:?}");
    }
    Ok(())
}
