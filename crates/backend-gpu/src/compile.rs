//! Compilation for a device: lowering, memory planning, upload of constants, compilation of kernels.

use std::collections::HashSet;
use std::sync::Arc;

use warpforge_codegen::{Dialect, Effort, Options, Salt};
use warpforge_fusion::cluster::{Cluster, Clusters};
use warpforge_fusion::pipeline::Imported;
use warpforge_fusion::{Graph, NodeId};
use warpforge_ir::nodes::Nodes;
use warpforge_runtime::memory_plan::{aliases, plan};
use warpforge_runtime::{Precision, Program, Tier};

use crate::blas::{Blas, WORKSPACE};
use crate::calibrate;
use crate::collectives::CollectiveCall;
use crate::compile_error::CompileError;
use crate::device_memory::DeviceMemory;
use crate::dnn::DnnLibrary;
use crate::driver::{Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::grid::CompiledProcesses;
use crate::launch_groups::{self, LaunchGroup};
use crate::lower::{LibraryQuery, Lowered, Lowering, LoweringContext, Task, compute_precision, lower};
use crate::process_group::ProcessGroup;
use crate::program::CompiledProgram;
use crate::salt::SaltBuffers;
use crate::step_builder::StepBuilder;
use crate::steps::{Buckets, CopyStep, DeviceLayout, LoadedKernels, dialect, scratch_bytes};
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
        has_state: !request.program.bindings().is_empty(),
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
    let groups = match request.tier {
        Tier::Production => launch_groups::schedule(&graph, &tasks, &planned),
        Tier::Observable | Tier::Correctness => LaunchGroup::each(&tasks),
    };
    let stream = Stream::new(gpu)?;
    let read: HashSet<NodeId> = tasks.iter().flat_map(|task| task.cluster.reads()).collect();
    let (kernels, memory) = run_concurrently(
        || {
            let launched = groups.iter().flat_map(|group| group.kernels(&tasks));
            LoadedKernels::new(gpu, setup.iter().flat_map(Task::kernels).chain(launched))
        },
        || DeviceMemory::new(gpu, &stream, request.program, &graph, &planned, &setup, &read),
    );
    let kernels = kernels?;
    let DeviceMemory { mut buffers, inputs, outputs: output_buffers, addresses, copies, setup_only } =
        memory?;
    let workspace = gpu.allocate(workspace(setup.iter().chain(&tasks)))?;
    let layout = DeviceLayout { addresses, workspace };
    missing(&graph, &tasks, &layout).map_err(CompileError::Unsupported)?;
    let salted = setup.iter().chain(&tasks).flat_map(Task::kernels).filter(|kernel| kernel.is_salted());
    let mut salt_buffers =
        SaltBuffers::new(gpu, options.salt, salted.map(|kernel| (kernel.title.clone(), kernel.salt_bytes)))?;
    if salt_buffers.any() {
        salt_buffers.set_cost(calibrate::cost(gpu, &stream)?);
    }
    let entry = request.program.module().function(request.program.entry());
    let nodes = entry.map(Nodes::of).unwrap_or_default();
    let mut builder = StepBuilder {
        gpu,
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
        buckets: Buckets::default(),
    };
    for planned in builder.all(&setup, &LaunchGroup::each(&setup))? {
        planned.step.start(&stream)?;
    }
    stream.synchronise()?;
    let mut steps = builder.all(&tasks, &groups)?;
    steps.extend(copies.into_iter().map(CopyStep::planned));
    // Buffers that only the setup tasks read are freed.
    drop(setup_only);
    buffers.shrink_to_fit();
    let hoisted = setup.iter().map(|task| task.cluster.output).filter(|id| read.contains(id)).collect();
    let collective_calls = tasks.iter().filter_map(|task| task.collective_call(&graph)).collect();
    Ok(CompiledProgram {
        program: request.program.clone(),
        gpu: Arc::clone(gpu),
        stream,
        dnn: request.dnn.clone(),
        nodes: graph,
        marks: spans,
        plan: planned,
        step_of_cluster: launch_groups::positions(&groups, tasks.len()),
        hoisted,
        outputs: request.program.given_results().iter().map(|&at| clusters.outputs[at].clone()).collect(),
        sources: request.program.sources(),
        layout,
        memory: buffers,
        inputs,
        output_buffers,
        steps,
        salt_buffers,
        collective_calls,
        ranks: request.group.ranks.clone(),
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

impl Task {
    /// The collective call of a task.
    fn collective_call(&self, graph: &Graph) -> Option<CollectiveCall> {
        match &self.lowering {
            Lowering::Collective(collective) if !collective.group.is_empty() => {
                Some((graph.node(self.cluster.output).origin, collective.group.clone()))
            }
            _ => None,
        }
    }
}

/// Bytes of workspace; steps run one at a time.
fn workspace<'t>(tasks: impl Iterator<Item = &'t Task>) -> usize {
    let bytes = tasks.map(|task| match &task.lowering {
        Lowering::Emitted(emitted) => usize::try_from(scratch_bytes(emitted)).unwrap_or(usize::MAX),
        Lowering::Gemm(_) => WORKSPACE,
        Lowering::Convolution(_) | Lowering::Attention(_) => DNN_WORKSPACE,
        Lowering::Collective(_) | Lowering::Bucket(_) | Lowering::Grid(_) | Lowering::Host(_) => 0,
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
