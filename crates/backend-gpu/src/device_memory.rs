//! The device memory of a program: buffers, and the address of each value.

use std::collections::HashSet;
use std::sync::Arc;

use warpforge_fusion::{Graph, NodeId};
use warpforge_ir::TensorType;
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan};
use warpforge_runtime::{Program, Source};

use crate::driver::{Address, Buffer, Gpu, Stream, Uploads};
use crate::error::{GpuError, Result};
use crate::lower::Task;
use crate::state::DeviceStore;
use crate::steps::DeviceCopy;

/// The device memory of a program.
pub(crate) struct DeviceMemory {
    pub(crate) buffers: Vec<Arc<Buffer>>,
    pub(crate) inputs: Vec<Buffer>,
    pub(crate) outputs: Vec<Buffer>,
    pub(crate) addresses: Vec<Address>,
    /// The copies of the plan.
    pub(crate) copies: Vec<DeviceCopy>,
    /// Constants that only setup tasks read.
    pub(crate) setup_only: Vec<Arc<Buffer>>,
}

impl DeviceMemory {
    /// Allocates what a plan asks for and uploads constants. State lies where its store has it.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        stream: &Stream,
        program: &Program,
        graph: &Graph,
        plan: &MemoryPlan,
        setup: &[Task],
        read: &HashSet<NodeId>,
    ) -> Result<Self> {
        let mut made = Self {
            buffers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            addresses: vec![0; graph.nodes.len()],
            copies: Vec::new(),
            setup_only: Vec::new(),
        };
        for (_, ty) in program.inputs() {
            made.inputs.push(gpu.allocate(input_bytes(ty)?)?);
        }
        for &id in &plan.outputs {
            made.outputs.push(gpu.allocate(graph.node(id).bytes())?);
        }
        let block = Arc::new(gpu.allocate(plan.block)?);
        let mut uploads = Uploads::new(gpu, stream);
        let mut upload = |id: NodeId| graph.constant(id).map(|tensor| uploads.upload(tensor)).transpose();
        for &id in &plan.constants {
            if let Some(buffer) = upload(id)? {
                made.addresses[id.index()] = buffer.address();
                made.buffers.push(buffer);
            }
        }
        for task in setup {
            for id in task.cluster.reads() {
                if let Some(buffer) = upload(id)? {
                    made.addresses[id.index()] = buffer.address();
                    made.setup_only.push(buffer);
                }
            }
            let output = task.cluster.output;
            let buffer = Arc::new(gpu.allocate(graph.node(output).bytes())?);
            made.addresses[output.index()] = buffer.address();
            if read.contains(&output) { &mut made.buffers } else { &mut made.setup_only }.push(buffer);
        }
        let (sources, state) = (program.sources(), state_addresses(gpu, program)?);
        let (inputs, outputs) = (&made.inputs, &made.outputs);
        let address = |place: Allocation, constants: &[Address]| match place {
            Allocation::Argument(at) => match sources.get(at) {
                Some(&Source::Input(at)) => inputs.get(at).map_or(0, Buffer::address),
                Some(&Source::State(at)) => state.get(at).copied().unwrap_or(0),
                None => 0,
            },
            Allocation::Constant(at) => plan.constants.get(at).map_or(0, |id| constants[id.index()]),
            Allocation::Block(offset) => block.address() + offset as u64,
            Allocation::Output(at) => outputs.get(at).map_or(0, Buffer::address),
        };
        for (&id, &place) in &plan.allocations {
            if !matches!(place, Allocation::Constant(_)) {
                made.addresses[id.index()] = address(place, &[]);
            }
        }
        let copies = plan.copies.iter().map(|copy| {
            let at = |place| address(place, &made.addresses);
            DeviceCopy { from: at(copy.from), to: at(copy.to), bytes: copy.bytes }
        });
        made.copies = copies.collect();
        made.buffers.push(block);
        uploads.finish()?;
        Ok(made)
    }
}

/// The addresses of a program's state, in the order of its bindings.
fn state_addresses(gpu: &Arc<Gpu>, program: &Program) -> Result<Vec<Address>> {
    let Some(state) = program.state() else { return Ok(Vec::new()) };
    let store = DeviceStore::of(state, gpu)?;
    program.bindings().iter().map(|binding| store.address(binding.value)).collect()
}

/// Bytes of an input with a static shape.
fn input_bytes(ty: &TensorType) -> Result<usize> {
    let unknown = || GpuError::Other(format!("an input is of type {ty}, whose size is not known"));
    let dims = ty.shape_usize().ok_or_else(unknown)?;
    let width = ty.element().storage().ok_or_else(unknown)?.byte_width();
    dims.iter().try_fold(width, |bytes, &dim| bytes.checked_mul(dim)).ok_or_else(unknown)
}
