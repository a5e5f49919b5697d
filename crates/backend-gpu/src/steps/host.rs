//! Operations that the reference evaluates on the host: operands are copied out, results back.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_interp::{Interpreter, Observer, Options, Value};
use warpforge_runtime::Fallback;
use warpforge_runtime::memory_plan::results;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::{Layout, Step};
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};
use crate::watch::Watch;

/// An operation on the reference.
pub(crate) struct Host {
    part: Arc<OpaqueOp>,
    /// Why it is not on the device, where more is known than that nothing there computes it.
    why: Option<String>,
    inputs: Vec<(Address, ElementType, Vec<usize>)>,
    /// The results that something reads: their positions, addresses and bytes.
    results: Vec<(usize, Address, usize)>,
}

impl Host {
    /// The operation of a node.
    pub(crate) fn new(
        graph: &Graph,
        (node, operands): (NodeId, &[Operand]),
        why: Option<String>,
        layout: &Layout,
    ) -> Result<Self> {
        let Op::Opaque(part) = &graph.node(node).op else {
            return Err(GpuError::Other(format!("{} cannot run on the host", graph.node(node).op.name())));
        };
        let typed = |operand: &Operand| {
            (layout.address(operand.value), graph.node(operand.value).element, operand.view.dims.clone())
        };
        let given = results(graph, node).into_iter().filter_map(|id| match graph.node(id).op {
            Op::Result(at) => Some((at, layout.address(id), graph.node(id).bytes())),
            _ => None,
        });
        Ok(Self {
            part: Arc::clone(part),
            why,
            inputs: operands.iter().map(typed).collect(),
            results: given.collect(),
        })
    }
}

impl Host {
    fn compute(&self, stream: &Stream, observer: Option<Arc<dyn Observer>>) -> Result<()> {
        let other = |error: &dyn std::fmt::Display| GpuError::Other(format!("{}: {error}", self.part.name));
        let mut values = Vec::new();
        for (address, element, dims) in &self.inputs {
            let shape = Shape::new(dims.clone()).map_err(|error| other(&error))?;
            let mut tensor = Tensor::zeros(*element, shape).map_err(|error| other(&error))?;
            stream.read(*address, tensor.bytes_mut())?;
            values.push(Value::Tensor(tensor));
        }
        let options = Options { observer, ..Options::default() };
        let run = Interpreter::new(&self.part.slice.module, options).run(&self.part.function, values);
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

impl Step for Host {
    fn start(&self, stream: &Stream) -> Result<()> {
        self.compute(stream, None)
    }

    fn start_watched(&self, stream: &Stream, watch: &Arc<Watch>) -> Result<()> {
        self.compute(stream, Some(watch.inside(&self.part)))
    }

    fn recordable(&self) -> bool {
        false
    }

    fn is_reference(&self) -> bool {
        true
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        let read = |(_, element, dims): &(Address, ElementType, Vec<usize>)| {
            dims.iter().product::<usize>() * element.byte_width()
        };
        let read: usize = self.inputs.iter().map(read).sum();
        let written: usize = self.results.iter().map(|&(_, _, bytes)| bytes).sum();
        let bytes = (read + written) as u64;
        vec![Fallback { operation: self.part.name.clone(), reason: self.why.clone(), bytes }]
    }

    fn launches(&self) -> u64 {
        0
    }

    fn name(&self) -> String {
        let why = self.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        format!("{} (reference{why})", self.part.name)
    }
}
