//! Compiled programs: kernels in order, and the memory they run in.

// The addresses of values are computed from the plan.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use warpforge_fusion::cluster::{Cluster, Clusters, Contraction, Kind, Operand};
use warpforge_fusion::pipeline::Plan;
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::gemm::Memory as Block;
use warpforge_kernels::pool::Pool;
use warpforge_runtime::memory_plan::{self, Allocation, MemoryPlan, results};
use warpforge_runtime::profile::{Event, Profile};
use warpforge_runtime::{ErrorKind, Executable, Fallback, Outcome, Program, Result, RunOptions};
use warpforge_tensor::{Blob, ElementType, FloatType, Shape, Tensor};

use crate::backend::NAME;
use crate::kernel::{self, Kernel, KernelError, Memory, Setting};
use crate::observe::{self, Watch};

/// Every value begins at a line of cache.
const LINE: usize = 64;

/// A kernel and what is said about it in profiles.
struct Step {
    kernel: Box<dyn Kernel>,
    flops: u64,
    bytes: u64,
    /// The numbers that it multiplies.
    arithmetic: &'static str,
    /// What it gives, and of how many thousands of that one is looked at in the observable tier.
    values: Vec<NodeId>,
    every: usize,
}

/// A compiled program.
pub(crate) struct Compiled {
    program: Program,
    graph: Graph,
    steps: Vec<Step>,
    plan: MemoryPlan,
    outputs: Vec<Operand>,
    constants: Vec<Tensor>,
    pool: Arc<Pool>,
    /// Whether tiles are timed and values looked at.
    observe: bool,
    /// Blocks of memory that no run uses now.
    blocks: Mutex<Vec<Block>>,
    /// Memory of outputs that nobody holds any more, by size.
    spare: Arc<Mutex<HashMap<usize, Vec<Block>>>>,
}

impl Compiled {
    /// Makes the kernels of a graph.
    ///
    /// # Errors
    ///
    /// When something in it has no kernel, or there is no memory.
    pub(crate) fn new(
        program: &Program,
        plan: Plan,
        pool: Arc<Pool>,
        observe: bool,
    ) -> std::result::Result<Self, kernel::KernelError> {
        let Plan { graph, clusters, .. } = plan;
        let setting = Setting { graph: &graph, pool: &pool };
        let mut steps = Vec::new();
        for cluster in &clusters.clusters {
            let cost = cluster.cost(&graph);
            let kernel = kernel::kernel(&setting, cluster)?;
            let values = results(&graph, cluster.output);
            let given = values.iter().map(|&id| graph.node(id).bytes()).sum();
            let every = observe::every(cost.flops, cost.bytes, given);
            let arithmetic = arithmetic(&graph, cluster);
            steps.push(Step { kernel, flops: cost.flops, bytes: cost.bytes, arithmetic, values, every });
        }
        let plan = memory_plan::plan(&graph, &clusters, LINE);
        for cluster in &clusters.clusters {
            let mut missing = cluster.reads().into_iter().filter(|id| !plan.allocations.contains_key(id));
            if let Some(id) = missing.next() {
                let what = graph.node(id).op.name();
                return Err(KernelError::Unsupported(format!("{what} is read, and nothing computes it")));
            }
        }
        let replaced = replaced(&clusters, &steps);
        let kept = |id: &NodeId| match graph.constant(*id) {
            Some(tensor) if !replaced.contains(id) => kernel::aligned(tensor),
            // Nobody looks at it any more.
            _ => Tensor::zeros(ElementType::Bool, Shape::scalar()).map_err(KernelError::from),
        };
        let constants = plan.constants.iter().map(kept).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self {
            program: program.clone(),
            steps,
            plan,
            outputs: clusters.outputs,
            constants,
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

    /// Memory for an output: some that an earlier output left, or new.
    fn output_memory(&self, bytes: usize) -> Result<Block> {
        let spare =
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&bytes).and_then(Vec::pop);
        spare.map_or_else(|| Block::new(bytes).map_err(Self::failed), Ok)
    }
}

impl Executable for Compiled {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outcome> {
        // Checks the inputs, all of them.
        self.program.arguments(inputs)?;
        if options.observer.is_some() {
            return Err(ErrorKind::NotOffered { backend: NAME, what: "observe values".to_owned() }.into());
        }
        let inputs: Vec<Tensor> = inputs
            .iter()
            .map(kernel::aligned)
            .collect::<std::result::Result<_, _>>()
            .map_err(Self::failed)?;
        let block = self.blocks.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let block = block.map_or_else(|| Block::new(self.plan.block).map_err(Self::failed), Ok)?;
        let given: Vec<Block> = self
            .plan
            .outputs
            .iter()
            .map(|&id| self.output_memory(self.graph.node(id).bytes()))
            .collect::<Result<_>>()?;
        let mut addresses = vec![std::ptr::null_mut(); self.graph.nodes.len()];
        for (&id, &place) in &self.plan.allocations {
            addresses[id.index()] = match place {
                // Arguments and constants are only read: no cluster gives them.
                Allocation::Argument(at) => readable(&inputs[at]).cast_mut(),
                Allocation::Constant(at) => readable(&self.constants[at]).cast_mut(),
                // SAFETY: the plan keeps all values inside the block.
                Allocation::Block(offset) => unsafe { block.as_ptr().add(offset) },
                Allocation::Output(at) => given[at].as_ptr(),
            };
        }
        let memory = Memory { pool: &self.pool, addresses: &addresses };
        let mut profile = Profile::default();
        let entered = self.pool.enter();
        let origin = Instant::now();
        let watch = self.observe.then(|| Watch::new(&self.pool, origin));
        for step in &self.steps {
            let begun = (options.profile || self.observe).then(Instant::now);
            let tiles = watch.as_ref().map(Watch::tiles);
            // SAFETY: every value has its place, which nobody else uses during this run.
            unsafe { step.kernel.run(&memory) }.map_err(Self::failed)?;
            drop(tiles);
            let Some(begun) = begun else { continue };
            let event = step.event(origin, begun);
            match &watch {
                Some(watch) => {
                    let values: Vec<_> = step.values.iter().map(|&id| (id, memory.write(id))).collect();
                    // SAFETY: as above; the kernel has written its values.
                    unsafe { watch.note(&mut profile, event, &self.graph, &values, step.every) };
                }
                None => profile.push(event),
            }
        }
        drop(entered);
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        let outputs = self.results(&inputs, given)?;
        Ok(Outcome { outputs, profile })
    }

    fn threads(&self) -> usize {
        self.pool.threads()
    }

    fn peak_memory_bytes(&self) -> Option<u64> {
        let outputs: usize = self.plan.outputs.iter().map(|&id| self.graph.node(id).bytes()).sum();
        let constants: usize = self.constants.iter().map(|tensor| tensor.bytes().len()).sum();
        let kernels: usize = self.steps.iter().map(|step| step.kernel.bytes()).sum();
        Some((self.plan.block + outputs + constants + kernels) as u64)
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        let steps = self.steps.iter().filter(|step| step.kernel.is_reference());
        steps
            .map(|step| Fallback { operation: step.kernel.name(), reason: None, bytes: step.bytes })
            .collect()
    }
}

impl Compiled {
    fn results(&self, inputs: &[Tensor], given: Vec<Block>) -> Result<Vec<Tensor>> {
        let blobs: Vec<Blob> = given
            .into_iter()
            .zip(&self.plan.outputs)
            .map(|(block, &id)| {
                let bytes = self.graph.node(id).bytes();
                Blob::new(Given { block: Some(block), bytes, home: Arc::downgrade(&self.spare) })
            })
            .collect();
        let tensor = |output: &Operand| {
            let node = self.graph.node(output.value);
            let shape = |dims: &[usize]| Shape::new(dims).map_err(Self::failed);
            let own = shape(&node.dims)?;
            let tensor = match self.plan.allocations.get(&output.value) {
                Some(&Allocation::Output(at)) => {
                    Tensor::from_blob(node.element, own, blobs[at].clone()).map_err(Self::failed)?
                }
                Some(&Allocation::Argument(at)) => inputs[at].clone(),
                Some(&Allocation::Constant(at)) => self.constants[at].clone(),
                _ => return Err(Self::failed("an output has no place")),
            };
            tensor.reshaped(shape(&output.view.dims)?).map_err(Self::failed)
        };
        self.outputs.iter().map(tensor).collect()
    }
}

impl Step {
    fn event(&self, origin: Instant, begun: Instant) -> Event {
        let duration = begun.elapsed();
        let seconds = duration.as_secs_f64().max(1e-9);
        let details = vec![
            ("flop", self.flops.to_string()),
            ("bytes", self.bytes.to_string()),
            ("arithmetic", self.arithmetic.to_owned()),
            ("gflop_per_s", format!("{:.2}", self.flops as f64 / seconds / 1e9)),
            ("gb_per_s", format!("{:.2}", self.bytes as f64 / seconds / 1e9)),
            ("on", if self.kernel.is_reference() { "reference" } else { "kernel" }.to_owned()),
        ];
        Event {
            name: self.kernel.name(),
            category: "kernel",
            track: 0,
            start: begun.duration_since(origin),
            duration,
            details,
        }
    }
}

/// A line of cache to read from.
#[repr(align(64))]
struct Line([u8; LINE]);

/// What stands for tensors without elements: a loop over rows without columns may look at one all the same.
static NOTHING: Line = Line([0; LINE]);

/// The address of a tensor, which may be read even if there is nothing in it.
fn readable(tensor: &Tensor) -> *const u8 {
    match tensor.bytes() {
        [] => NOTHING.0.as_ptr(),
        bytes => bytes.as_ptr(),
    }
}

/// The memory of an output; it goes back when nobody holds the output any more.
struct Given {
    block: Option<Block>,
    bytes: usize,
    home: Weak<Mutex<HashMap<usize, Vec<Block>>>>,
}

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        match &self.block {
            // SAFETY: the block has so many bytes, and the run has written all of them.
            Some(block) => unsafe { std::slice::from_raw_parts(block.as_ptr(), self.bytes) },
            None => &[],
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if let (Some(home), Some(block)) = (self.home.upgrade(), self.block.take()) {
            home.lock().unwrap_or_else(PoisonError::into_inner).entry(self.bytes).or_default().push(block);
        }
    }
}

/// The constants that all clusters which read them have copies of.
fn replaced(clusters: &Clusters, steps: &[Step]) -> HashSet<NodeId> {
    let copies = steps.iter().filter_map(|step| step.kernel.replaces()).collect::<HashSet<NodeId>>();
    let mut read: HashSet<NodeId> = clusters.outputs.iter().map(|output| output.value).collect();
    for (cluster, step) in clusters.clusters.iter().zip(steps) {
        read.extend(cluster.reads().into_iter().filter(|id| step.kernel.replaces() != Some(*id)));
    }
    copies.difference(&read).copied().collect()
}

/// The element type that a cluster computes in, as limits of processors are named.
fn arithmetic(graph: &Graph, cluster: &Cluster) -> &'static str {
    let multiplied = |contraction: &Contraction| graph.node(contraction.node).inputs[0];
    let (node, is_contraction) = match &cluster.kind {
        Kind::Dot(contraction) | Kind::Conv(contraction) => (multiplied(contraction), true),
        Kind::Attention(attention) => (multiplied(&attention.scores), true),
        Kind::AttentionGradient(gradient) => (multiplied(&gradient.scores), true),
        Kind::Loop(_) | Kind::Unfused(_) | Kind::Library(..) => (cluster.output, false),
    };
    match graph.node(node).element {
        ElementType::Float(FloatType::F64) => "f64",
        ElementType::Float(FloatType::Bf16) if is_contraction => "bf16",
        ElementType::Int(_) if is_contraction => "int8",
        _ => "f32",
    }
}

/// How a type of element lies in memory.
pub(crate) fn alignment(element: ElementType) -> usize {
    match element {
        ElementType::Complex(part) => part.format().bits() as usize / 8,
        _ => element.byte_width(),
    }
}
