//! Operations that the reference evaluates on the host, with copies of operands and results.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_interp::{Interpreter, Observer, Options, Value};
use warpforge_ir::OpKind;
use warpforge_runtime::{CustomCalls, Fallback};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::{DeviceLayout, ExecutionStep};
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};
use crate::observe::RunObserver;

/// A host step.
pub(crate) struct HostStep {
    op: Arc<OpaqueOp>,
    /// Custom calls of the host.
    calls: CustomCalls,
    /// Why it is not on the device, if known.
    reason: Option<String>,
    inputs: Vec<(Address, ElementType, Vec<usize>)>,
    /// Position, address and size of the results that are used.
    results: Vec<(usize, Address, usize)>,
}

impl HostStep {
    /// The operation of a node.
    pub(crate) fn new(
        graph: &Graph,
        (node, operands): (NodeId, &[Operand]),
        reason: Option<String>,
        calls: &CustomCalls,
        layout: &DeviceLayout,
    ) -> Result<Self> {
        let name = || graph.node(node).op.name();
        let op = graph.reference(node);
        let op = op.ok_or_else(|| GpuError::Other(format!("{} cannot run on the host", name())))?;
        let typed = |operand: &Operand| {
            (layout.address(operand.value), graph.node(operand.value).element, operand.view.dims.clone())
        };
        let given = graph.results(node).into_iter().map(|id| match graph.node(id).op {
            Op::Result(at) => (at, layout.address(id), graph.node(id).bytes()),
            _ => (0, layout.address(id), graph.node(id).bytes()),
        });
        let (inputs, results) = (operands.iter().map(typed).collect(), given.collect());
        Ok(Self { op, calls: calls.clone(), reason, inputs, results })
    }
}

impl HostStep {
    fn compute(&self, stream: &Stream, observer: Option<Arc<dyn Observer>>) -> Result<()> {
        let other = |error: &dyn std::fmt::Display| GpuError::Other(format!("{}: {error}", self.op.name));
        let mut values = Vec::new();
        for (address, element, dims) in &self.inputs {
            let shape = Shape::new(dims.clone()).map_err(|error| other(&error))?;
            let mut tensor = Tensor::zeros(*element, shape).map_err(|error| other(&error))?;
            stream.read(*address, tensor.bytes_mut())?;
            values.push(Value::Tensor(tensor));
        }
        let options = Options { observer, ..self.calls.options() };
        let run = Interpreter::new(&self.op.slice.module, options).run(&self.op.function, values);
        let given = run.map_err(|error| other(&error))?;
        for &(at, address, bytes) in self.results.iter().filter(|result| result.1 != 0) {
            let value = given.get(at).ok_or_else(|| other(&"a result is missing"))?;
            let tensor = value.as_tensor().map_err(|error| other(&error))?;
            if tensor.bytes().len() != bytes {
                return Err(other(&"a result has another size"));
            }
            stream.write(address, tensor.bytes())?;
        }
        Ok(())
    }
}

impl ExecutionStep for HostStep {
    fn start(&self, stream: &Stream) -> Result<()> {
        self.compute(stream, None)
    }

    fn start_observed(&self, stream: &Stream, observer: &Arc<RunObserver>) -> Result<()> {
        self.compute(stream, Some(observer.inside(&self.op)))
    }

    fn is_capturable(&self) -> bool {
        false
    }

    fn is_reference(&self) -> bool {
        // A call of the host is where it belongs.
        self.calls.is_empty() || self.op.name != OpKind::CustomCall.name()
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        if !self.is_reference() {
            return Vec::new();
        }
        let read = |(_, element, dims): &(Address, ElementType, Vec<usize>)| {
            dims.iter().product::<usize>() * element.byte_width()
        };
        let read: usize = self.inputs.iter().map(read).sum();
        let written: usize = self.results.iter().map(|&(_, _, bytes)| bytes).sum();
        let bytes = (read + written) as u64;
        vec![Fallback { operation: self.op.name.clone(), reason: self.reason.clone(), bytes }]
    }

    fn launches(&self) -> u64 {
        0
    }

    fn name(&self) -> String {
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{} (reference{reason})", self.op.name)
    }
}
