//! Grids of processes, each on its own GPU.

use std::sync::{Arc, mpsc};

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_interp::ProcessId;
use warpforge_runtime::{Executable, Fallback, RunOptions};
use warpforge_tensor::{ElementType, Shape, Tensor};

use crate::collectives::Communicators;
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};
use crate::executable::GpuExecutable;
use crate::steps::{DeviceLayout, ExecutionStep};

/// Compiled processes of a grid.
pub(crate) struct CompiledProcesses {
    /// Executables with their ids, in replica-major order.
    pub(crate) all: Vec<(ProcessId, GpuExecutable)>,
    pub(crate) communicators: Arc<Communicators>,
    pub(crate) name: String,
}

impl CompiledProcesses {
    /// Runs each process on its own thread; inputs and results are concatenated.
    pub(crate) fn run(&self, mut inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let mut each: Vec<Vec<Tensor>> = Vec::new();
        for (_, compiled) in &self.all {
            let count = compiled.program().inputs().len();
            if inputs.len() < count {
                return Err(GpuError::Other("the processes take more inputs than are given".to_owned()));
            }
            let rest = inputs.split_off(count);
            each.push(std::mem::replace(&mut inputs, rest));
        }
        let (sender, receiver) = mpsc::channel();
        let mut given: Vec<Option<Vec<Tensor>>> = vec![None; self.all.len()];
        let mut failure = None;
        std::thread::scope(|scope| {
            for (at, ((_, compiled), inputs)) in self.all.iter().zip(&each).enumerate() {
                let sender = sender.clone();
                scope.spawn(move || {
                    let outcome = compiled.run(inputs, &RunOptions::default());
                    // The receiver lives until all senders have sent.
                    let _ = sender.send((at, outcome));
                });
            }
            drop(sender);
            for (at, outcome) in receiver {
                match outcome {
                    Ok(outcome) => given[at] = Some(outcome.outputs),
                    Err(error) => {
                        let ProcessId { replica, partition } = self.all[at].0;
                        // Only the first failure is reported; the others follow from it.
                        if failure.is_none() {
                            failure = Some(format!("replica {replica}, partition {partition}: {error}"));
                            for communicator in self.communicators.all() {
                                scope.spawn(move || communicator.abort());
                            }
                        }
                    }
                }
            }
            if failure.is_some() {
                self.all.iter().for_each(|(_, compiled)| compiled.forget_recording());
            }
        });
        match failure {
            Some(failure) => Err(GpuError::Other(failure)),
            None => Ok(given.into_iter().flatten().flatten().collect()),
        }
    }
}

/// The step that runs a grid; inputs and results pass through the host.
pub(crate) struct ProcessGroupStep {
    processes: Arc<CompiledProcesses>,
    inputs: Vec<(Address, ElementType, Vec<usize>)>,
    /// Position, address and size of the results that are used.
    results: Vec<(usize, Address, usize)>,
}

impl ProcessGroupStep {
    /// The grid of a node; `order` maps its inputs.
    pub(crate) fn new(
        processes: &Arc<CompiledProcesses>,
        graph: &Graph,
        (node, operands): (NodeId, &[Operand]),
        order: &[usize],
        layout: &DeviceLayout,
    ) -> Result<Self> {
        let missing = || GpuError::Other("an operand of the processes is missing".to_owned());
        let input = |&at: &usize| {
            let operand = operands.get(at).ok_or_else(missing)?;
            let element = graph.node(operand.value).element;
            Ok((layout.address(operand.value), element, operand.view.dims.clone()))
        };
        let given = graph.results(node).into_iter().filter_map(|id| match graph.node(id).op {
            Op::Result(at) => Some((at, layout.address(id), graph.node(id).bytes())),
            _ => None,
        });
        Ok(Self {
            processes: Arc::clone(processes),
            inputs: order.iter().map(input).collect::<Result<_>>()?,
            results: given.collect(),
        })
    }
}

impl ExecutionStep for ProcessGroupStep {
    fn start(&self, stream: &Stream) -> Result<()> {
        let other = |error: warpforge_tensor::Error| GpuError::Other(error.to_string());
        let mut inputs = Vec::new();
        for (address, element, dims) in &self.inputs {
            let shape = Shape::new(dims.clone()).map_err(other)?;
            let mut tensor = Tensor::zeros(*element, shape).map_err(other)?;
            stream.read(*address, tensor.bytes_mut())?;
            inputs.push(tensor);
        }
        let given = self.processes.run(inputs)?;
        for &(at, address, bytes) in self.results.iter().filter(|result| result.1 != 0) {
            let tensor = given.get(at).filter(|tensor| tensor.bytes().len() == bytes);
            let tensor =
                tensor.ok_or_else(|| GpuError::Other(format!("the processes do not give result {at}")))?;
            stream.write(address, tensor.bytes())?;
        }
        Ok(())
    }

    fn is_capturable(&self) -> bool {
        false
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        self.processes.all.iter().flat_map(|(_, compiled)| compiled.fallbacks()).collect()
    }

    fn memory_bytes(&self) -> u64 {
        // Each process has its own device.
        self.processes.all.iter().filter_map(|(_, compiled)| compiled.peak_memory_bytes()).max().unwrap_or(0)
    }

    fn launches(&self) -> u64 {
        let counters = self.processes.all.iter().filter_map(|(_, compiled)| compiled.counters());
        counters.map(|counters| counters.kernel_launches).sum()
    }

    fn name(&self) -> String {
        self.processes.name.clone()
    }
}
