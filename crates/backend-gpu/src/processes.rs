//! Compiles a program for one process or for a grid of processes with a GPU each.

use std::collections::VecDeque;
use std::sync::Arc;

use warpforge_fusion::Op;
use warpforge_fusion::cluster::Machine;
use warpforge_fusion::graph::OpaqueOp;
use warpforge_fusion::pipeline::Imported;
use warpforge_interp::{Grid, ProcessId};
use warpforge_ir::attr::Attribute;
use warpforge_ir::{OpKind, OpRef};
use warpforge_runtime::{Precision, Program, Tier, Weights};

use crate::blas::Blas;
use crate::collectives::{
    BucketOps, CollectiveLibrary, CollectiveOps, Communicators, is_deadlock_free, single_op,
};
use crate::compile::{CompileRequest, build, options};
use crate::compile_error::CompileError;
use crate::dnn::DnnLibrary;
use crate::driver::Gpu;
use crate::error::{GpuError, Result};
use crate::executable::GpuExecutable;
use crate::grid::CompiledProcesses;
use crate::lower::{GpuDevice, load};
use crate::process_group::{GridId, ProcessGroup};
use crate::program::CompiledProgram;
use crate::ranks::RankGroup;

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
    pub(crate) precision: Precision,
    /// What the machine says about fusion decisions that are close.
    pub(crate) machine: Option<&'a Arc<dyn Machine>>,
    /// Whether the backward pass computes the forward pass again.
    pub(crate) gradient_checkpointing: bool,
}

/// Compiles a program for a device; grids of processes use further devices.
pub(crate) fn compile(
    devices: &dyn Devices,
    number: u32,
    options: CompileOptions<'_>,
) -> std::result::Result<GpuExecutable, CompileError> {
    let context = devices.context(number)?;
    let ranks = RankGroup::of(options.program.calls().reduction(), &context.gpu)?;
    let ImportedProgram { imported, collectives, buckets } =
        import_program(options.program, options, &context, &Grid::ALONE, ranks.as_ref())?;
    let (mut grids, mut compiled) = (Vec::new(), Vec::new());
    for node in &imported.graph.nodes {
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
    let communicators = match collectives.groups().next() {
        None => Communicators::default(),
        Some(_) => Communicators::new(&devices.collectives(), collectives.groups(), |_| {
            Some(Arc::clone(&context.gpu))
        })?,
    };
    let ranks = ranks.filter(|_| !buckets.is_empty());
    let group = ProcessGroup { collectives, communicators: Arc::new(communicators), ranks, buckets, grids };
    Ok(GpuExecutable::new(compile_process(&context, imported, options, group, compiled)?))
}

/// An imported program, the collectives in it, and its all-reduces between ranks.
struct ImportedProgram {
    imported: Imported,
    collectives: CollectiveOps,
    buckets: BucketOps,
}

fn import_program(
    program: &Program,
    CompileOptions { tier, precision, machine, gradient_checkpointing, .. }: CompileOptions<'_>,
    context: &DeviceContext,
    grid: &Grid,
    ranks: Option<&RankGroup>,
) -> std::result::Result<ImportedProgram, CompileError> {
    let options = options(&context.gpu, tier, precision)?;
    let machine = machine.cloned();
    let reduction = program.calls().reduction().zip(ranks.map(RankGroup::size));
    let device = GpuDevice {
        grid,
        machine,
        gradient_checkpointing,
        reduction,
        ..GpuDevice::new(tier, precision, &options, context.blas.is_some())
    };
    let imported = load(program, &device)?;
    let (collectives, buckets) = (device.collectives.into_inner(), device.buckets.into_inner());
    Ok(ImportedProgram { imported, collectives, buckets })
}

/// Compiles one process.
fn compile_process(
    context: &DeviceContext,
    imported: Imported,
    CompileOptions { program, tier, precision, .. }: CompileOptions<'_>,
    group: ProcessGroup,
    grids: Vec<Arc<CompiledProcesses>>,
) -> std::result::Result<CompiledProgram, CompileError> {
    let DeviceContext { gpu, blas, dnn } = context.clone();
    build(&gpu, &CompileRequest { program, imported, tier, precision, blas, dnn, group, grids })
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
        // A single process runs on the program's device.
        let device = if count == 1 { number } else { u32::try_from(at).unwrap_or(u32::MAX) };
        let context = devices.context(device)?;
        let made = import_program(&program, options, &context, &Grid { replicas, partitions, me }, None)?;
        processes.push(Process { me, context, program, made });
    }
    let communicators = communicators(devices, &processes)?;
    let mut all = Vec::new();
    for Process { me, context, program, made } in processes {
        let ImportedProgram { imported, collectives, .. } = made;
        let communicators = Arc::clone(&communicators);
        let group = ProcessGroup { collectives, communicators, ..ProcessGroup::default() };
        let made = compile_process(
            &context,
            imported,
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
