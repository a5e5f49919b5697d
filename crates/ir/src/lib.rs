//! StableHLO modules in memory.
//!
//! # How it is built
//!
//! - [`Module`] owns everything in four arenas: operations, values, blocks, regions. [`OpId`], [`ValueId`],
//!   [`BlockId`] and [`RegionId`] are dense `u32` keys, so an evaluator or a pass keeps a `Vec` indexed by
//!   `ValueId::index()`. The module itself is an operation ([`Module::root`]), and so is a function ([`Func`]).
//! - [`OpRef`] reads one operation: `kind`, operands, results, attributes (with the table's defaults), regions.
//! - [`Type`] and [`Attribute`] are plain values, cheap to clone and compared by content. Element types and quantized
//!   types are those of `warpforge-tensor`.
//! - [`table`] declares every operation once. [`OpKind`] is the name, [`OpKind::def`] the declaration.
//! - Constants are [`DenseElements`]: one splat element or the bytes of all, shared and never copied ([`Blob`]).
//!
//! # Walking a module
//!
//! ```
//! use warpforge_ir::{Module, OpKind, OpRef};
//!
//! fn visit(op: OpRef<'_>, depth: usize) {
//!     let operands = op.operands(); // &[ValueId]; types: op.operand_type(0), op.operand_tensor(0)
//!     let results: Vec<_> = op.results().collect();
//!     match op.kind() {
//!         Some(OpKind::Transpose) => {
//!             let permutation = op.attr_i64s("permutation");
//!             assert!(permutation.is_some() && operands.len() == 1 && results.len() == 1);
//!         }
//!         Some(OpKind::Constant) => {
//!             let _bytes = op.attr_elements("value").and_then(|value| value.bytes());
//!         }
//!         _ => {}
//!     }
//!     // Regions capture outer values: they refer to them by the same `ValueId`.
//!     for &region in op.regions() {
//!         for &block in op.module().blocks(region) {
//!             let _arguments = op.module().arguments(block);
//!             for inner in op.module().ops_in(block) {
//!                 visit(inner, depth + 1);
//!             }
//!         }
//!     }
//! }
//!
//! let module = Module::new();
//! for function in module.functions() {
//!     visit(function.op(), 0);
//! }
//! ```
//!
//! A block of a region ends with `stablehlo.return` ([`OpKind::Return`]), of a function with `func.return`
//! ([`OpKind::FuncReturn`]): [`Module::terminator`] gives it, and its operands are what the block gives back.
//!
//! # Conventions that evaluators rely on
//!
//! - Attributes are in the one form that the table names, whatever a file had: see [`table::AttrKind`]. An attribute
//!   left out has the table's default through [`OpRef::attr`]; those without a default (`window_strides?`) are `None`
//!   and mean what the specification says (ones, zeros).
//! - `padding`, `source_target_pairs` and `replica_groups` are matrices: [`OpRef::attr_rows`].
//! - Groups of operands (`inputs*`, `init_values*`) are split by [`OpDef::operand_groups`](table::OpDef::operand_groups).
#![forbid(unsafe_code)]

pub mod attr;
pub mod build;
pub mod calls;
mod embed;
pub mod legalize;
mod module;
pub mod nodes;
mod ops;
pub mod print;
pub mod refine;
pub mod signature;
pub mod slice;
pub mod table;
pub mod types;
pub mod verify;

pub use attr::{AttrName, Attribute, DenseElements, Dict};
pub use embed::{EmbedError, embed};
pub use module::{BlockId, Func, Module, OpId, OpRef, RegionId, ValueDef, ValueId};
pub use table::OpKind;
pub use types::{Dim, Element, ElementType, FunctionType, TensorType, Type};
pub use verify::verify;
pub use warpforge_tensor::Blob;
