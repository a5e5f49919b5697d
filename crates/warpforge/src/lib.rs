//! Load a model, compile it, run it, compare it.
//!
//! ```
//! use warpforge::{CompileOptions, Model, Tensor};
//!
//! # fn main() -> warpforge::Result<()> {
//! # let path = tempfile::NamedTempFile::new().unwrap();
//! # std::fs::write(&path, "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
//! #   %0 = stablehlo.add %x, %x : tensor<2xf32>
//! #   func.return %0 : tensor<2xf32>
//! # }").unwrap();
//! let model = Model::load(path)?.compile(&CompileOptions::default())?;
//! let outputs = model.run([("arg0", Tensor::from_slice(&[2], &[1.0f32, 2.5])?)])?;
//! assert_eq!(outputs["out0"].as_slice::<f32>()?, [2.0, 5.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Model`] is read from a file: StableHLO text or bytecode, or PyTorch's `.pt2` archive, told apart by what is in
//! them. [`Model::compile`] gives a [`CompiledModel`] for a device and a tier, and [`CompiledModel::run`] takes inputs by
//! name and gives [`Outputs`] by name. A model whose shapes are not all known is compiled anew for each set of shapes it
//! meets, and the results are kept.
//!
//! # A model in the program itself
//!
//! ```
//! use warpforge::{CompileOptions, Criterion, Model, Tensor, Tolerance};
//!
//! # fn main() -> warpforge::Result<()> {
//! let model = Model::from_text(
//!     "average.mlir",
//!     r#"
//!     func.func @main(%x: tensor<4xf32> {warpforge.name = "x"}) -> (tensor<f32> {warpforge.name = "mean"}) {
//!       %zero = stablehlo.constant dense<0.0> : tensor<f32>
//!       %four = stablehlo.constant dense<4.0> : tensor<f32>
//!       %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
//!           : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
//!       %mean = stablehlo.divide %sum, %four : tensor<f32>
//!       func.return %mean : tensor<f32>
//!     }"#,
//! )?;
//! for input in model.inputs() {
//!     assert_eq!((input.name, input.ty.to_string().as_str()), ("x", "tensor<4xf32>"));
//! }
//! let compiled = model.compile(&CompileOptions::default())?;
//! let outputs = compiled.run([("x", Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0])?)])?;
//! let expected = Tensor::from_slice(&[], &[2.5f32])?;
//! let report = warpforge::compare(&outputs["mean"], &expected, Criterion::new(Tolerance::Ulp { min: 0, max: 1 }))?;
//! assert!(report.passed());
//! # Ok(())
//! # }
//! ```
//!
//! # State
//!
//! An argument whose new value is a result is state: a parameter that is trained, a moment, a cache. The model says which
//! (`tf.aliasing_output` on the argument), or [`Model::alias`] does. [`Model::compile_with_state`] keeps it where the model
//! computes; runs take and give the rest.
//!
//! ```
//! use warpforge::{CompileOptions, Inputs, Model, Tensor};
//!
//! # fn main() -> warpforge::Result<()> {
//! let model = Model::from_text(
//!     "counter.mlir",
//!     r#"
//!     func.func @main(%n: tensor<f32> {warpforge.name = "n", warpforge.role = "state", tf.aliasing_output = 0 : i32},
//!         %by: tensor<f32> {warpforge.name = "by"}) -> tensor<f32> {
//!       %0 = stablehlo.add %n, %by : tensor<f32>
//!       func.return %0 : tensor<f32>
//!     }"#,
//! )?;
//! let counter = model.compile_with_state(&CompileOptions::default(), Inputs::new())?;
//! for _ in 0..3 {
//!     counter.run([("by", Tensor::from_slice(&[], &[2.0f32])?)])?;
//! }
//! let state = counter.state().unwrap();
//! assert_eq!(state.read("n")?.as_slice::<f32>()?, [6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! The folder `examples` has numbered programs that start here and go on: weights, dynamic shapes, tracing.

#![forbid(unsafe_code)]

mod archive;
mod backends;
mod bind;
mod checkpoint;
mod compiled;
mod entry;
mod error;
mod format;
mod inputs;
mod model;
mod outputs;
mod parallel;
mod processes;
mod random;
mod ranks;
mod refined;
mod state;

pub use backends::backends;
pub use checkpoint::GgufError;
pub use compiled::CompiledModel;
pub use error::{Error, Result};
pub use format::{Contents, Format, shown};
pub use inputs::Inputs;
pub use model::{Model, Slot};
pub use outputs::Outputs;
pub use parallel::BUCKET_BYTES;
pub use random::{seeded, zeros};
pub use ranks::RankGroup;
pub use state::ModelState;
pub use warpforge_fusion::Recipe as QuantizationRecipe;
pub use warpforge_fusion::pipeline::Plan;
pub use warpforge_fusion::report::Report as FusionReport;
pub use warpforge_interp::trace;
pub use warpforge_ir::signature::{AliasError, ArgumentRole, ResultRole};
pub use warpforge_ir::{Dim, Module, TensorType};
pub use warpforge_runtime::{
    ClusterValues, CompileOptions, Device, Executable, Lifetime, Observer, Precision, RunOptions, Tier,
    memory, profile,
};
pub use warpforge_snakegrinder::ModuleValue;
pub use warpforge_tensor::compare::{Criterion, NanPolicy, Report, Tolerance, compare};
pub use warpforge_tensor::{ElementType, FloatType, IntType, Scalar, Shape, Tensor, io, summary};
pub use warpforge_train::{Recipe, RecipeError, TrainError};
