//! From the exported graph to StableHLO.
//!
//! # How it works
//!
//! [`Archive::import`](crate::Archive::import) makes `@main`, binds its arguments to the graph's inputs and walks the
//! nodes in order. For each node it
//!
//! 1. reads the arguments, by name, as `Value`s (`args`),
//! 2. looks its target up in the registry (`ops`) and calls the lowering, which builds operations through `Cx`,
//! 3. holds what came back against the type and shape that PyTorch recorded for the node,
//! 4. binds the results to the names of the node's outputs.
//!
//! Every operation built for a node has the location `loc("NODE"("FILE":LINE:0))`, and the last operation of a node's
//! location gives its value.
//!
//! A node that cannot be lowered exactly is noted in a [`Report`], its results are replaced by placeholders so that the
//! rest of the graph is looked at too, and the import fails with the whole list.
//!
//! # Adding a lowering
//!
//! `docs/adding-a-lowering.md` says how, step by step. Each family of operations has one file in `ops`, with a table
//!
//! ```text
//! pub(super) const TABLE: &[Op] = &[
//!     op("aten.tril.default", tril),      // gives new tensors
//!     view("aten.permute.default", permute), // gives its argument, or a view of it
//! ];
//! ```
//!
//! and one function for each entry or group of entries:
//!
//! ```text
//! fn tril(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
//!     let x = args.tensor("self")?;             // names are those of PyTorch's operator schema
//!     let diagonal = args.int_or("diagonal", 0)?; // with the schema's default
//!     ...                                        // build with cx.*, on tensors of known dtype and dims
//!     one(result)
//! }
//! ```
//!
//! - The registry is the union of the tables. Every entry has a case with PyTorch's own result in `tests/aten/cases`.
//! - An in-place variant (`aten.relu_.default`) needs no entry: it is the functional one followed by a write to `self`.
//! - An argument that is present and that the lowering does not ask for is refused, so ask for all of them, and call
//!   `args.ignore` for those that cannot change the result.
//! - What cannot be lowered exactly is refused with a reason: `refuse("...")`.
//! - `cx` neither promotes nor broadcasts by itself: `promote` has PyTorch's rules.

mod alias;
mod args;
mod cx;
mod finish;
pub(crate) mod graph;
mod ops;
mod promote;
mod refusal;
mod report;
mod signature;
mod strides;
mod value;

use std::collections::BTreeMap;

pub use report::Report;
use warpforge_ir::signature::Signature;
use warpforge_ir::{DenseElements, Module, embed};
use warpforge_tensor::Tensor;

use crate::Error;

/// Whether there is a lowering of an operation such as `aten.add.Tensor`, which may still refuse some arguments.
#[must_use]
pub fn has_lowering(target: &str) -> bool {
    ops::lookup(target).is_some() || ops::higher_order::lookup(target).is_some()
}

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The shapes of user inputs, by name. Where they are given, dynamic dimensions get their values from them, and the
    /// module has no dynamic dimension left; all inputs with dynamic dimensions must be there then.
    pub shapes: Option<BTreeMap<String, Vec<u64>>>,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The module: `@main` takes the weights and the user inputs.
    pub module: Module,
    /// The weights, by the names that the module's signature has; they share the archive's bytes.
    pub weights: BTreeMap<String, Tensor>,
}

impl Imported {
    /// The module with the weights as constants in it, which share the archive's bytes: `@main` takes the user inputs.
    ///
    /// # Errors
    ///
    /// When a weight is not of its argument's type.
    pub fn into_self_contained(mut self) -> Result<Module, Error> {
        let graph = |what: String| Error::Graph(what);
        let main = self.module.function("main").ok_or_else(|| graph("there is no @main".to_owned()))?;
        let mut constants = BTreeMap::new();
        for (position, argument) in Signature::of(main).weights() {
            let weight = |what: String| Error::Weight { name: argument.name.clone(), what };
            let tensor =
                self.weights.get(&argument.name).ok_or_else(|| weight("it is missing".to_owned()))?;
            let ty = argument.ty.as_tensor().ok_or_else(|| weight("it is no tensor".to_owned()))?;
            let constant = DenseElements::raw(ty.clone(), tensor.blob());
            constants.insert(position, constant.map_err(|error| weight(error.to_string()))?);
        }
        embed(&mut self.module, "main", constants).map_err(|error| graph(error.to_string()))?;
        Ok(self.module)
    }
}
