//! Training steps: a module that computes a loss and gradients becomes one that updates its parameters.
//!
//! [`step`] appends the optimizer to the entry function as operations of the module: accumulation over micro-batches, clipping by the
//! global norm, the learning-rate schedule and the update of every parameter. Parameters, moments and counters are arguments that
//! are aliased with results: an engine keeps them where it computes, and a run takes a batch and gives the loss.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let text = r#"func.func @main(%w: tensor<2xf32> {warpforge.name = "w", warpforge.role = "parameter"}, %x: tensor<2xf32>)
//! #   -> (tensor<2xf32> {warpforge.name = "grad.w", warpforge.role = "gradient", warpforge.of = "w"}) {
//! #   func.return %x : tensor<2xf32> }"#;
//! # let source = warpforge_diag::Source::new("m", text);
//! # let module = warpforge_snakeburger::text::parse(&source, &Default::default()).unwrap();
//! let recipe = "adamw,lr=3e-4,weight-decay=0.01,clip=1,schedule=linear,warmup=100,total=1000".parse()?;
//! let step = warpforge_train::step(&module, "main", &recipe)?;
//! # let _ = step;
//! # Ok(())
//! # }
//! ```
//!
//! Updates follow PyTorch's `torch.optim` operation by operation. Scalars such as the learning rate are computed in f64, as PyTorch
//! computes them on the host, and rounded once.

#![forbid(unsafe_code)]

mod eight_bit;
mod emit;
mod error;
mod optimizer;
mod recipe;
mod reduce;
mod schedule;
mod step;

pub use error::{RecipeError, TrainError};
pub use optimizer::Optimizer;
pub use recipe::Recipe;
pub use reduce::{REDUCE_DONE, REDUCE_START};
pub use schedule::{Schedule, Shape};
pub use step::{parallel_step, step};
