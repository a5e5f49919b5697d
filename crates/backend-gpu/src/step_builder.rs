//! From lowered tasks to the steps of a run.

use std::collections::HashSet;
use std::sync::Arc;

use warpforge_codegen::Kernel;
use warpforge_fusion::cluster::{Cluster, Kind, Operand};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::nodes::Nodes;
use warpforge_runtime::CustomCalls;
use warpforge_runtime::profile::provenance;

use crate::blas::Blas;
use crate::collectives::BucketCall;
use crate::compile_error::CompileError;
use crate::dnn::DnnLibrary;
use crate::driver::{Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::grid::{CompiledProcesses, ProcessGroupStep};
use crate::launch_groups::LaunchGroup;
use crate::lower::{Lowering, Task};
use crate::process_group::ProcessGroup;
use crate::salt::SaltBuffers;
use crate::steps::{
    Buckets, CollectiveStep, DeviceLayout, DnnStep, ExecutionStep, GemmStep, HostStep, KernelStep,
    LoadedKernels, PlannedStep,
};

impl Lowering {
    fn name(&self) -> &'static str {
        match self {
            Lowering::Emitted(_) => "a generated kernel",
            Lowering::Gemm(_) => "a GEMM",
            Lowering::Convolution(_) => "a convolution",
            Lowering::Attention(_) => "attention",
            Lowering::Collective(_) => "a collective between processes",
            Lowering::Bucket(_) => "an all-reduce between ranks",
            Lowering::Grid(_) => "several processes",
            Lowering::Host(_) => "an operation on the host",
        }
    }
}

impl Task {
    fn by_library(&self) -> bool {
        matches!(self.lowering, Lowering::Gemm(_) | Lowering::Convolution(_) | Lowering::Attention(_))
    }
}

/// Builds execution steps from tasks.
pub(crate) struct StepBuilder<'a> {
    pub(crate) gpu: &'a Arc<Gpu>,
    pub(crate) graph: &'a Graph,
    /// The nodes of the traced graph.
    pub(crate) nodes: &'a Nodes,
    pub(crate) layout: &'a DeviceLayout,
    pub(crate) kernels: &'a LoadedKernels,
    pub(crate) stream: &'a Stream,
    pub(crate) blas: Option<&'a Blas>,
    pub(crate) dnn: Option<&'a DnnLibrary>,
    pub(crate) salt_buffers: &'a SaltBuffers,
    pub(crate) group: &'a ProcessGroup,
    pub(crate) grids: &'a [Arc<CompiledProcesses>],
    /// Custom calls of the host.
    pub(crate) calls: &'a CustomCalls,
    /// Instrumented kernels so far.
    pub(crate) salted: usize,
    /// All-reduces between ranks so far.
    pub(crate) buckets: Buckets,
}

impl StepBuilder<'_> {
    fn dnn(&self) -> Result<&DnnLibrary> {
        self.dnn.ok_or_else(|| GpuError::Other("no DNN library".to_owned()))
    }

    /// The steps of tasks in groups, or the queries that libraries refused.
    pub(crate) fn all(
        &mut self,
        tasks: &[Task],
        groups: &[LaunchGroup],
    ) -> std::result::Result<Vec<PlannedStep>, CompileError> {
        let mut steps = Vec::new();
        let mut refusals = HashSet::new();
        for group in groups {
            let members: Vec<&Task> = group.tasks.iter().map(|&at| &tasks[at]).collect();
            let made = match (&group.kernel, members.as_slice()) {
                (None, [task]) => self.steps(task),
                (Some(kernel), members) => self.group(kernel, members).map(|step| vec![step]),
                (None, _) => Err(GpuError::Other("tasks are grouped without a kernel for them".to_owned())),
            };
            match made {
                Ok(mut made) => {
                    let nodes: Vec<NodeId> =
                        members.iter().flat_map(|task| task.cluster.nodes.iter().copied()).collect();
                    let ops = self.graph.origins(&nodes);
                    let said = provenance(self.nodes, &ops);
                    for planned in &mut made {
                        planned.ops.clone_from(&ops);
                        planned.provenance.clone_from(&said);
                    }
                    if let Some(last) = made.last_mut() {
                        let given = members.iter().flat_map(|task| task.cluster.results());
                        last.gives = given.flat_map(|id| self.graph.results(id)).collect();
                    }
                    steps.extend(made);
                }
                Err(error @ (GpuError::Lost { .. } | GpuError::OutOfMemory { .. })) => {
                    return Err(error.into());
                }
                Err(error) if members.iter().all(|task| task.by_library()) => {
                    for task in members {
                        let what = task.lowering.name();
                        tracing::info!(%error, query = ?task.query, "{what}: the library refuses; it is done in another lowering");
                        refusals.insert(task.query);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if refusals.is_empty() { Ok(steps) } else { Err(CompileError::Refused(refusals)) }
    }

    /// The step of tasks with one kernel.
    fn group(&self, kernel: &Kernel, tasks: &[&Task]) -> Result<PlannedStep> {
        let members: Vec<&Kernel> = tasks.iter().flat_map(|task| task.kernels()).collect();
        let step = KernelStep::group(kernel, &members, self.kernels, self.layout, self.gpu, self.stream)?;
        let node = tasks.first().map(|task| task.cluster.output);
        let node = node.ok_or_else(|| GpuError::Other("a group has no tasks".to_owned()))?;
        Ok(PlannedStep::new(Box::new(step), node, (kernel.flops, kernel.bytes)))
    }

    fn steps(&mut self, task: &Task) -> Result<Vec<PlannedStep>> {
        let Task { cluster, lowering, .. } = task;
        let node = cluster.output;
        let one = |step: Box<dyn ExecutionStep>, cost| vec![PlannedStep::new(step, node, cost)];
        Ok(match lowering {
            Lowering::Emitted(emitted) => {
                let (salt_buffers, mut numbers) = (self.salt_buffers, self.salted..);
                let mut salt = |_: &Kernel| numbers.next().map_or(0, |number| salt_buffers.address(number));
                let launches = KernelStep::all(emitted, self.kernels, self.layout, &mut salt)?;
                let planned = |(launch, kernel): (KernelStep, &Kernel)| {
                    let salted = kernel.is_salted().then_some(self.salted);
                    self.salted += usize::from(salted.is_some());
                    let cost = (kernel.flops, kernel.bytes);
                    PlannedStep { salted, ..PlannedStep::new(Box::new(launch), node, cost) }
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
            Lowering::Bucket(call) => {
                let (node, operands) = unfused_operands(cluster)?;
                let cost = cost(self.graph, cluster);
                let (gpu, graph, layout) = (self.gpu, self.graph, self.layout);
                match *call {
                    BucketCall::Start { bucket, conditional } => {
                        let alone = || GpuError::Other("the program has no other ranks".to_owned());
                        let group = self.group.ranks.as_ref().ok_or_else(alone)?;
                        let place = (bucket, conditional);
                        let step = self.buckets.start(group, gpu, graph, place, operands, layout)?;
                        one(Box::new(step), cost)
                    }
                    BucketCall::Done { bucket } => {
                        one(Box::new(self.buckets.done(graph, bucket, node, layout)?), cost)
                    }
                }
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
