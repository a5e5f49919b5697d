//! An observer that keeps the value of every node of the graph that a function was lowered from.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use warpforge_ir::nodes::Nodes;
use warpforge_ir::{Func, OpId, OpRef};
use warpforge_tensor::Tensor;

use crate::{Observer, Value};

/// Keeps what each node gives: the results of its last operation.
pub struct NodeValues {
    /// The last operation of each node, with the node's name.
    last: HashMap<OpId, String>,
    kept: Mutex<Vec<(String, Tensor)>>,
}

impl NodeValues {
    /// An observer of a run of this function.
    #[must_use]
    pub fn new(func: Func<'_>) -> Self {
        let nodes = Nodes::of(func);
        let last = nodes.list().iter().filter_map(|node| Some((*node.ops.last()?, node.name.clone())));
        Self { last: last.collect(), kept: Mutex::default() }
    }

    /// The values so far, in the order of execution: `name`, or `name.0`, `name.1`, … of a node with several.
    pub fn take(&self) -> Vec<(String, Tensor)> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for NodeValues {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        let Some(name) = self.last.get(&op.id()) else { return Ok(()) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, value) in results.iter().enumerate() {
            let Value::Tensor(tensor) = value else { continue };
            let name = if results.len() == 1 { name.clone() } else { format!("{name}.{index}") };
            kept.push((name, tensor.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interpreter, Options};
    use std::sync::Arc;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    #[test]
    fn a_node_has_the_value_of_its_last_operation() {
        let source = Source::new(
            "m.mlir",
            "func.func @main() -> tensor<i32> {
  %a = stablehlo.constant dense<2> : tensor<i32> loc(\"double\"(\"m.py\":3:0))
  %b = stablehlo.add %a, %a : tensor<i32> loc(\"double\"(\"m.py\":3:0))
  %c = stablehlo.negate %b : tensor<i32> loc(\"neg\")
  func.return %c : tensor<i32>
}",
        );
        let module = text::parse(&source, &text::Options { keep_locations: true }).expect("a valid module");
        let values = Arc::new(NodeValues::new(module.function("main").expect("there is one")));
        let options = Options { observer: Some(values.clone()), ..Options::default() };
        Interpreter::new(&module, options).run("main", Vec::new()).expect("it runs");
        let found: Vec<(String, i128)> =
            values.take().into_iter().map(|(name, tensor)| (name, tensor.get(0).to_i128())).collect();
        assert_eq!(found, [("double".to_owned(), 4), ("neg".to_owned(), -4)]);
    }
}
