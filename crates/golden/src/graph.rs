//! The model that a run was made with: which value of which node a tensor of the run is.

use std::collections::{BTreeMap, HashMap};

use warpforge_ir::nodes::{Node, Nodes};
use warpforge_ir::signature::{ResultRole, Signature};
use warpforge_ir::{Func, Module, OpRef, ValueId};
use warpforge_tensor::Tensor;

use crate::Class;

/// A model to replay operations with.
#[derive(Debug, Clone, Copy)]
pub struct Model<'m> {
    /// What to call it.
    pub name: &'m str,
    /// The name of the function that was run.
    pub entry: &'m str,
    /// The module; its operations name their nodes by their locations.
    pub module: &'m Module,
    /// The values of arguments that come with the model, by name.
    pub weights: &'m BTreeMap<String, Tensor>,
}

/// The model's graph.
pub(crate) struct Graph<'m> {
    pub(crate) func: Func<'m>,
    pub(crate) signature: Signature,
    pub(crate) nodes: Nodes,
    pub(crate) weights: &'m BTreeMap<String, Tensor>,
    values: HashMap<(Class, String), ValueId>,
    activations: HashMap<ValueId, String>,
}

impl<'m> Graph<'m> {
    /// The graph of a model's entry function.
    pub(crate) fn new(model: &Model<'m>) -> Result<Self, String> {
        let func = model.module.function(model.entry);
        let func = func.ok_or_else(|| format!("{} has no function @{}", model.name, model.entry))?;
        let nodes = Nodes::of(func);
        if nodes.list().is_empty() {
            return Err(format!("the operations of {} do not name the nodes they came from", model.name));
        }
        let signature = Signature::of(func);
        let mut graph = Self {
            func,
            signature,
            nodes,
            weights: model.weights,
            values: HashMap::new(),
            activations: HashMap::new(),
        };
        graph.name_activations();
        graph.name_results();
        Ok(graph)
    }

    fn name_activations(&mut self) {
        for node in self.nodes.list() {
            for (name, value) in node.named_values() {
                self.values.insert((Class::Activations, name.clone()), value);
                self.activations.insert(value, name);
            }
        }
    }

    fn name_results(&mut self) {
        let module = self.func.op().module();
        let end = self.func.body().and_then(|body| module.terminator(body));
        let returned = end.map(OpRef::operands).unwrap_or_default();
        for (result, &value) in self.signature.results.iter().zip(returned) {
            let of = result.of.clone().unwrap_or_else(|| result.name.clone());
            let key = match result.role {
                ResultRole::Gradient => (Class::Gradients, of),
                ResultRole::Loss => {
                    self.values.insert((Class::Losses, result.name.clone()), value);
                    (Class::Outputs, result.name.clone())
                }
                ResultRole::Output | ResultRole::Buffer => (Class::Outputs, result.name.clone()),
            };
            self.values.insert(key, value);
        }
    }

    /// The value that a tensor of a run is.
    pub(crate) fn value(&self, class: Class, name: &str) -> Option<ValueId> {
        self.values.get(&(class, name.to_owned())).copied()
    }

    /// The name under which a run saves a value among the activations.
    pub(crate) fn activation(&self, value: ValueId) -> Option<&str> {
        self.activations.get(&value).map(String::as_str)
    }

    /// The node that computes a value, with its position in execution order.
    pub(crate) fn node_of(&self, value: ValueId) -> Option<(usize, &Node)> {
        let op = self.func.op().module().defining_op(value)?;
        self.nodes.containing(op.id())
    }
}
