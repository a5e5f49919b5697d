//! StableHLO in and out: MLIR text in the pretty and the generic form, and bytecode.
//!
//! ```
//! use warpforge_diag::Source;
//! use warpforge_snakeburger::text;
//!
//! let source = Source::new("add.mlir", "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
//!   %0 = stablehlo.add %a, %a : tensor<2xf32>
//!   return %0 : tensor<2xf32>
//! }");
//! let module = text::parse(&source, &text::Options::default()).unwrap();
//! assert!(module.function("main").is_some());
//! let printed = warpforge_ir::print::print(&module);
//! assert!(printed.contains("%0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>"));
//! ```
#![forbid(unsafe_code)]

pub mod bytecode;
mod elements;
mod load;
mod returns;
pub mod text;

pub use load::{Loaded, load, load_bytecode, load_file};
