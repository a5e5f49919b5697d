//! From a program to what runs: a process on its own, or a grid of them, each on a GPU of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use warpforge_codegen::Products as Rounding;
use warpforge_fusion::graph::{OpByOp, OpSpan, OpaqueOp, import, import_op_by_op};
use warpforge_fusion::simplify::simplify;
use warpforge_fusion::{Graph, Op};
use warpforge_interp::{Grid, ProcessId};
use warpforge_ir::attr::Attribute;
use warpforge_ir::{OpKind, OpRef};
use warpforge_runtime::{Program, Tier, Weights};

use crate::collectives::{Collectives, Exchange, Exchanges, World, any, meets, prepare, single};
use crate::compile::{Failure, Request, make};
use crate::driver::Gpu;
use crate::error::{GpuError, Result};
use crate::executable::{Compiled, Made};
use crate::networks::Networks;
use crate::products::Library;
use crate::steps::Processes;

/// A GPU and the libraries for it.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) gpu: Arc<Gpu>,
    /// The vendor's products, where they are at hand.
    pub(crate) products: Option<Library>,
    /// The vendor's convolutions, where they are.
    pub(crate) networks: Option<Networks>,
}

/// The GPUs of a vendor.
pub(crate) trait Devices {
    /// How many there are.
    fn count(&self) -> u32;

    /// One of them, opened.
    fn site(&self, number: u32) -> Result<Site>;

    /// The library of collectives.
    fn collectives(&self) -> Result<Arc<Collectives>>;
}

/// Processes that an operation starts, or why the reference does.
type Started = std::result::Result<Arc<Processes>, String>;

/// What a process shares with others.
#[derive(Default)]
pub(crate) struct Together {
    exchanges: Exchanges,
    world: Arc<World>,
    grids: Vec<(Arc<OpaqueOp>, Started)>,
}

/// An operation that several processes do.
pub(crate) enum Shared<'a> {
    /// The process takes part.
    Exchange(&'a Arc<Exchange>),
    /// The process starts others and waits for them.
    Grid(&'a Arc<Processes>),
    /// The reference does it, for a reason.
    Reference(&'a str),
}

impl Together {
    /// What a node of the graph is, when it is for several processes.
    pub(crate) fn of(&self, op: &Op) -> Option<Shared<'_>> {
        let Op::Opaque(part) = op else { return None };
        let exchange = self.exchanges.of(part).map(Shared::Exchange);
        let grid = || self.grids.iter().find(|(known, _)| Arc::ptr_eq(known, part));
        exchange.or_else(|| {
            Some(match &grid()?.1 {
                Ok(processes) => Shared::Grid(processes),
                Err(reason) => Shared::Reference(reason),
            })
        })
    }

    /// What connects the processes.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }
}

/// A program and how it is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) program: &'a Program,
    pub(crate) tier: Tier,
    pub(crate) rounding: Rounding,
}

/// Compiles a program for a device; grids of processes in it run on as many devices as they need.
pub(crate) fn compile(
    devices: &dyn Devices,
    number: u32,
    wanted: Wanted<'_>,
) -> std::result::Result<Compiled, Failure> {
    let Prepared { graph, marks, exchanges } = prepared(wanted.program, wanted.tier, &Grid::ALONE)?;
    let mut grids = Vec::new();
    for node in &graph.nodes {
        if let Op::Opaque(part) = &node.op
            && let Some(op) = single(part).filter(|op| op.is(OpKind::InterpreterRunParallel))
        {
            let made = match grid(devices, number, part, op, wanted) {
                Ok(processes) => Ok(Arc::new(processes)),
                Err(Failure::Unsupported(reason)) => {
                    tracing::warn!(reason, "the reference runs the processes of a program");
                    Err(reason)
                }
                Err(failure) => return Err(failure),
            };
            grids.push((Arc::clone(part), made));
        }
    }
    let site = devices.site(number)?;
    let world = match exchanges.groups().next() {
        None => World::default(),
        Some(_) => World::new(&devices.collectives(), exchanges.groups(), |_| Some(Arc::clone(&site.gpu)))?,
    };
    let together = Together { exchanges, world: Arc::new(world), grids };
    Ok(Compiled::new(one(&site, (graph, marks), wanted, together)?))
}

/// The graph of a process.
struct Prepared {
    graph: Graph,
    /// Where its operations are among the nodes, where each has its own.
    marks: Option<Vec<OpSpan>>,
    exchanges: Exchanges,
}

fn prepared(program: &Program, tier: Tier, grid: &Grid) -> std::result::Result<Prepared, Failure> {
    let entry = program.entry();
    let func = program.module().function(entry);
    let func = func.ok_or_else(|| Failure::Unsupported(format!("there is no function @{entry}")))?;
    let weights = |at: usize| program.weights().get(at).cloned();
    // Every operation keeps its own nodes, so that every value is there to be seen; collectives change the graph.
    if tier == Tier::Correctness {
        let each =
            import_op_by_op(func, &weights).map_err(|error| Failure::Unsupported(error.to_string()))?;
        let OpByOp { graph, marks } = each;
        if !any(&graph) {
            return Ok(Prepared { graph, marks: Some(marks), exchanges: Exchanges::default() });
        }
    }
    let graph = import(func, &weights).map_err(|error| Failure::Unsupported(error.to_string()))?;
    let (graph, exchanges) = prepare(graph, grid).map_err(Failure::Unsupported)?;
    Ok(Prepared { graph, marks: None, exchanges })
}

/// One process, compiled for its GPU.
fn one(
    site: &Site,
    (graph, marks): (Graph, Option<Vec<OpSpan>>),
    Wanted { program, tier, rounding }: Wanted<'_>,
    together: Together,
) -> std::result::Result<Made, Failure> {
    let graph = if marks.is_some() { graph } else { simplify(&graph) };
    let Site { gpu, products, networks } = site.clone();
    make(&gpu, &Request { program, graph, marks, tier, rounding, products, networks, together })
}

/// The processes of an operation that runs several.
fn grid(
    devices: &dyn Devices,
    number: u32,
    part: &OpaqueOp,
    op: OpRef<'_>,
    wanted: Wanted<'_>,
) -> std::result::Result<Processes, Failure> {
    let unsupported = |reason: &str| Failure::Unsupported(reason.to_owned());
    let names = names(op).ok_or_else(|| unsupported("its programs cannot be read"))?;
    let (replicas, partitions) = (names.len(), names.first().map_or(0, Vec::len));
    if partitions == 0 || names.iter().any(|row| row.len() != partitions) {
        return Err(unsupported("its replicas have different numbers of partitions"));
    }
    let (count, there) = (replicas * partitions, devices.count());
    if count > there as usize {
        let is = if there == 1 { "is" } else { "are" };
        return Err(Failure::Unsupported(format!("needs {count} GPUs, {there} {is} there")));
    }
    let module = Arc::new(part.slice.module.clone());
    let mut processes = Vec::new();
    for (at, name) in names.iter().flatten().enumerate() {
        let me = ProcessId { replica: at / partitions, partition: at % partitions };
        let program = Program::new(Arc::clone(&module), name, Weights::default())
            .map_err(|error| Failure::Unsupported(error.to_string()))?;
        let made = prepared(&program, wanted.tier, &Grid { replicas, partitions, me })?;
        // One process runs where the program does.
        let device = if count == 1 { number } else { u32::try_from(at).unwrap_or(u32::MAX) };
        processes.push(Process { me, site: devices.site(device)?, program, made });
    }
    let world = world(devices, &processes)?;
    let mut all = Vec::new();
    for Process { me, site, program, made } in processes {
        let Prepared { graph, marks, exchanges } = made;
        let together = Together { exchanges, world: Arc::clone(&world), grids: Vec::new() };
        let made = one(&site, (graph, marks), Wanted { program: &program, ..wanted }, together)?;
        all.push((me, made));
    }
    // Processes that would wait for ever are for the reference, which sees it.
    if !meets(all.iter().map(|(me, made)| (*me, VecDeque::from(made.meetings.clone()))).collect()) {
        return Err(unsupported("its processes do not meet at their collectives"));
    }
    let gpus = if count == 1 { "GPU" } else { "GPUs" };
    let name = format!("{replicas} x {partitions} processes on {count} {gpus}");
    let all = all.into_iter().map(|(me, made)| (me, Compiled::new(made))).collect();
    Ok(Processes { all, world, name })
}

/// A process before it is compiled.
struct Process {
    me: ProcessId,
    site: Site,
    program: Program,
    made: Prepared,
}

/// Connects processes, those that meet.
fn world(devices: &dyn Devices, processes: &[Process]) -> std::result::Result<Arc<World>, Failure> {
    let groups = || processes.iter().flat_map(|process| process.made.exchanges.groups());
    let Some(largest) = groups().map(|group| group.len()).max() else { return Ok(Arc::default()) };
    let library = devices.collectives();
    if let Err(error @ (GpuError::Missing(_) | GpuError::Symbol { .. })) = &library
        && largest > 1
    {
        return Err(Failure::Unsupported(error.to_string()));
    }
    let gpu = |who: ProcessId| {
        processes.iter().find(|process| process.me == who).map(|process| Arc::clone(&process.site.gpu))
    };
    Ok(Arc::new(World::new(&library, groups(), gpu)?))
}

/// The functions that processes run, by replica and partition.
fn names(op: OpRef<'_>) -> Option<Vec<Vec<String>>> {
    let name =
        |attribute: &Attribute| attribute.as_symbol().or_else(|| attribute.as_str()).map(str::to_owned);
    let row = |attribute: &Attribute| attribute.as_array()?.iter().map(name).collect();
    op.attr("programs")?.as_array()?.iter().map(row).collect()
}
