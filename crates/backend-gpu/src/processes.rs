//! Compiles a program for one process or for a grid of processes with a GPU each.

use std::collections::VecDeque;
use std::sync::Arc;

use warpforge_codegen::ComputePrecision;
use warpforge_fusion::graph::{OpByOp, OpSpan, OpaqueOp, import, import_op_by_op};
use warpforge_fusion::simplify::simplify;
use warpforge_fusion::{Graph, Op};
use warpforge_interp::{Grid, ProcessId};
use warpforge_ir::attr::Attribute;
use warpforge_ir::{OpKind, OpRef};
use warpforge_runtime::{Program, Tier, Weights};

use crate::blas::Blas;
use crate::collectives::{
    CollectiveLibrary, CollectiveOps, Communicators, has_collectives, is_deadlock_free, lower_collectives,
    single_op,
};
use crate::compile::{CompileError, CompileRequest, build};
use crate::dnn::DnnLibrary;
use crate::driver::Gpu;
use crate::error::{GpuError, Result};
use crate::executable::GpuExecutable;
use crate::grid::CompiledProcesses;
use crate::process_group::{GridId, ProcessGroup};
use crate::program::CompiledProgram;

/// A GPU and its libraries.
#[derive(Clone)]
pub(crate) struct DeviceContext {
    pub(crate) gpu: Arc<Gpu>,
    /// The BLAS, if available.
    pub(crate) blas: Option<Blas>,
    /// The DNN library, if available.
    pub(crate) dnn: Option<DnnLibrary>,
}

/// The GPUs of a vendor.
pub(crate) trait Devices {
    /// How many there are.
    fn count(&self) -> u32;

    /// Opens a device.
    fn context(&self, number: u32) -> Result<DeviceContext>;

    /// The collective library.
    fn collectives(&self) -> Result<Arc<CollectiveLibrary>>;
}

/// A program and its compile options.
#[derive(Clone, Copy)]
pub(crate) struct CompileOptions<'a> {
    pub(crate) program: &'a Program,
    pub(crate) tier: Tier,
    pub(crate) precision: ComputePrecision,
}

/// Compiles a program for a device; grids of processes use further devices.
pub(crate) fn compile(
    devices: &dyn Devices,
    number: u32,
    options: CompileOptions<'_>,
) -> std::result::Result<GpuExecutable, CompileError> {
    let ImportedProgram { graph, marks, collectives } =
        import_program(options.program, options.tier, &Grid::ALONE)?;
    let (mut grids, mut compiled) = (Vec::new(), Vec::new());
    for node in &graph.nodes {
        if let Op::Opaque(part) = &node.op
            && let Some(op) = single_op(part).filter(|op| op.is(OpKind::InterpreterRunParallel))
        {
            let made = match grid(devices, number, part, op, options) {
                Ok(processes) => {
                    compiled.push(Arc::new(processes));
                    Ok(GridId(compiled.len() - 1))
                }
                Err(CompileError::Unsupported(reason)) => {
                    tracing::warn!(reason, "the reference runs the processes of a program");
                    Err(reason)
                }
                Err(failure) => return Err(failure),
            };
            grids.push((Arc::clone(part), made));
        }
    }
    let context = devices.context(number)?;
    let communicators = match collectives.groups().next() {
        None => Communicators::default(),
        Some(_) => Communicators::new(&devices.collectives(), collectives.groups(), |_| {
            Some(Arc::clone(&context.gpu))
        })?,
    };
    let group = ProcessGroup { collectives, communicators: Arc::new(communicators), grids };
    Ok(GpuExecutable::new(compile_process(&context, (graph, marks), options, group, compiled)?))
}

/// An imported program.
struct ImportedProgram {
    graph: Graph,
    /// The graph nodes of each operation, where operations keep their own nodes.
    marks: Option<Vec<OpSpan>>,
    collectives: CollectiveOps,
}

fn import_program(
    program: &Program,
    tier: Tier,
    grid: &Grid,
) -> std::result::Result<ImportedProgram, CompileError> {
    let entry = program.entry();
    let func = program.module().function(entry);
    let func = func.ok_or_else(|| CompileError::Unsupported(format!("there is no function @{entry}")))?;
    let weights = |at: usize| program.weights().get(at).cloned();
    // Operations keep their own nodes, so that every value can be observed; lowering of collectives changes the
    // graph.
    if tier == Tier::Correctness {
        let each =
            import_op_by_op(func, &weights).map_err(|error| CompileError::Unsupported(error.to_string()))?;
        let OpByOp { graph, marks } = each;
        if !has_collectives(&graph) {
            return Ok(ImportedProgram { graph, marks: Some(marks), collectives: CollectiveOps::default() });
        }
    }
    let graph = import(func, &weights).map_err(|error| CompileError::Unsupported(error.to_string()))?;
    let (graph, collectives) = lower_collectives(graph, grid).map_err(CompileError::Unsupported)?;
    Ok(ImportedProgram { graph, marks: None, collectives })
}

/// Compiles one process.
fn compile_process(
    context: &DeviceContext,
    (graph, marks): (Graph, Option<Vec<OpSpan>>),
    CompileOptions { program, tier, precision }: CompileOptions<'_>,
    group: ProcessGroup,
    grids: Vec<Arc<CompiledProcesses>>,
) -> std::result::Result<CompiledProgram, CompileError> {
    let graph = if marks.is_some() { graph } else { simplify(&graph) };
    let DeviceContext { gpu, blas, dnn } = context.clone();
    build(&gpu, &CompileRequest { program, graph, marks, tier, precision, blas, dnn, group, grids })
}

/// Compiles the processes of an operation that runs a grid.
fn grid(
    devices: &dyn Devices,
    number: u32,
    part: &OpaqueOp,
    op: OpRef<'_>,
    options: CompileOptions<'_>,
) -> std::result::Result<CompiledProcesses, CompileError> {
    let unsupported = |reason: &str| CompileError::Unsupported(reason.to_owned());
    let names = names(op).ok_or_else(|| unsupported("its programs cannot be read"))?;
    let (replicas, partitions) = (names.len(), names.first().map_or(0, Vec::len));
    if partitions == 0 || names.iter().any(|row| row.len() != partitions) {
        return Err(unsupported("its replicas have different numbers of partitions"));
    }
    let (count, there) = (replicas * partitions, devices.count());
    if count > there as usize {
        let is = if there == 1 { "is" } else { "are" };
        return Err(CompileError::Unsupported(format!("needs {count} GPUs, {there} {is} there")));
    }
    let module = Arc::new(part.slice.module.clone());
    let mut processes = Vec::new();
    for (at, name) in names.iter().flatten().enumerate() {
        let me = ProcessId { replica: at / partitions, partition: at % partitions };
        let program = Program::new(Arc::clone(&module), name, Weights::default())
            .map_err(|error| CompileError::Unsupported(error.to_string()))?;
        let made = import_program(&program, options.tier, &Grid { replicas, partitions, me })?;
        // A single process runs on the program's device.
        let device = if count == 1 { number } else { u32::try_from(at).unwrap_or(u32::MAX) };
        processes.push(Process { me, context: devices.context(device)?, program, made });
    }
    let communicators = communicators(devices, &processes)?;
    let mut all = Vec::new();
    for Process { me, context, program, made } in processes {
        let ImportedProgram { graph, marks, collectives } = made;
        let group =
            ProcessGroup { collectives, communicators: Arc::clone(&communicators), grids: Vec::new() };
        let made = compile_process(
            &context,
            (graph, marks),
            CompileOptions { program: &program, ..options },
            group,
            Vec::new(),
        )?;
        all.push((me, made));
    }
    // Deadlocking programs are left to the reference, which detects them.
    if !is_deadlock_free(
        all.iter().map(|(me, made)| (*me, VecDeque::from(made.collective_calls.clone()))).collect(),
    ) {
        return Err(unsupported("its processes do not meet at their collectives"));
    }
    let gpus = if count == 1 { "GPU" } else { "GPUs" };
    let name = format!("{replicas} x {partitions} processes on {count} {gpus}");
    let all = all.into_iter().map(|(me, made)| (me, GpuExecutable::new(made))).collect();
    Ok(CompiledProcesses { all, communicators, name })
}

/// A process before compilation.
struct Process {
    me: ProcessId,
    context: DeviceContext,
    program: Program,
    made: ImportedProgram,
}

/// Connects the processes.
fn communicators(
    devices: &dyn Devices,
    processes: &[Process],
) -> std::result::Result<Arc<Communicators>, CompileError> {
    let groups = || processes.iter().flat_map(|process| process.made.collectives.groups());
    let Some(largest) = groups().map(|group| group.len()).max() else { return Ok(Arc::default()) };
    let library = devices.collectives();
    if let Err(error @ (GpuError::Missing(_) | GpuError::Symbol { .. })) = &library
        && largest > 1
    {
        return Err(CompileError::Unsupported(error.to_string()));
    }
    let gpu = |who: ProcessId| {
        processes.iter().find(|process| process.me == who).map(|process| Arc::clone(&process.context.gpu))
    };
    Ok(Arc::new(Communicators::new(&library, groups(), gpu)?))
}

/// The functions of the processes, by replica and partition.
fn names(op: OpRef<'_>) -> Option<Vec<Vec<String>>> {
    let name =
        |attribute: &Attribute| attribute.as_symbol().or_else(|| attribute.as_str()).map(str::to_owned);
    let row = |attribute: &Attribute| attribute.as_array()?.iter().map(name).collect();
    op.attr("programs")?.as_array()?.iter().map(row).collect()
}
