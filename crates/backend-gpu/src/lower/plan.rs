//! A GPU as the compile pipeline sees it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use warpforge_codegen::{ComputePrecision, Effort, Options, emit};
use warpforge_fusion::cluster::Machine;
use warpforge_fusion::cluster::{Cluster, Contraction, Kind};
use warpforge_fusion::pipeline::{self, Imported, Plan};
use warpforge_fusion::{Graph, ImportError, Node, Op, Precision};
use warpforge_interp::Grid;
use warpforge_runtime::{DeviceReduction, Program, Target, Tier};
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::collectives::{
    BucketOps, CollectiveOps, has_buckets, has_collectives, lower_buckets, lower_collectives,
};
use crate::vendor::Vendor;

use super::task::LibraryQuery;
use super::{align_gemms, byte_gemm, conv, gemm, merge_gemms, small_tables};

/// The first architecture of NVIDIA's whose tensor cores multiply floats of 8 bits.
const FIRST_WITH_FLOAT8: u32 = 89;

/// What the plan depends on.
pub(crate) struct GpuDevice<'a> {
    pub(crate) tier: Tier,
    pub(crate) precision: Precision,
    pub(crate) options: &'a Options,
    /// Whether the program updates state.
    pub(crate) has_state: bool,
    /// Whether there is a BLAS.
    pub(crate) has_blas: bool,
    /// Whose DNN library there is.
    pub(crate) dnn: Option<Vendor>,
    /// Whether the BLAS computes 8-bit GEMMs, but for those that it refused.
    pub(crate) byte_gemms: Option<&'a HashSet<LibraryQuery>>,
    pub(crate) grid: &'a Grid,
    /// What the machine says about fusion decisions that are close.
    pub(crate) machine: Option<Arc<dyn Machine>>,
    /// Whether the backward pass computes the forward pass again.
    pub(crate) gradient_checkpointing: bool,
    /// The collectives that were lowered.
    pub(crate) collectives: RefCell<CollectiveOps>,
    /// The calls that the device makes between so many ranks, and those that were lowered.
    pub(crate) reduction: Option<(&'a DeviceReduction, usize)>,
    pub(crate) buckets: RefCell<BucketOps>,
}

impl<'a> GpuDevice<'a> {
    /// A device of one process.
    pub(crate) fn new(tier: Tier, precision: Precision, options: &'a Options, has_blas: bool) -> Self {
        let (byte_gemms, grid, collectives) = (None, &Grid::ALONE, RefCell::default());
        Self {
            tier,
            precision,
            options,
            has_state: false,
            has_blas,
            dnn: None,
            byte_gemms,
            grid,
            machine: None,
            gradient_checkpointing: false,
            collectives,
            reduction: None,
            buckets: RefCell::default(),
        }
    }

    /// Whether there is a library that multiplies floats of 8 bits on units of their own.
    fn has_float8_units(&self) -> bool {
        let capability = self.options.compute_capability();
        let has_units = capability.is_some_and(|capability| capability >= FIRST_WITH_FLOAT8);
        self.tier == Tier::Production && self.has_blas && has_units
    }
}

impl pipeline::Device for GpuDevice<'_> {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn checkpoints_gradients(&self) -> bool {
        self.gradient_checkpointing
    }

    fn is_op_by_op(&self) -> bool {
        self.tier == Tier::Correctness
    }

    fn keeps_spans(&self, graph: &Graph) -> bool {
        !has_collectives(graph) && !self.reduction.is_some_and(|(reduction, _)| has_buckets(graph, reduction))
    }

    fn legalise(&self, graph: Graph) -> Result<Graph, String> {
        let (graph, collectives) = lower_collectives(graph, self.grid)?;
        self.collectives.replace(collectives);
        let Some((reduction, size)) = self.reduction else { return Ok(graph) };
        let (graph, buckets) = lower_buckets(&graph, reduction, size)?;
        self.buckets.replace(buckets);
        Ok(graph)
    }

    fn reads_quantized_weights(&self) -> bool {
        self.tier != Tier::Correctness
    }

    fn computes_float8(&self) -> bool {
        true
    }

    fn multiplies_float8(&self, columns: usize, depth: usize) -> bool {
        self.has_float8_units() && byte_gemm::is_aligned(columns, depth)
    }

    fn rewrite(&self, mut graph: Graph) -> Graph {
        if self.has_float8_units() && self.byte_gemms.is_some() {
            graph = byte_gemm::read_before_widening(graph);
        }
        if self.tier == Tier::Production {
            graph = merge_gemms::merge_gemms(&small_tables::select(graph));
            if self.has_blas {
                graph = align_gemms::align_gemms(graph, self.precision);
            }
        }
        graph
    }

    /// cuDNN multiplies groups on tensor cores in every type. Convolutions of each channel alone are bound by memory: they gain where both images are narrow.
    fn narrows_convolution(&self, convolution: &Node, result: Option<&[Function]>) -> bool {
        let Op::Conv(conv) = &convolution.op else { return false };
        let of_each_channel = convolution.dims.last() == Some(&conv.groups);
        match (self.tier, self.dnn) {
            _ if conv.groups == 1 => true,
            (Tier::Production, Some(Vendor::Cuda)) => {
                let in_chain = |functions: &[Function]| functions.iter().copied().all(conv::is_in_chains);
                !of_each_channel || result.is_some_and(in_chain)
            }
            _ => false,
        }
    }

    fn has_kernel(&self, graph: &Graph, cluster: &Cluster) -> bool {
        match &cluster.kind {
            Kind::Dot(contraction) if is_wide_float(graph, contraction) => true,
            Kind::Dot(contraction) => {
                let query = LibraryQuery::Cluster(cluster.output);
                let by_library = self.byte_gemms.is_some_and(|refused| !refused.contains(&query))
                    && byte_gemm::supported_node(graph, contraction.node);
                by_library || emit(graph, cluster, self.options).is_ok()
            }
            Kind::Unfused(_) => emit(graph, cluster, self.options).is_ok(),
            _ => true,
        }
    }

    fn joins_rows(&self) -> bool {
        self.tier == Tier::Production
    }

    /// Updates of a parameter and of its moments read the same values.
    fn joins_loops(&self) -> bool {
        self.has_state && self.tier == Tier::Production
    }

    fn machine(&self) -> Option<Arc<dyn Machine>> {
        self.machine.clone()
    }

    fn fuses(&self, graph: &Graph, cluster: &Cluster) -> bool {
        let by_blas = self.has_blas && prefers_blas(graph, cluster, self.tier, self.options);
        !by_blas && emit(graph, cluster, self.options).is_ok()
    }
}

/// Whether a GEMM is one of floats of 16 bits or more, which always has a kernel.
fn is_wide_float(graph: &Graph, contraction: &Contraction) -> bool {
    let element = graph.node(contraction.operands[0].value).element;
    element.is_float() && !gemm::is_byte(element)
}

/// Whether attention is faster by BLAS, with the scores in memory, than by a generated kernel: in f32, where tensor cores cannot be used.
pub(crate) fn prefers_blas(graph: &Graph, cluster: &Cluster, tier: Tier, options: &Options) -> bool {
    let queries = match &cluster.kind {
        Kind::Attention(attention) => &attention.scores.operands[0],
        Kind::AttentionGradient(gradient) => &gradient.scores.operands[0],
        _ => return false,
    };
    tier == Tier::Production
        && options.compute_precision == ComputePrecision::Model
        && graph.node(queries.value).element == ElementType::F32
}

/// What the kernels compute f32 operands in. Roundings to narrower types are operations of the graph.
pub(crate) fn compute_precision(precision: Precision) -> ComputePrecision {
    match precision {
        Precision::Tf32 => ComputePrecision::Tf32,
        Precision::Model | Precision::Bf16 | Precision::F16 | Precision::Quantized(_) => {
            ComputePrecision::Model
        }
    }
}

/// The first half of the pipeline for a program.
///
/// # Errors
///
/// When the program is no graph of tensors, or has collectives that cannot be lowered.
pub(crate) fn load(program: &Program, device: &GpuDevice<'_>) -> Result<Imported, ImportError> {
    let entry = program.entry();
    let missing = || ImportError::Unsupported(format!("there is no function @{entry}"));
    let func = program.module().function(entry).ok_or_else(missing)?;
    let weights = |at: usize| program.weights().get(at).cloned();
    pipeline::load(func, &weights, device)
}

/// The plan of a program on a GPU that need not be on this machine: the newest that the emitter is tuned for, with its libraries.
///
/// # Errors
///
/// As [`load`].
pub(crate) fn plan(program: &Program, vendor: Vendor, target: &Target) -> Result<Plan, ImportError> {
    let &Target { tier, precision, gradient_checkpointing, .. } = target;
    let mut options = match vendor {
        Vendor::Cuda => Options::new(warpforge_codegen::Dialect::Cuda, "sm_90"),
        Vendor::Hip => Options::new(warpforge_codegen::Dialect::Hip, "gfx942"),
    };
    options.compute_precision = compute_precision(precision);
    if tier == Tier::Correctness {
        options.effort = Effort::Naive;
    }
    let refused = HashSet::new();
    let byte_gemms = (tier == Tier::Production).then_some(&refused);
    let dnn = Some(vendor);
    let has_state = !program.bindings().is_empty();
    let machine = target.machine.clone();
    let device = GpuDevice {
        has_state,
        byte_gemms,
        machine,
        dnn,
        gradient_checkpointing,
        ..GpuDevice::new(tier, precision, &options, true)
    };
    pipeline::cluster(load(program, &device)?, &device)
}
