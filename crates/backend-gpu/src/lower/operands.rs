//! Operand copies for libraries: dense or converted; of constants once, of other values in each run.

use std::collections::HashMap;

use warpforge_codegen::{Options, emit};
use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Cluster, Kind, Operand};
use warpforge_fusion::{Graph, Node, NodeId, Op, View};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Tensor};

use super::task::{Lowering, Task};

/// The graph, extended with copies.
pub(crate) struct Operands {
    pub(crate) graph: Graph,
    setup: Vec<Task>,
    copies: HashMap<(Operand, ElementType), NodeId>,
    /// Values that are constant.
    constant: Vec<bool>,
}

impl Operands {
    pub(super) fn new(graph: Graph) -> Self {
        let constant = graph.nodes.iter().map(|node| matches!(node.op, Op::Constant(_))).collect();
        Self { graph, setup: Vec::new(), copies: HashMap::new(), constant }
    }

    pub(super) fn finish(self) -> (Graph, Vec<Task>) {
        (self.graph, self.setup)
    }

    /// Whether a value is constant.
    pub(crate) fn is_constant(&self, id: NodeId) -> bool {
        self.constant[id.index()]
    }

    /// A dense copy of a view in an element type.
    ///
    /// # Errors
    ///
    /// When there is no kernel for it.
    pub(crate) fn dense(
        &mut self,
        tasks: &mut Vec<Task>,
        options: &Options,
        operand: &Operand,
        element: ElementType,
    ) -> Result<Operand, String> {
        let dims = operand.view.dims.clone();
        let key = (operand.clone(), element);
        let id = match self.copies.get(&key) {
            Some(&id) => id,
            None => {
                let id = self.copy(tasks, options, operand, element)?;
                self.copies.insert(key, id);
                id
            }
        };
        Ok(Operand { value: id, view: View::dense(&dims) })
    }

    fn copy(
        &mut self,
        tasks: &mut Vec<Task>,
        options: &Options,
        operand: &Operand,
        element: ElementType,
    ) -> Result<NodeId, String> {
        let own = self.graph.node(operand.value).element;
        let dims = operand.view.dims.clone();
        let mut steps = vec![BodyStep { op: BodyOp::Load(0), inputs: Vec::new(), element: own }];
        if own != element {
            steps.push(BodyStep { op: BodyOp::Elementwise(Function::Convert), inputs: vec![0], element });
        }
        let body = Body {
            reduced: vec![false; dims.len()],
            loads: vec![operand.clone()],
            steps,
            output: View::dense(&dims),
            dims: dims.clone(),
            also: Vec::new(),
        };
        let op = Op::Elementwise(Function::Convert);
        let node = Node { op, inputs: vec![operand.value], element, dims, origin: None };
        self.add(tasks, options, node, body)
    }

    /// Adds a constant.
    ///
    /// # Errors
    ///
    /// When there are too many values.
    pub(super) fn constant(&mut self, tensor: Tensor) -> Result<NodeId, String> {
        let (element, dims) = (tensor.element_type(), tensor.dims().to_vec());
        self.push(Node { op: Op::Constant(tensor), inputs: Vec::new(), element, dims, origin: None }, true)
    }

    /// Adds a value that a library call writes, which reads `input`.
    ///
    /// # Errors
    ///
    /// When there are too many values.
    pub(super) fn written_by_library(
        &mut self,
        element: ElementType,
        dims: &[usize],
        input: NodeId,
    ) -> Result<NodeId, String> {
        let op = Op::Elementwise(Function::Convert);
        self.push(Node { op, inputs: vec![input], element, dims: dims.to_vec(), origin: None }, false)
    }

    fn push(&mut self, node: Node, constant: bool) -> Result<NodeId, String> {
        let id = NodeId(u32::try_from(self.graph.nodes.len()).map_err(|_| "too many values".to_owned())?);
        self.graph.nodes.push(node);
        self.constant.push(constant);
        Ok(id)
    }

    /// Adds a value computed by a loop: once, where it is one of constants.
    ///
    /// # Errors
    ///
    /// When there is no kernel for it.
    pub(super) fn add(
        &mut self,
        tasks: &mut Vec<Task>,
        options: &Options,
        node: Node,
        body: Body,
    ) -> Result<NodeId, String> {
        let constant = node.inputs.iter().all(|&input| self.is_constant(input));
        let task = self.computed(options, node, body)?;
        let id = task.cluster.output;
        self.constant[id.index()] = constant;
        if constant {
            self.setup.push(task);
        } else {
            tasks.push(task);
        }
        Ok(id)
    }

    /// Adds a value computed by a loop, which is still to be placed.
    ///
    /// # Errors
    ///
    /// When there is no kernel for it.
    pub(super) fn computed(&mut self, options: &Options, node: Node, body: Body) -> Result<Task, String> {
        let id = self.push(node, false)?;
        let cluster = Cluster { kind: Kind::Loop(body), output: id, nodes: vec![id] };
        let emitted = emit(&self.graph, &cluster, options).map_err(|error| error.to_string())?;
        Ok(Task::new(cluster, Lowering::Emitted(emitted)))
    }
}
