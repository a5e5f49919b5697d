//! Compilation for a device: lowering, memory planning, upload of constants, compilation of kernels.

use std::collections::HashSet;
use std::sync::Arc;

use warpforge_codegen::{Argument, Dialect, Effort, Kernel, Options, Salt};
use warpforge_fusion::cluster::{Cluster, Clusters, Kind, Operand};
use warpforge_fusion::pipeline::Imported;
use warpforge_fusion::{Graph, ImportError, NodeId, Op};
use warpforge_ir::nodes::Nodes;
use warpforge_runtime::memory_plan::{aliases, plan};
use warpforge_runtime::profile::provenance;
use warpforge_runtime::{CustomCalls, Precision, Program, Tier};

use crate::blas::{Blas, WORKSPACE};
use crate::calibrate;
use crate::collectives::CollectiveCall;
use crate::device_memory::DeviceMemory;
use crate::dnn::DnnLibrary;
use crate::driver::{Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::grid::{CompiledProcesses, ProcessGroupStep};
use crate::lower::{LibraryQuery, Lowered, Lowering, LoweringContext, Task, compute_precision, lower};
use crate::process_group::ProcessGroup;
use crate::program::CompiledProgram;
use crate::salt::SaltBuffers;
use crate::steps::{
    CollectiveStep, CopyStep, DeviceLayout, DnnStep, ExecutionStep, GemmStep, HostStep, KernelStep,
    LoadedKernels, PlannedStep, dialect, scratch_bytes,
};
use crate::tuning;
use crate::vendor::Vendor;

/// Alignment of values in bytes.
const ALIGNMENT: usize = 256;

/// Bytes of workspace for convolutions and attention.
const DNN_WORKSPACE: usize = 256 << 20;

/// The environment variable of the instrumentation level in the observable tier.
const SALT: &str = "WARPFORGE_SALT";

/// Inputs of a compilation.
pub(crate) struct CompileRequest<'a> {
    pub(crate) program: &'a Program,
    pub(crate) imported: Imported,
    pub(crate) tier: Tier,
    pub(crate) precision: Precision,
    /// The BLAS, if available.
    pub(crate) blas: Option<Blas>,
    /// The DNN library, if available.
    pub(crate) dnn: Option<DnnLibrary>,
    /// Collectives and process grids.
    pub(crate) group: ProcessGroup,
    /// The compiled grids of the group.
    pub(crate) grids: Vec<Arc<CompiledProcesses>>,
}

/// Why compilation failed.
pub(crate) enum CompileError {
    /// Libraries refused these queries.
    Refused(HashSet<LibraryQuery>),
    /// Something has no lowering.
    Unsupported(String),
    /// The program is too large for anything to run it.
    Import(ImportError),
    /// The device or a library failed.
    Gpu(GpuError),
}

impl From<GpuError> for CompileError {
    fn from(error: GpuError) -> Self {
        CompileError::Gpu(error)
    }
}

impl From<ImportError> for CompileError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Unsupported(reason) => CompileError::Unsupported(reason),
            other => CompileError::Import(other),
        }
    }
}

/// Emitter options for a device.
pub(crate) fn options(gpu: &Gpu, tier: Tier, precision: Precision) -> Result<Options> {
    let vendor = gpu.driver.vendor;
    let (major, minor) = gpu.properties.capability;
    let architecture = match vendor {
        Vendor::Cuda => format!("sm_{major}{minor}"),
        Vendor::Hip => format!("gfx{major}{minor:x}"),
    };
    let mut options = Options::new(dialect(vendor), architecture);
    options.compute_precision = compute_precision(precision);
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

/// Compiles a program. Queries that a library refuses are lowered to generated kernels.
pub(crate) fn build(
    gpu: &Arc<Gpu>,
    request: &CompileRequest<'_>,
) -> std::result::Result<CompiledProgram, CompileError> {
    let mut refused = HashSet::new();
    loop {
        match build_without(gpu, request, &refused) {
            Err(CompileError::Refused(more)) if !more.is_subset(&refused) => refused.extend(more),
            made => return made,
        }
    }
}

fn build_without(
    gpu: &Arc<Gpu>,
    request: &CompileRequest<'_>,
    refused: &HashSet<LibraryQuery>,
) -> std::result::Result<CompiledProgram, CompileError> {
    let options = options(gpu, request.tier, request.precision)?;
    let context = LoweringContext {
        tier: request.tier,
        precision: request.precision,
        options: &options,
        blas: request.blas.as_ref(),
        dnn: request.dnn.as_ref().map(DnnLibrary::vendor),
        group: &request.group,
        refused,
    };
    let lowered = lower(&request.imported, &context).map_err(CompileError::Unsupported)?;
    let Lowered { graph, spans, setup, mut tasks, outputs } = lowered;
    let clusters = Clusters { clusters: tasks.iter().map(|task| task.cluster.clone()).collect(), outputs };
    let updates = |cluster: &Cluster, value: NodeId| {
        let task = tasks.iter().find(|task| task.cluster.output == cluster.output);
        task.is_some_and(|task| task.updates_in_place(&graph, value))
    };
    let planned = plan(&graph, &clusters, ALIGNMENT, &aliases(request.program), &updates);
    tasks.iter_mut().for_each(|task| task.allow_aliases(&graph, &planned, &options));
    let stream = Stream::new(gpu)?;
    let read: HashSet<NodeId> = tasks.iter().flat_map(|task| task.cluster.reads()).collect();
    let (kernels, memory) = run_concurrently(
        || LoadedKernels::new(gpu, setup.iter().chain(&tasks).flat_map(Task::kernels)),
        || DeviceMemory::new(gpu, &stream, request.program, &graph, &planned, &setup, &read),
    );
    let kernels = kernels?;
    let DeviceMemory { mut buffers, inputs, outputs: output_buffers, addresses, copies, setup_only } =
        memory?;
    let workspace = gpu.allocate(workspace(setup.iter().chain(&tasks)))?;
    let layout = DeviceLayout { addresses, workspace };
    missing(&graph, &tasks, &layout).map_err(CompileError::Unsupported)?;
    let salted = setup.iter().chain(&tasks).flat_map(Task::kernels).filter(|kernel| is_salted(kernel));
    let mut salt_buffers =
        SaltBuffers::new(gpu, options.salt, salted.map(|kernel| (kernel.title.clone(), kernel.salt_bytes)))?;
    if salt_buffers.any() {
        salt_buffers.set_cost(calibrate::cost(gpu, &stream)?);
    }
    let entry = request.program.module().function(request.program.entry());
    let nodes = entry.map(Nodes::of).unwrap_or_default();
    let mut builder = StepBuilder {
        graph: &graph,
        nodes: &nodes,
        layout: &layout,
        kernels: &kernels,
        stream: &stream,
        blas: request.blas.as_ref(),
        dnn: request.dnn.as_ref(),
        salt_buffers: &salt_buffers,
        group: &request.group,
        grids: &request.grids,
        calls: request.program.calls(),
        salted: 0,
    };
    for planned in builder.all(&setup)? {
        planned.step.start(&stream)?;
    }
    stream.synchronise()?;
    let mut steps = builder.all(&tasks)?;
    steps.extend(copies.into_iter().map(CopyStep::planned));
    // Buffers that only the setup tasks read are freed.
    drop(setup_only);
    buffers.shrink_to_fit();
    let collective_calls = tasks.iter().filter_map(|task| task.collective_call(&graph)).collect();
    Ok(CompiledProgram {
        program: request.program.clone(),
        gpu: Arc::clone(gpu),
        stream,
        dnn: request.dnn.clone(),
        nodes: graph,
        marks: spans,
        plan: planned,
        outputs: request.program.given_results().iter().map(|&at| clusters.outputs[at].clone()).collect(),
        sources: request.program.sources(),
        layout,
        memory: buffers,
        inputs,
        output_buffers,
        steps,
        salt_buffers,
        collective_calls,
    })
}

/// Runs two closures concurrently, the second on this thread.
fn run_concurrently<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

fn is_salted(kernel: &Kernel) -> bool {
    kernel.arguments.contains(&Argument::Salt)
}

impl Lowering {
    fn name(&self) -> &'static str {
        match self {
            Lowering::Emitted(_) => "a generated kernel",
            Lowering::Gemm(_) => "a GEMM",
            Lowering::Convolution(_) => "a convolution",
            Lowering::Attention(_) => "attention",
            Lowering::Collective(_) => "an collective between processes",
            Lowering::Grid(_) => "several processes",
            Lowering::Host(_) => "an operation on the host",
        }
    }
}

impl Task {
    fn by_library(&self) -> bool {
        matches!(self.lowering, Lowering::Gemm(_) | Lowering::Convolution(_) | Lowering::Attention(_))
    }

    /// The collective call of a task.
    fn collective_call(&self, graph: &Graph) -> Option<CollectiveCall> {
        match &self.lowering {
            Lowering::Collective(collective) if !collective.group.is_empty() => {
                Some((graph.node(self.cluster.output).origin, collective.group.clone()))
            }
            _ => None,
        }
    }

    fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let emitted = match &self.lowering {
            Lowering::Emitted(emitted) => Some(emitted),
            _ => None,
        };
        emitted.into_iter().flat_map(|emitted| &emitted.kernels)
    }
}

/// Bytes of workspace; steps run one at a time.
fn workspace<'t>(tasks: impl Iterator<Item = &'t Task>) -> usize {
    let bytes = tasks.map(|task| match &task.lowering {
        Lowering::Emitted(emitted) => usize::try_from(scratch_bytes(emitted)).unwrap_or(usize::MAX),
        Lowering::Gemm(_) => WORKSPACE,
        Lowering::Convolution(_) | Lowering::Attention(_) => DNN_WORKSPACE,
        Lowering::Collective(_) | Lowering::Grid(_) | Lowering::Host(_) => 0,
    });
    bytes.max().unwrap_or(0)
}

/// Reports a value that is read but never computed.
fn missing(graph: &Graph, tasks: &[Task], layout: &DeviceLayout) -> std::result::Result<(), String> {
    let mut read = tasks.iter().flat_map(|task| task.cluster.reads());
    match read.find(|&id| layout.address(id) == 0 && !graph.node(id).is_empty()) {
        Some(id) => Err(format!("{} is read, and nothing computes it", graph.node(id).op.name())),
        None => Ok(()),
    }
}

/// Builds execution steps from tasks.
struct StepBuilder<'a> {
    graph: &'a Graph,
    /// The nodes of the traced graph.
    nodes: &'a Nodes,
    layout: &'a DeviceLayout,
    kernels: &'a LoadedKernels,
    stream: &'a Stream,
    blas: Option<&'a Blas>,
    dnn: Option<&'a DnnLibrary>,
    salt_buffers: &'a SaltBuffers,
    group: &'a ProcessGroup,
    grids: &'a [Arc<CompiledProcesses>],
    /// Custom calls of the host.
    calls: &'a CustomCalls,
    /// Instrumented kernels so far.
    salted: usize,
}

impl StepBuilder<'_> {
    fn dnn(&self) -> Result<&DnnLibrary> {
        self.dnn.ok_or_else(|| GpuError::Other("no DNN library".to_owned()))
    }

    /// The steps of tasks, or the queries that libraries refused.
    fn all(&mut self, tasks: &[Task]) -> std::result::Result<Vec<PlannedStep>, CompileError> {
        let mut steps = Vec::new();
        let mut refusals = HashSet::new();
        for task in tasks {
            match self.steps(task) {
                Ok(mut made) => {
                    let ops = self.graph.origins(&task.cluster.nodes);
                    let said = provenance(self.nodes, &ops);
                    for planned in &mut made {
                        planned.ops.clone_from(&ops);
                        planned.provenance.clone_from(&said);
                    }
                    if let Some(last) = made.last_mut() {
                        let given = task.cluster.results().into_iter();
                        last.gives = given.flat_map(|id| self.graph.results(id)).collect();
                    }
                    steps.extend(made);
                }
                Err(error @ (GpuError::Lost { .. } | GpuError::OutOfMemory { .. })) => {
                    return Err(error.into());
                }
                Err(error) if task.by_library() => {
                    let what = task.lowering.name();
                    tracing::info!(%error, query = ?task.query, "{what}: the library refuses; it is done in another lowering");
                    refusals.insert(task.query);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if refusals.is_empty() { Ok(steps) } else { Err(CompileError::Refused(refusals)) }
    }

    fn steps(&mut self, task: &Task) -> Result<Vec<PlannedStep>> {
        let Task { cluster, lowering, .. } = task;
        let node = cluster.output;
        let one = |step: Box<dyn ExecutionStep>, (flops, bytes)| {
            vec![PlannedStep {
                step,
                node,
                flops,
                bytes,
                salted: None,
                ops: Vec::new(),
                provenance: Vec::new(),
                gives: Vec::new(),
            }]
        };
        Ok(match lowering {
            Lowering::Emitted(emitted) => {
                let (salt_buffers, mut numbers) = (self.salt_buffers, self.salted..);
                let mut salt = |_: &Kernel| numbers.next().map_or(0, |number| salt_buffers.address(number));
                let launches = KernelStep::all(emitted, self.kernels, self.layout, &mut salt)?;
                let planned = |(launch, kernel): (KernelStep, &Kernel)| {
                    let salted = is_salted(kernel).then_some(self.salted);
                    self.salted += usize::from(salted.is_some());
                    PlannedStep {
                        step: Box::new(launch),
                        node,
                        flops: kernel.flops,
                        bytes: kernel.bytes,
                        salted,
                        ops: Vec::new(),
                        provenance: Vec::new(),
                        gives: Vec::new(),
                    }
                };
                launches.into_iter().zip(&emitted.kernels).map(planned).collect()
            }
            Lowering::Gemm(call) => {
                let library = self.blas.ok_or_else(|| GpuError::Other("no BLAS library".to_owned()))?;
                let step = GemmStep::new(call, library, self.layout, self.stream)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Lowering::Convolution(call) => {
                let step = DnnStep::convolution(call, self.dnn()?, self.graph, self.layout, self.stream)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Lowering::Attention(call) => {
                let step = DnnStep::attention(call, self.dnn()?.cudnn()?, self.layout, self.stream)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Lowering::Collective(collective) => {
                let communicator = self.group.communicators().get(&collective.group, collective.rank);
                let step = CollectiveStep::new(
                    collective,
                    communicator,
                    self.graph,
                    unfused_operands(cluster)?,
                    self.layout,
                )?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Lowering::Grid(grid) => {
                let missing = || GpuError::Other("a grid of processes was not compiled".to_owned());
                let processes = self.grids.get(grid.0).ok_or_else(missing)?;
                let Op::Opaque(op) = &self.graph.node(cluster.output).op else {
                    return Err(GpuError::Other("processes are started by one operation".to_owned()));
                };
                let (graph, layout) = (self.graph, self.layout);
                let step = ProcessGroupStep::new(
                    processes,
                    graph,
                    unfused_operands(cluster)?,
                    &op.operands,
                    layout,
                )?;
                one(Box::new(step), cost(self.graph, cluster))
            }
            Lowering::Host(why) => {
                let operands = unfused_operands(cluster)?;
                let step = HostStep::new(self.graph, operands, why.clone(), self.calls, self.layout)?;
                one(Box::new(step), cost(self.graph, cluster))
            }
        })
    }
}

/// The node and operands of an unfused cluster.
fn unfused_operands(cluster: &Cluster) -> Result<(NodeId, &[Operand])> {
    match &cluster.kind {
        Kind::Unfused(operands) => Ok((cluster.output, operands)),
        _ => Err(GpuError::Other("only single operations run in this lowering".to_owned())),
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
    fn both_closures_run_concurrently() {
        let ((here, there), (answer, question)) = (channel(), channel());
        let long = Duration::from_secs(20);
        // Each returns only after the other has started.
        let (one, other) = run_concurrently(
            move || here.send(1).is_ok() && question.recv_timeout(long) == Ok(2),
            move || answer.send(2).is_ok() && there.recv_timeout(long) == Ok(1),
        );
        assert!(one && other);
    }
}
