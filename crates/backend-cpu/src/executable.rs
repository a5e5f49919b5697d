//! Executables: kernels in order, and the memory that they run in.

// Addresses of values are computed from the memory plan.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_fusion::graph::ValueSource;
use warpforge_fusion::pipeline::Plan;
use warpforge_fusion::{Graph, NodeId};
use warpforge_ir::ValueId;
use warpforge_ir::nodes::Nodes;
use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_kernels::data_movement::{Layout, StridedCopy};
use warpforge_kernels::pool::Pool;
use warpforge_runtime::memory_plan::{self, Allocation, MemoryPlan};
use warpforge_runtime::profile::{Event, Profile};
use warpforge_runtime::state::{HostStore, Update};
use warpforge_runtime::{
    ClusterValues, ErrorKind, Executable, Fallback, Lifetime, Outcome, Program, Result, RunOptions, Source,
};
use warpforge_tensor::{Blob, ElementType, Shape, Tensor};

use crate::groups;
use crate::kernel::{self, CompileContext, KernelError, SharedWeights, Subprogram, ValueBuffers};
use crate::launch::{KernelLaunch, copy_event, replaced};
use crate::lifetimes;
use crate::observer::{self, Observer};
use crate::once::Once;
use crate::value_memory::{LINE, SpareBuffers, WrittenBuffer, readable, writable};

/// The name of the backend in reports.
pub(crate) const NAME: &str = "cpu";

/// Plans a program for the device.
pub(crate) type Planner<'a> = dyn Fn(&Program) -> Result<Plan> + 'a;

/// A program compiled for the CPU.
pub(crate) struct CpuExecutable {
    program: Program,
    graph: Graph,
    launches: Vec<KernelLaunch>,
    /// Launches that may run at the same time, in order.
    groups: Vec<Range<usize>>,
    plan: MemoryPlan,
    /// The copies of the plan.
    copies: Vec<StridedCopy>,
    /// Where the arguments of the graph come from.
    sources: Vec<Source>,
    /// The results that runs give.
    outputs: Vec<Operand>,
    /// The values of the entry function that kernels leave in memory, by the node they are read from.
    borders: HashMap<NodeId, Vec<ValueSource>>,
    constants: Vec<Tensor>,
    /// The clusters that were computed while compiling.
    once: Vec<Cluster>,
    /// What the observable tier says of them.
    computed: Vec<Event>,
    pool: Arc<Pool>,
    /// Whether tiles are timed and values sampled.
    observe: bool,
    /// Workspaces that no run uses at the moment.
    blocks: Mutex<Vec<AlignedBuffer>>,
    /// Free output buffers, by size.
    spare: Arc<SpareBuffers>,
}

impl CpuExecutable {
    /// Creates the kernels of a graph.
    ///
    /// # Errors
    ///
    /// When an operation has no kernel, or memory cannot be allocated.
    pub(crate) fn new(
        program: &Program,
        plan: Plan,
        pool: Arc<Pool>,
        observe: bool,
        planner: &Planner<'_>,
    ) -> std::result::Result<Self, kernel::KernelError> {
        let Plan { graph, once, clusters, .. } = plan;
        let compile = |program: &Program| -> std::result::Result<Box<dyn Subprogram>, KernelError> {
            Ok(Box::new(Self::new(program, planner(program)?, Arc::clone(&pool), false, planner)?))
        };
        let entry = program.module().function(program.entry());
        let nodes = entry.map(Nodes::of).unwrap_or_default();
        let mut computed = Vec::new();
        let known = if once.is_empty() {
            Cow::Borrowed(&graph)
        } else {
            let kept = clusters.clusters.iter().flat_map(Cluster::reads).collect();
            let calls = program.calls();
            let setup = Once { graph: &graph, clusters: &once, nodes: &nodes, pool: &pool, calls };
            Cow::Owned(setup.compute(&kept, |launch, value| {
                computed.extend(observe.then(|| observer::constant(&pool, launch, value)));
                Ok(())
            })?)
        };
        let weights = SharedWeights::default();
        let context = CompileContext {
            graph: &known,
            pool: &pool,
            calls: program.calls(),
            weights: &weights,
            compile: &compile,
        };
        let launches = clusters.clusters.iter().map(|cluster| KernelLaunch::new(&context, &nodes, cluster));
        let launches: Vec<KernelLaunch> = launches.collect::<std::result::Result<_, _>>()?;
        let updates = |time: &Cluster, value: NodeId| {
            let launch =
                clusters.clusters.iter().zip(&launches).find(|(cluster, _)| cluster.output == time.output);
            launch.is_some_and(|(cluster, launch)| launch.kernel.updates_in_place(&graph, cluster, value))
        };
        let plan = memory_plan::plan(&known, &clusters, LINE, &memory_plan::aliases(program), &updates);
        let groups = groups::independent(&known, &clusters, &plan);
        let copies =
            plan.copies.iter().map(|copy| whole_copy(copy.bytes)).collect::<std::result::Result<_, _>>()?;
        for cluster in &clusters.clusters {
            let mut missing = cluster.reads().into_iter().filter(|id| !plan.allocations.contains_key(id));
            if let Some(id) = missing.next() {
                let what = graph.node(id).op.name();
                return Err(KernelError::Unsupported(format!("{what} is read but never computed")));
            }
        }
        let replaced = replaced(&clusters, &launches);
        let kept = |id: &NodeId| match known.constant(*id) {
            Some(tensor) if !replaced.contains(id) => kernel::aligned(tensor),
            // No kernel reads it.
            _ => Tensor::zeros(ElementType::Bool, Shape::scalar()).map_err(KernelError::from),
        };
        let constants = plan.constants.iter().map(kept).collect::<std::result::Result<Vec<_>, _>>()?;
        drop(known);
        let given = launches.iter().flat_map(|launch| launch.values.iter().copied());
        let given = given.chain(once.iter().map(|cluster| cluster.output)).collect();
        let borders = graph.values_in(&given);
        Ok(Self {
            program: program.clone(),
            launches,
            groups,
            plan,
            copies,
            sources: program.sources(),
            outputs: program.given_results().into_iter().map(|at| clusters.outputs[at].clone()).collect(),
            borders,
            constants,
            once,
            computed,
            graph,
            pool,
            observe,
            blocks: Mutex::default(),
            spare: Arc::default(),
        })
    }

    fn failed(reason: impl std::fmt::Display) -> warpforge_runtime::Error {
        ErrorKind::Failed { backend: NAME, reason: reason.to_string() }.into()
    }

    fn host_store<'u>(update: &'u Update<'_>) -> Result<&'u HostStore> {
        let foreign = || Self::failed("the state is not in the memory of the host");
        update.store().as_any().downcast_ref().ok_or_else(foreign)
    }

    /// A buffer for an output: a recycled one, or a new one.
    fn output_memory(&self, bytes: usize) -> Result<AlignedBuffer> {
        let spare =
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&bytes).and_then(Vec::pop);
        spare.map_or_else(|| AlignedBuffer::new(bytes).map_err(Self::failed), Ok)
    }
}

impl Subprogram for CpuExecutable {
    fn run(&self, inputs: &[Tensor]) -> std::result::Result<Vec<Tensor>, KernelError> {
        Ok(Executable::run(self, inputs, &RunOptions::default())?.outputs)
    }

    fn falls_back(&self) -> bool {
        !self.fallbacks().is_empty()
    }

    fn bytes(&self) -> usize {
        self.peak_memory_bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
    }
}

impl Executable for CpuExecutable {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outcome> {
        self.program.check_inputs(inputs)?;
        if options.observer.is_some() {
            return Err(ErrorKind::NotOffered { backend: NAME, what: "observe values".to_owned() }.into());
        }
        let inputs: Vec<Tensor> = inputs
            .iter()
            .map(kernel::aligned)
            .collect::<std::result::Result<_, _>>()
            .map_err(Self::failed)?;
        let block = self.blocks.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let block = block.map_or_else(|| AlignedBuffer::new(self.plan.block).map_err(Self::failed), Ok)?;
        let given: Vec<AlignedBuffer> = self
            .plan
            .outputs
            .iter()
            .map(|&id| self.output_memory(self.graph.node(id).bytes()))
            .collect::<Result<_>>()?;
        let update = self.program.state().map(|state| state.begin()).transpose()?;
        let mut held = update.as_ref().map(Self::host_store).transpose()?.map(HostStore::lock);
        let mut state = Vec::new();
        if let Some(values) = &mut held {
            for binding in self.program.bindings() {
                let missing = || Self::failed(format!("the state has no value {}", binding.value));
                state.push(writable(values.get_mut(binding.value).ok_or_else(missing)?));
            }
        }
        let address = |place: Allocation| match place {
            Allocation::Argument(at) => match self.sources[at] {
                // Inputs and constants are read-only: no cluster writes them.
                Source::Input(at) => readable(&inputs[at]).cast_mut(),
                Source::State(at) => state[at],
            },
            Allocation::Constant(at) => readable(&self.constants[at]).cast_mut(),
            // SAFETY: the plan keeps all values inside the block.
            Allocation::Block(offset) => unsafe { block.as_ptr().add(offset) },
            Allocation::Output(at) => given[at].as_ptr(),
        };
        let mut addresses = vec![std::ptr::null_mut(); self.graph.nodes.len()];
        for (&id, &place) in &self.plan.allocations {
            addresses[id.index()] = address(place);
        }
        let buffers = ValueBuffers { pool: &self.pool, addresses: &addresses };
        let mut profile = Profile::default();
        let mut clusters = if options.clusters { self.computed_values()? } else { Vec::new() };
        self.computed.iter().for_each(|event| profile.push(event.clone()));
        let entered = self.pool.enter();
        let origin = Instant::now();
        let observer = self.observe.then(|| Observer::new(&self.pool, origin));
        if options.profile || self.observe || options.clusters {
            for launch in &self.launches {
                let begun = (options.profile || self.observe).then(Instant::now);
                let tiles = observer.as_ref().map(Observer::tiles);
                // SAFETY: every value has its own allocation, which nothing else uses during this run. The new content of state lies over
                // the old one only where the kernel says that it updates in place, or after the last kernel that reads it.
                unsafe { launch.kernel.run(&buffers) }.map_err(Self::failed)?;
                drop(tiles);
                if options.clusters {
                    // SAFETY: as above; the kernel has written its values.
                    clusters.push(unsafe { self.given(launch, &buffers) }?);
                }
                let Some(begun) = begun else { continue };
                let event = launch.event(origin, begun);
                match &observer {
                    Some(observer) => {
                        let values: Vec<_> =
                            launch.values.iter().map(|&id| (id, buffers.write(id))).collect();
                        // SAFETY: as above; the kernel has written its values.
                        unsafe {
                            observer.note(
                                &mut profile,
                                event,
                                &self.graph,
                                &values,
                                launch.sampling_interval,
                            );
                        };
                    }
                    None => profile.push(event),
                }
            }
        } else {
            // SAFETY: as above; the launches of a group neither write what others read nor share memory that they write.
            unsafe { self.run_groups(&buffers) }?;
        }
        for (planned, copy) in self.plan.copies.iter().zip(&self.copies) {
            let begun = Instant::now();
            // SAFETY: both places have so many bytes, and the plan gives no copy overlapping ones.
            unsafe { copy.run(&self.pool, address(planned.from), address(planned.to)) };
            if options.profile || self.observe {
                profile.push(copy_event(planned.bytes, origin, begun));
            }
        }
        drop(entered);
        drop(held);
        if let Some(update) = update {
            update.end();
        }
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        let outputs = self.results(&inputs, given)?;
        Ok(Outcome { outputs, profile, clusters })
    }

    fn threads(&self) -> usize {
        self.pool.threads()
    }

    fn peak_memory_bytes(&self) -> Option<u64> {
        let outputs: usize = self.plan.outputs.iter().map(|&id| self.graph.node(id).bytes()).sum();
        let constants: usize = self.constants.iter().map(|tensor| tensor.bytes().len()).sum();
        let kernels: usize = self.launches.iter().map(|launch| launch.kernel.bytes()).sum();
        Some((self.plan.block + outputs + constants + kernels) as u64)
    }

    fn lifetimes(&self) -> Vec<Lifetime> {
        let kernels: Vec<(String, usize)> =
            self.launches.iter().map(|launch| (launch.kernel.name(), launch.kernel.bytes())).collect();
        lifetimes::lifetimes(&self.plan, &self.graph, &self.constants, &kernels)
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        let launches = self.launches.iter().filter(|launch| launch.kernel.is_reference());
        let fallback = |launch: &KernelLaunch| Fallback {
            operation: launch.kernel.name(),
            reason: None,
            bytes: launch.bytes,
        };
        launches.map(fallback).collect()
    }
}

impl CpuExecutable {
    /// Runs all launches, those of a group at the same time. Workers that wait prefetch what the next launch with weights reads.
    ///
    /// # Safety
    ///
    /// As for [`kernel::Kernel::run`] of each of them, in any order of those of a group.
    unsafe fn run_groups(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let with_weights = |at: &usize| !self.launches[*at].first_reads.is_empty();
        let mut next = Some(0);
        for group in &self.groups {
            if next.is_some_and(|at| at < group.end) {
                next = (group.end..self.launches.len()).find(with_weights);
                let first_reads = next.map_or(&[][..], |at| &self.launches[at].first_reads);
                self.pool.prefetch_while_waiting(first_reads);
            }
            // SAFETY: guaranteed by the caller.
            unsafe { self.run_group(group.clone(), buffers) }?;
        }
        self.pool.prefetch_while_waiting(&[]);
        Ok(())
    }

    /// Runs launches that do not depend on one another.
    ///
    /// # Safety
    ///
    /// As for [`kernel::Kernel::run`] of each of them, whatever the order.
    unsafe fn run_group(&self, group: Range<usize>, buffers: &ValueBuffers<'_>) -> Result<()> {
        let launches = &self.launches[group];
        if let [launch] = launches {
            // SAFETY: guaranteed by the caller.
            return unsafe { launch.kernel.run(buffers) }.map_err(Self::failed);
        }
        let failure = RefCell::new(None);
        let calls: Vec<_> = launches
            .iter()
            .map(|launch| {
                || {
                    // SAFETY: guaranteed by the caller.
                    if let Err(error) = unsafe { launch.kernel.run(buffers) } {
                        failure.borrow_mut().get_or_insert(error);
                    }
                }
            })
            .collect();
        let calls: Vec<&dyn Fn()> = calls.iter().map(|call| call as &dyn Fn()).collect();
        self.pool.join(&calls);
        failure.into_inner().map_or(Ok(()), |error| Err(Self::failed(error)))
    }

    /// What a kernel left in memory.
    ///
    /// # Safety
    ///
    /// The kernel has written its values, and nothing writes to them.
    unsafe fn given(&self, launch: &KernelLaunch, buffers: &ValueBuffers<'_>) -> Result<ClusterValues> {
        let mut values = Vec::new();
        for &id in &launch.values {
            if !self.borders.contains_key(&id) {
                continue;
            }
            let node = self.graph.node(id);
            let bytes = match node.bytes() {
                0 => &[],
                // SAFETY: guaranteed by the caller: the address is valid for the size of the value.
                count => unsafe { std::slice::from_raw_parts(buffers.read(id), count) },
            };
            let shape = Shape::new(node.dims.clone()).map_err(Self::failed)?;
            let held = Tensor::from_bytes(node.element, shape, bytes).map_err(Self::failed)?;
            values.extend(self.border_values(id, &held));
        }
        Ok(ClusterValues { kernel: launch.kernel.name(), ops: launch.ops.clone(), values })
    }

    /// The values of the entry function that are read from a value in memory.
    fn border_values(&self, id: NodeId, held: &Tensor) -> Vec<(ValueId, Tensor)> {
        let sources = self.borders.get(&id).into_iter().flatten();
        sources.filter_map(|source| Some((source.value, source.read(held)?))).collect()
    }

    /// What the clusters that were computed while compiling give: computed again, for kernels have packed it.
    fn computed_values(&self) -> Result<Vec<ClusterValues>> {
        let (clusters, calls) = (&self.once, self.program.calls());
        let nodes = Nodes::default();
        let setup = Once { graph: &self.graph, clusters, nodes: &nodes, pool: &self.pool, calls };
        let mut given = Vec::new();
        let computed = setup.compute(&HashSet::new(), |launch, held| {
            let values = launch.values.iter().flat_map(|&id| self.border_values(id, held)).collect();
            given.push(ClusterValues { kernel: launch.kernel.name(), ops: launch.ops.clone(), values });
            Ok(())
        });
        computed.map(|_| given).map_err(Self::failed)
    }

    fn results(&self, inputs: &[Tensor], given: Vec<AlignedBuffer>) -> Result<Vec<Tensor>> {
        let blobs: Vec<Blob> = given
            .into_iter()
            .zip(&self.plan.outputs)
            .map(|(block, &id)| {
                let bytes = self.graph.node(id).bytes();
                // SAFETY: the buffer was made for the value, and the run has written all of it.
                Blob::new(unsafe { WrittenBuffer::new(block, bytes, Arc::downgrade(&self.spare)) })
            })
            .collect();
        let tensor = |output: &Operand| {
            let node = self.graph.node(output.value);
            let shape = |dims: &[usize]| Shape::new(dims).map_err(Self::failed);
            let own = shape(&node.dims)?;
            let tensor = match self.plan.output(output.value) {
                Some(Allocation::Output(at)) => {
                    Tensor::from_blob(node.element, own, blobs[at].clone()).map_err(Self::failed)?
                }
                Some(Allocation::Argument(at)) => match self.sources[at] {
                    Source::Input(at) => inputs[at].clone(),
                    Source::State(_) => return Err(Self::failed("an output lies in state")),
                },
                Some(Allocation::Constant(at)) => self.constants[at].clone(),
                _ => return Err(Self::failed("an output has no allocation")),
            };
            tensor.reshaped(shape(&output.view.dims)?).map_err(Self::failed)
        };
        self.outputs.iter().map(tensor).collect()
    }
}

/// A copy of so many bytes.
fn whole_copy(bytes: usize) -> std::result::Result<StridedCopy, KernelError> {
    let layout = Layout::row_major(&[bytes])?;
    Ok(StridedCopy::new(1, &[bytes], &layout, &layout)?)
}
