//! A program made ready for a device: tasks chosen, memory planned, constants uploaded, kernels compiled.

use std::collections::HashSet;
use std::sync::Arc;

use warpforge_codegen::{Argument, Dialect, Effort, Kernel, Options, Products as Rounding, Salt};
use warpforge_fusion::cluster::{Cluster, Clusters, Kind, Operand};
use warpforge_fusion::graph::OpSpan;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::TensorType;
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan, plan};
use warpforge_runtime::{Program, Tier};

use crate::calibrate;
use crate::collectives::Meeting;
use crate::driver::{Address, Buffer, Gpu, Stream, Uploads};
use crate::error::{GpuError, Result};
use crate::executable::Made;
use crate::library::Vendor;
use crate::lower::{Asked, AttentionCall, Lowered, Masking, Seen, Setting, Task, Way, lower};
use crate::networks::Networks;
use crate::processes::Together;
use crate::products::{Library, WORKSPACE};
use crate::salt::Saltings;
use crate::steps::{
    Exchanged, Host, Kernels, Launch, Layout, Masks, Multiply, Netted, Parallel, Planned, Step, dialect,
    scratch_bytes,
};
use crate::tuning;

/// Every value begins at a multiple of this.
const LINE: usize = 256;

/// Bytes that convolutions and attention may use while they run.
const NETWORK_WORKSPACE: usize = 256 << 20;

/// The variable that says how much kernels of the observable tier say about themselves.
const SALT: &str = "WARPFORGE_SALT";

/// What a program is compiled with.
pub(crate) struct Request<'a> {
    pub(crate) program: &'a Program,
    pub(crate) graph: Graph,
    /// Where the operations of the program are among the nodes of the graph, where each has its own.
    pub(crate) marks: Option<Vec<OpSpan>>,
    pub(crate) tier: Tier,
    pub(crate) rounding: Rounding,
    /// The vendor's products, where they are at hand.
    pub(crate) products: Option<Library>,
    /// The vendor's convolutions, where they are.
    pub(crate) networks: Option<Networks>,
    /// What is for several processes.
    pub(crate) together: Together,
}

/// Why a program was not made.
pub(crate) enum Failure {
    /// Libraries refused what was asked of them.
    Refused(HashSet<Asked>),
    /// Something in it has no form here.
    Unsupported(String),
    /// The device or a library failed.
    Gpu(GpuError),
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        Failure::Gpu(error)
    }
}

/// What the emitter is asked for on a device.
pub(crate) fn options(gpu: &Gpu, tier: Tier, rounding: Rounding) -> Result<Options> {
    let vendor = gpu.driver.vendor;
    let (major, minor) = gpu.properties.capability;
    let architecture = match vendor {
        Vendor::Cuda => format!("sm_{major}{minor}"),
        Vendor::Hip => format!("gfx{major}{minor:x}"),
    };
    let mut options = Options::new(dialect(vendor), architecture);
    options.products = rounding;
    match tier {
        Tier::Production => tuning::check()?,
        Tier::Observable => options.salt = salt()?,
        Tier::Correctness => options.effort = Effort::Naive,
    }
    debug_assert!(options.dialect == Dialect::Cuda || vendor == Vendor::Hip);
    Ok(options)
}

fn salt() -> Result<Salt> {
    match std::env::var(SALT).as_deref() {
        Err(_) | Ok("timing") => Ok(Salt::Timing),
        Ok("off") => Ok(Salt::Off),
        Ok("trace") => Ok(Salt::Trace),
        Ok(other) => Err(GpuError::Other(format!("{SALT} is `{other}`; there are off, timing and trace"))),
    }
}

/// Makes a program ready; what a library refuses gets a generated kernel.
pub(crate) fn make(gpu: &Arc<Gpu>, request: &Request<'_>) -> std::result::Result<Made, Failure> {
    let mut refused = HashSet::new();
    loop {
        match make_without(gpu, request, &refused) {
            Err(Failure::Refused(more)) if !more.is_subset(&refused) => refused.extend(more),
            made => return made,
        }
    }
}

fn make_without(
    gpu: &Arc<Gpu>,
    request: &Request<'_>,
    refused: &HashSet<Asked>,
) -> std::result::Result<Made, Failure> {
    let options = options(gpu, request.tier, request.rounding)?;
    let setting = Setting {
        tier: request.tier,
        options: &options,
        products: request.products.as_ref(),
        networks: request.networks.as_ref().map(Networks::vendor),
        together: &request.together,
        refused,
    };
    let lowered = lower(request.graph.clone(), &setting).map_err(Failure::Unsupported)?;
    let Lowered { graph, once, tasks, outputs } = lowered;
    let clusters = Clusters { clusters: tasks.iter().map(|task| task.cluster.clone()).collect(), outputs };
    let planned = plan(&graph, &clusters, LINE);
    let stream = Stream::new(gpu)?;
    let read: HashSet<NodeId> = tasks.iter().flat_map(|task| task.cluster.reads()).collect();
    let (kernels, memory) = at_once(
        || Kernels::new(gpu, once.iter().chain(&tasks).flat_map(Task::kernels)),
        || Memory::new(gpu, &stream, request.program, &graph, &planned, &once, &read),
    );
    let kernels = kernels?;
    let Memory { mut kept, inputs, given, addresses, passing } = memory?;
    let workspace = gpu.allocate(workspace(once.iter().chain(&tasks)))?;
    let layout = Layout { addresses, workspace };
    missing(&graph, &tasks, &layout).map_err(Failure::Unsupported)?;
    let salted = once.iter().chain(&tasks).flat_map(Task::kernels).filter(|kernel| is_salted(kernel));
    let mut saltings =
        Saltings::new(gpu, options.salt, salted.map(|kernel| (kernel.title.clone(), kernel.salt_bytes)))?;
    if saltings.any() {
        saltings.set_cost(calibrate::cost(gpu, &stream)?);
    }
    let mut builder = Builder {
        graph: &graph,
        layout: &layout,
        kernels: &kernels,
        stream: &stream,
        products: request.products.as_ref(),
        networks: request.networks.as_ref(),
        saltings: &saltings,
        together: &request.together,
        salted: 0,
        masks: Masks::default(),
    };
    for planned in builder.all(&once)? {
        planned.step.start(&stream)?;
    }
    stream.synchronise()?;
    let steps = builder.all(&tasks)?;
    // What only the work done once has read is of no more use.
    drop(passing);
    kept.shrink_to_fit();
    let meetings = tasks.iter().filter_map(|task| task.meeting(&graph)).collect();
    Ok(Made {
        program: request.program.clone(),
        gpu: Arc::clone(gpu),
        stream,
        networks: request.networks.clone(),
        nodes: graph,
        marks: request.marks.clone(),
        plan: planned,
        outputs: clusters.outputs,
        layout,
        memory: kept,
        inputs,
        given,
        steps,
        saltings,
        meetings,
    })
}

/// Does two things at a time, the second on the thread that asks.
fn at_once<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

fn is_salted(kernel: &Kernel) -> bool {
    kernel.arguments.contains(&Argument::Salt)
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Way::Emitted(_) => "a generated kernel",
            Way::Product(_) => "a product",
            Way::Convolution(_) => "a convolution",
            Way::Attention(_) => "attention",
            Way::Exchange(_) => "an exchange between processes",
            Way::Grid(_) => "several processes",
            Way::Host(_) => "an operation on the host",
        }
    }
}

impl Task {
    fn by_library(&self) -> bool {
        matches!(self.way, Way::Product(_) | Way::Convolution(_) | Way::Attention(_))
    }

    /// Where processes meet for it.
    fn meeting(&self, graph: &Graph) -> Option<Meeting> {
        match &self.way {
            Way::Exchange(exchange) if !exchange.group.is_empty() => {
                Some((graph.node(self.cluster.output).origin, exchange.group.clone()))
            }
            _ => None,
        }
    }

    fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let emitted = match &self.way {
            Way::Emitted(emitted) => Some(emitted),
            _ => None,
        };
        emitted.into_iter().flat_map(|emitted| &emitted.kernels)
    }
}

/// Bytes that steps need while they run, one at a time.
fn workspace<'t>(tasks: impl Iterator<Item = &'t Task>) -> usize {
    let bytes = tasks.map(|task| match &task.way {
        Way::Emitted(emitted) => usize::try_from(scratch_bytes(emitted)).unwrap_or(usize::MAX),
        Way::Product(_) => WORKSPACE,
        Way::Convolution(_) | Way::Attention(_) => NETWORK_WORKSPACE,
        Way::Exchange(_) | Way::Grid(_) | Way::Host(_) => 0,
    });
    bytes.max().unwrap_or(0)
}

/// Says what a task reads that nothing computes.
fn missing(graph: &Graph, tasks: &[Task], layout: &Layout) -> std::result::Result<(), String> {
    let mut read = tasks.iter().flat_map(|task| task.cluster.reads());
    match read.find(|&id| layout.address(id) == 0 && !graph.node(id).is_empty()) {
        Some(id) => Err(format!("{} is read, and nothing computes it", graph.node(id).op.name())),
        None => Ok(()),
    }
}

/// All memory of a program.
struct Memory {
    kept: Vec<Arc<Buffer>>,
    inputs: Vec<Buffer>,
    given: Vec<Buffer>,
    addresses: Vec<Address>,
    /// Constants that only the work done once reads.
    passing: Vec<Arc<Buffer>>,
}

impl Memory {
    fn new(
        gpu: &Arc<Gpu>,
        stream: &Stream,
        program: &Program,
        graph: &Graph,
        plan: &MemoryPlan,
        once: &[Task],
        read: &HashSet<NodeId>,
    ) -> Result<Self> {
        let mut made = Self {
            kept: Vec::new(),
            inputs: Vec::new(),
            given: Vec::new(),
            addresses: vec![0; graph.nodes.len()],
            passing: Vec::new(),
        };
        for (_, ty) in program.inputs() {
            made.inputs.push(gpu.allocate(input_bytes(ty)?)?);
        }
        for &id in &plan.outputs {
            made.given.push(gpu.allocate(graph.node(id).bytes())?);
        }
        let block = Arc::new(gpu.allocate(plan.block)?);
        let mut uploads = Uploads::new(gpu, stream);
        let mut upload = |id: NodeId| graph.constant(id).map(|tensor| uploads.upload(tensor)).transpose();
        for &id in &plan.constants {
            if let Some(buffer) = upload(id)? {
                made.addresses[id.index()] = buffer.address();
                made.kept.push(buffer);
            }
        }
        for task in once {
            for id in task.cluster.reads() {
                if let Some(buffer) = upload(id)? {
                    made.addresses[id.index()] = buffer.address();
                    made.passing.push(buffer);
                }
            }
            let output = task.cluster.output;
            let buffer = Arc::new(gpu.allocate(graph.node(output).bytes())?);
            made.addresses[output.index()] = buffer.address();
            if read.contains(&output) { &mut made.kept } else { &mut made.passing }.push(buffer);
        }
        for (&id, &place) in &plan.allocations {
            made.addresses[id.index()] = match place {
                Allocation::Argument(at) => made.inputs.get(at).map_or(0, Buffer::address),
                Allocation::Constant(_) => continue,
                Allocation::Block(offset) => block.address() + offset as u64,
                Allocation::Output(at) => made.given.get(at).map_or(0, Buffer::address),
            };
        }
        made.kept.push(block);
        uploads.finish()?;
        Ok(made)
    }
}

/// Bytes of an input, whose sizes are all known.
fn input_bytes(ty: &TensorType) -> Result<usize> {
    let unknown = || GpuError::Other(format!("an input is of type {ty}, whose size is not known"));
    let dims = ty.shape_usize().ok_or_else(unknown)?;
    let width = ty.element().storage().ok_or_else(unknown)?.byte_width();
    dims.iter().try_fold(width, |bytes, &dim| bytes.checked_mul(dim)).ok_or_else(unknown)
}

/// Makes steps of tasks.
struct Builder<'a> {
    graph: &'a Graph,
    layout: &'a Layout,
    kernels: &'a Kernels,
    stream: &'a Stream,
    products: Option<&'a Library>,
    networks: Option<&'a Networks>,
    saltings: &'a Saltings,
    together: &'a Together,
    /// Instrumented kernels so far.
    salted: usize,
    masks: Masks,
}

impl Builder<'_> {
    fn networks(&self) -> Result<&Networks> {
        self.networks.ok_or_else(|| GpuError::Other("no library of convolutions".to_owned()))
    }

    /// The steps of tasks, or which of them libraries refuse.
    fn all(&mut self, tasks: &[Task]) -> std::result::Result<Vec<Planned>, Failure> {
        let mut steps = Vec::new();
        let mut refusals = HashSet::new();
        for task in tasks {
            match self.steps(task) {
                Ok(made) => steps.extend(made),
                Err(error @ (GpuError::Lost { .. } | GpuError::OutOfMemory { .. })) => {
                    return Err(error.into());
                }
                Err(error) if task.by_library() => {
                    let what = task.way.name();
                    tracing::info!(%error, asked = ?task.asked, "{what}: the library refuses; it is done in another way");
                    refusals.insert(task.asked);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if refusals.is_empty() { Ok(steps) } else { Err(Failure::Refused(refusals)) }
    }

    fn attention(&mut self, call: &AttentionCall) -> Result<Netted> {
        let seen = match &call.masking {
            Masking::Known(mask) => self.masks.look(mask, self.graph, self.layout, self.stream)?,
            Masking::Causal => Seen::UpToItself,
            Masking::None => Seen::All,
        };
        if seen == Seen::Other {
            return Err(GpuError::Other("a mask that is neither causal nor empty".to_owned()));
        }
        let causal = seen == Seen::UpToItself;
        Netted::attention(call, causal, self.networks()?.cudnn()?, self.layout, self.stream)
    }

    fn steps(&mut self, task: &Task) -> Result<Vec<Planned>> {
        let Task { cluster, way, .. } = task;
        let node = cluster.output;
        let one =
            |step: Box<dyn Step>, (flops, bytes)| vec![Planned { step, node, flops, bytes, salted: None }];
        Ok(match way {
            Way::Emitted(emitted) => {
                let (saltings, mut numbers) = (self.saltings, self.salted..);
                let mut salt = |_: &Kernel| numbers.next().map_or(0, |number| saltings.address(number));
                let launches = Launch::all(emitted, self.kernels, self.layout, &mut salt)?;
                let planned = |(launch, kernel): (Launch, &Kernel)| {
                    let salted = is_salted(kernel).then_some(self.salted);
                    self.salted += usize::from(salted.is_some());
                    Planned { step: Box::new(launch), node, flops: kernel.flops, bytes: kernel.bytes, salted }
                };
                launches.into_iter().zip(&emitted.kernels).map(planned).collect()
            }
            Way::Product(call) => {
                let library =
                    self.products.ok_or_else(|| GpuError::Other("no library of products".to_owned()))?;
                let step = Multiply::new(call, library, self.layout, self.stream)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Way::Convolution(call) => {
                let step = Netted::convolution(call, self.networks()?, self.graph, self.layout, self.stream)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Way::Attention(call) => {
                let step = self.attention(call)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Way::Exchange(exchange) => {
                let end = self.together.world().end(&exchange.group, exchange.place);
                let step = Exchanged::new(exchange, end, self.graph, single(cluster)?, self.layout)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Way::Grid(processes) => {
                let Op::Opaque(part) = &self.graph.node(cluster.output).op else {
                    return Err(GpuError::Other("processes are started by one operation".to_owned()));
                };
                let (graph, layout) = (self.graph, self.layout);
                let step = Parallel::new(processes, graph, single(cluster)?, &part.operands, layout)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Way::Host(why) => {
                let step = Host::new(self.graph, single(cluster)?, why.clone(), self.layout)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
        })
    }
}

/// The node of a cluster that is one operation, and its operands.
fn single(cluster: &Cluster) -> Result<(NodeId, &[Operand])> {
    match &cluster.kind {
        Kind::Unfused(operands) => Ok((cluster.output, operands)),
        _ => Err(GpuError::Other("only single operations run in this way".to_owned())),
    }
}

fn cost(graph: &Graph, cluster: &Cluster) -> (u64, u64) {
    let cost = cluster.cost(graph);
    (cost.flops, cost.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn neither_of_two_things_waits_for_the_other() {
        let ((here, there), (answer, question)) = (channel(), channel());
        let long = Duration::from_secs(20);
        // Each ends only when the other has begun.
        let (one, other) = at_once(
            move || here.send(1).is_ok() && question.recv_timeout(long) == Ok(2),
            move || answer.send(2).is_ok() && there.recv_timeout(long) == Ok(1),
        );
        assert!(one && other);
    }
}
