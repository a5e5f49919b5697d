//! An error put into one operation on purpose, to see that a comparison finds it.

use std::str::FromStr;

use warpforge::Model;
use warpforge_ir::build::{BuildError, Builder};
use warpforge_ir::nodes::Nodes;
use warpforge_ir::{Module, OpId, OpKind};

use crate::Error;

/// What to do to which operation from when on.
#[derive(Debug, Clone, PartialEq)]
pub struct Inject {
    /// The node of the graph whose values are multiplied.
    pub node: String,
    /// The first step.
    pub step: u64,
    /// How far off they are then, as a part of themselves.
    pub by: f64,
}

impl FromStr for Inject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected NODE@STEP or NODE@STEP=PART, such as addmm_4@7=1e-3".to_owned();
        let (node, rest) = text.rsplit_once('@').ok_or_else(expected)?;
        let (step, by) = rest.split_once('=').unwrap_or((rest, "1e-3"));
        let by: f64 = by.parse().ok().filter(|by: &f64| by.is_finite()).ok_or_else(expected)?;
        Ok(Self { node: node.to_owned(), step: step.parse().map_err(|_| expected())?, by })
    }
}

impl Inject {
    /// The model with the error in it.
    pub(super) fn apply(&self, model: &Model) -> Result<Model, Error> {
        let wrong = |reason: String| Error::Stopped(format!("--inject {}: {reason}", self.node));
        let function = model.function().ok_or_else(|| wrong("the model has no function".to_owned()))?;
        let nodes = Nodes::of(function);
        let Some((_, node)) = nodes.named(&self.node) else {
            let known: Vec<&str> = nodes.list().iter().map(|node| node.name.as_str()).collect();
            let near = warpforge_bench::selection::nearest(&self.node, known.iter().copied());
            let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            return Err(wrong(format!("the graph has no such node{hint}")));
        };
        let (Some(&last), [value]) = (node.ops.last(), node.values.as_slice()) else {
            return Err(wrong("the node has several values; name one that has one".to_owned()));
        };
        let (value, last) = (*value, last);
        let mut module: Module = model.module().clone();
        multiply(&mut module, last, value, 1.0 + self.by)
            .map_err(|error| wrong(format!("its value cannot be multiplied: {error}")))?;
        Ok(model.rewritten(module)?)
    }
}

/// Puts a multiplication behind an operation, as a part of the same node, and has everybody use its result.
fn multiply(
    module: &mut Module,
    op: OpId,
    value: warpforge_ir::ValueId,
    factor: f64,
) -> Result<(), BuildError> {
    let Some(block) = module.op(op).parent_block() else { return Ok(()) };
    let location = module.location(op).map(std::sync::Arc::from);
    let before = module.block_ops(block).len();
    let mut builder = Builder::at(module, block);
    builder.set_location(location);
    let number = builder.splat_like(value, factor)?;
    let product = builder.binary(OpKind::Multiply, value, number)?;
    let added: Vec<OpId> = module.block_ops(block)[before..].to_vec();
    module.replace_uses(value, product);
    if let Some(product) = module.defining_op(product).map(warpforge_ir::OpRef::id) {
        module.set_operand(product, 0, value);
    }
    module.retain_ops(block, |op| !added.contains(op));
    let position = module.block_ops(block).iter().position(|&other| other == op).unwrap_or(0);
    for (at, op) in added.into_iter().enumerate() {
        module.insert_op(block, position + 1 + at, op);
    }
    Ok(())
}
