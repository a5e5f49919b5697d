//! Two ways to compute the same thing, held against each other by a tolerance.
//!
//!     cargo run -p warpforge --example 03_compare

use warpforge::{CompileOptions, Criterion, Model, Tolerance, compare, seeded};

fn model(body: &str) -> warpforge::Result<Model> {
    let text = format!("func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {{\n{body}\n}}");
    Model::from_text("tanh.mlir", text)
}

fn main() -> warpforge::Result<()> {
    let options = CompileOptions::default();
    let direct = model(
        "%0 = stablehlo.tanh %x : tensor<1000xf32>
         func.return %0 : tensor<1000xf32>",
    )?
    .compile(&options)?;
    let by_exponentials = model(
        "%p = stablehlo.exponential %x : tensor<1000xf32>
         %n = stablehlo.negate %x : tensor<1000xf32>
         %m = stablehlo.exponential %n : tensor<1000xf32>
         %above = stablehlo.subtract %p, %m : tensor<1000xf32>
         %below = stablehlo.add %p, %m : tensor<1000xf32>
         %0 = stablehlo.divide %above, %below : tensor<1000xf32>
         func.return %0 : tensor<1000xf32>",
    )?
    .compile(&options)?;

    let x = seeded(direct.model().inputs()[0].ty, 1, 0)?;
    let expected = direct.run([x.clone()])?;
    let actual = by_exponentials.run([x])?;
    let criterion = Criterion::new(Tolerance::Scaled { rtol: 1e-5 });
    let report = compare(&actual["out0"], &expected["out0"], criterion)?;
    println!("passed: {}", report.passed());
    println!("largest difference {:e}, {} representable numbers apart", report.max_absolute, report.max_ulp);
    for (low, high, count) in report.ulps.occupied() {
        println!("  {low} to {high} ULP: {count}");
    }
    Ok(())
}
