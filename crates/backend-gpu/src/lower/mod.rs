//! Lowering: chooses for each cluster a library call, generated kernels or the host.

mod align_gemms;
mod attention;
mod bias_gradient;
mod byte_gemm;
mod call;
mod conv;
mod conv_gradient;
mod dce;
mod epilogue;
mod gemm;
mod hoist;
mod merge_gemms;
mod operands;
mod plan;
mod quantized;
mod relu;
mod scales;
mod small_tables;
mod split;
mod task;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use warpforge_codegen::emit;
use warpforge_fusion::cluster::{Cluster, Clusters, Kind};
use warpforge_fusion::graph::OpSpan;
use warpforge_fusion::pipeline::{self, Imported, Plan};
use warpforge_fusion::{Graph, NodeId, Op, Recipe};
use warpforge_runtime::Tier;
use warpforge_tensor::ElementType;

pub(crate) use call::{AttentionCall, ChainOperand, ConvCall, GemmCall, Heads};
pub(crate) use plan::{GpuDevice, compute_precision, load, plan};
pub(crate) use task::{LibraryQuery, Lowering, LoweringContext, Task};

use bias_gradient::BiasGradient;
use conv_gradient::ConvGradient;
use operands::Operands;
use plan::prefers_blas;

use crate::blas::{Activation, Blas};
use crate::process_group::GroupOp;
use crate::vendor::Vendor;

/// A lowered program.
pub(crate) struct Lowered {
    /// The graph, with added nodes.
    pub(crate) graph: Graph,
    /// The graph nodes of each operation, where operations keep their own nodes.
    pub(crate) spans: Option<Vec<OpSpan>>,
    /// Tasks that run once, on constants.
    pub(crate) setup: Vec<Task>,
    /// Tasks of each run.
    pub(crate) tasks: Vec<Task>,
    /// The results.
    pub(crate) outputs: Vec<warpforge_fusion::cluster::Operand>,
}

/// Clusters an imported graph and lowers the clusters.
///
/// # Errors
///
/// When a cluster has no lowering.
pub(crate) fn lower(imported: &Imported, context: &LoweringContext<'_>) -> Result<Lowered, String> {
    // If the library does not support the layout of an 8-bit GEMM, all of them are lowered without it.
    let bytes = byte_gemm::any(&imported.graph)
        || context.precision.recipe().is_some_and(Recipe::quantizes_activations);
    let library = context.tier == Tier::Production && context.blas.is_some() && bytes;
    match library.then(|| lower_with(imported, context, Some(context.refused))) {
        Some(Ok(lowered)) => Ok(lowered),
        _ => lower_with(imported, context, None),
    }
}

fn lower_with(
    imported: &Imported,
    context: &LoweringContext<'_>,
    byte_gemms: Option<&HashSet<LibraryQuery>>,
) -> Result<Lowered, String> {
    let &LoweringContext { tier, precision, has_state, options, .. } = context;
    // Generated kernels for complex numbers are less accurate than the reference at extreme values.
    if imported.graph.nodes.iter().any(|node| matches!(node.element, ElementType::Complex(_))) {
        return Err("no kernels for complex numbers".to_owned());
    }
    let dnn = context.dnn;
    let device = GpuDevice {
        has_state,
        byte_gemms,
        dnn,
        ..GpuDevice::new(tier, precision, options, context.blas.is_some())
    };
    let plan = pipeline::cluster(imported.clone(), &device).map_err(|error| error.to_string())?;
    let Plan { graph, clusters: Clusters { clusters, outputs }, spans, .. } = plan;
    let mut in_memory: Vec<bool> =
        graph.nodes.iter().map(|node| matches!(node.op, Op::Argument(_) | Op::Constant(_))).collect();
    clusters.iter().flat_map(Cluster::results).for_each(|given| in_memory[given.index()] = true);
    let mut lowerer = Lowerer {
        operands: Operands::new(graph),
        context,
        tasks: Vec::new(),
        in_memory,
        byte_gemms: byte_gemms.is_some(),
        packed: HashMap::new(),
        widened: HashMap::new(),
    };
    let mut gradients = match context.tier {
        Tier::Production if context.blas.is_some_and(Blas::has_epilogues) => {
            bias_gradient::find(&lowerer.operands.graph, &clusters, context)
        }
        _ => HashMap::new(),
    };
    let fused_into_gemms: HashSet<NodeId> =
        gradients.values().map(|gradient| gradient.cluster.output).collect();
    for cluster in clusters {
        match gradients.remove(&cluster.output) {
            Some(gradient) => lowerer.add_with_bias_gradient(cluster, gradient)?,
            None if fused_into_gemms.contains(&cluster.output) => {}
            None => lowerer.add(cluster)?,
        }
    }
    let Lowerer { operands, mut tasks, .. } = lowerer;
    let (graph, mut setup) = operands.finish();
    if context.tier != Tier::Correctness {
        attention::fuse_output_copies(&graph, &mut tasks, &outputs);
        dce::eliminate_dead_tasks(&graph, &mut tasks, &outputs);
        hoist::hoist_constants(&graph, &mut setup, &mut tasks, &outputs);
    }
    Ok(Lowered { graph, spans, setup, tasks, outputs })
}

struct Lowerer<'a> {
    operands: Operands,
    context: &'a LoweringContext<'a>,
    tasks: Vec<Task>,
    /// Whether each value is materialised.
    in_memory: Vec<bool>,
    /// Whether GEMMs of 8-bit types go to the BLAS.
    byte_gemms: bool,
    /// Codes of 4 bits as words.
    packed: HashMap<NodeId, NodeId>,
    /// Quantized weights that were widened.
    widened: HashMap<(NodeId, ElementType), NodeId>,
}

impl Lowerer<'_> {
    /// Lowers a cluster.
    fn add(&mut self, cluster: Cluster) -> Result<(), String> {
        let graph = &self.operands.graph;
        let lowering = self.context.group.of(&graph.node(cluster.output).op).map(|shared| match shared {
            GroupOp::Collective(collective) => Lowering::Collective(Arc::clone(collective)),
            GroupOp::Bucket(call) => Lowering::Bucket(call),
            GroupOp::Grid(grid) => Lowering::Grid(grid),
            GroupOp::Reference(why) => Lowering::Host(Some(why.to_owned())),
        });
        if let Some(lowering) = lowering {
            self.tasks.push(Task::new(cluster, lowering));
            return Ok(());
        }
        if is_empty(graph, &cluster) {
            return Ok(());
        }
        if let Kind::Dot(contraction) | Kind::Conv(contraction) = &cluster.kind
            && contraction.operands.iter().any(|operand| operand.view.is_empty())
        {
            let parts = split::parts(&cluster).unwrap_or_else(|| vec![split::zeros(graph, contraction.node)]);
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        if let Kind::Dot(contraction) = &cluster.kind
            && let Some(weights) = contraction.weights
        {
            return self.add_quantized(&cluster, &contraction.clone(), weights);
        }
        let libraries = self.context.tier == Tier::Production
            && !self.context.refused.contains(&LibraryQuery::Cluster(cluster.output));
        if self.retries_without_epilogue(&cluster)
            && let Some(parts) = split::parts(&cluster)
        {
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        if libraries
            && self.context.dnn == Some(Vendor::Cuda)
            && !self.context.refused.contains(&LibraryQuery::Extra(cluster.output))
            && let Some(gradient) = ConvGradient::of(graph, &cluster)
        {
            if let Some(parts) = split::parts(&cluster) {
                return parts.into_iter().try_for_each(|part| self.add(part));
            }
            let (operands, tasks) = (&mut self.operands, &mut self.tasks);
            return gradient.add(operands, tasks, self.context.options, &cluster);
        }
        match &cluster.kind {
            Kind::Dot(contraction)
                if libraries && self.context.blas.is_some() && self.calls_blas(contraction) =>
            {
                return self.add_gemm(&cluster, &contraction.clone(), None).map(|_| ());
            }
            Kind::Conv(contraction)
                if libraries
                    && self.context.dnn.is_some_and(|vendor| conv::supported(graph, contraction, vendor)) =>
            {
                return self.add_convolution(&cluster, &contraction.clone());
            }
            Kind::Attention(attention) if libraries && self.context.dnn == Some(Vendor::Cuda) => {
                if let Some(call) = attention::call(graph, attention, cluster.output, &self.in_memory) {
                    let cluster = Cluster { kind: call.as_unfused(), ..cluster };
                    self.tasks.push(Task::new(cluster, Lowering::Attention(Box::new(call))));
                    return Ok(());
                }
            }
            _ => {}
        }
        if libraries
            && (self.context.blas.is_some()
                && prefers_blas(graph, &cluster, self.context.tier, self.context.options))
            && let Some(parts) = split::parts(&cluster)
        {
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        let reason = match emit(graph, &cluster, self.context.options) {
            Ok(emitted) => {
                self.tasks.push(Task::new(cluster, Lowering::Emitted(emitted)));
                return Ok(());
            }
            Err(reason) => reason,
        };
        if let Some(parts) = split::parts(&cluster) {
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        if matches!(cluster.kind, Kind::Unfused(_)) && graph.reference(cluster.output).is_some() {
            self.tasks.push(Task::new(cluster, Lowering::Host(None)));
            return Ok(());
        }
        Err(reason.to_string())
    }

    /// Whether the BLAS computes a GEMM.
    fn calls_blas(&self, contraction: &warpforge_fusion::cluster::Contraction) -> bool {
        let graph = &self.operands.graph;
        let bytes = gemm::is_byte(graph.node(contraction.operands[0].value).element);
        gemm::supported(graph, contraction) && (self.byte_gemms || !bytes)
    }

    /// Whether a refused GEMM or convolution is tried again without its epilogue.
    fn retries_without_epilogue(&self, cluster: &Cluster) -> bool {
        let LoweringContext { tier, blas, dnn, refused, .. } = self.context;
        let again = match &cluster.kind {
            Kind::Dot(contraction) => contraction.epilogue.is_some() && blas.is_some_and(Blas::has_rocblas),
            // MIOpen fuses few epilogues.
            Kind::Conv(contraction) => contraction.epilogue.is_some() && *dnn == Some(Vendor::Hip),
            _ => false,
        };
        again && *tier == Tier::Production && refused.contains(&LibraryQuery::Cluster(cluster.output))
    }

    /// Lowers a convolution to the DNN library; unsupported epilogues become kernels.
    fn add_convolution(
        &mut self,
        cluster: &Cluster,
        contraction: &warpforge_fusion::cluster::Contraction,
    ) -> Result<(), String> {
        let options = self.context.options;
        let vendor = self.context.dnn;
        let query = conv::ConvQuery { contraction, output: cluster.output, vendor };
        let made = conv::call(&mut self.operands, &mut self.tasks, options, &query)?;
        let Some(call) = made else {
            let parts = split::parts(cluster).ok_or("a convolution cannot be separated from its epilogue")?;
            return parts.into_iter().try_for_each(|part| self.add(part));
        };
        let cluster =
            Cluster { kind: call.as_unfused(), output: cluster.output, nodes: cluster.nodes.clone() };
        self.tasks.push(Task::new(cluster, Lowering::Convolution(Box::new(call))));
        Ok(())
    }

    /// Lowers a GEMM with a bias gradient, in one call if the library supports it.
    fn add_with_bias_gradient(&mut self, cluster: Cluster, gradient: BiasGradient) -> Result<(), String> {
        let joined = match &cluster.kind {
            Kind::Dot(contraction)
                if self.calls_blas(contraction)
                    && !self.context.refused.contains(&LibraryQuery::Cluster(cluster.output)) =>
            {
                self.add_gemm(&cluster, &contraction.clone(), Some(&gradient))?
            }
            _ => {
                self.add(cluster)?;
                false
            }
        };
        if joined { Ok(()) } else { self.add(gradient.cluster) }
    }

    /// Lowers a GEMM to the BLAS; unsupported epilogues become kernels. Returns whether it includes the bias
    /// gradient.
    fn add_gemm(
        &mut self,
        cluster: &Cluster,
        contraction: &warpforge_fusion::cluster::Contraction,
        gradient: Option<&BiasGradient>,
    ) -> Result<bool, String> {
        let operand = self.operands.graph.node(contraction.operands[0].value).element;
        let (bytes, floats) = (gemm::is_byte(operand), operand.is_float());
        let fused = match &contraction.epilogue {
            Some(epilogue) if bytes => {
                let refused = self.context.refused.contains(&LibraryQuery::Extra(cluster.output));
                let scaled = match floats && !refused {
                    true => {
                        let dot = &self.operands.graph.node(contraction.node).op;
                        let fast = matches!(dot, Op::Dot(dot) if dot.imprecise_sums);
                        scales::of_library(&mut self.operands, epilogue, cluster.output, fast)?
                    }
                    false => None,
                };
                match scaled {
                    Some(scaled) => scaled,
                    None => {
                        let parts =
                            split::parts(cluster).ok_or("a GEMM cannot be separated from its epilogue")?;
                        return parts.into_iter().try_for_each(|part| self.add(part)).map(|()| false);
                    }
                }
            }
            Some(epilogue) => {
                let library = self.context.blas;
                let gelu = !self.context.refused.contains(&LibraryQuery::Extra(cluster.output));
                let relu_gradient = gelu && library.is_some_and(Blas::has_relu_gradient);
                let optional = epilogue::OptionalEpilogues { gelu, relu_gradient };
                let graph = &self.operands.graph;
                let fused = epilogue::of_library(graph, contraction, epilogue, cluster.output, optional);
                match fused.filter(|fused| fused.is_sum() || library.is_some_and(Blas::has_epilogues)) {
                    Some(fused) => fused,
                    None => {
                        let parts =
                            split::parts(cluster).ok_or("a GEMM cannot be separated from its epilogue")?;
                        return parts.into_iter().try_for_each(|part| self.add(part)).map(|()| false);
                    }
                }
            }
            None => epilogue::LibraryEpilogue::none(contraction.node),
        };
        let mut call =
            gemm::call(&mut self.operands, &mut self.tasks, self.context.options, contraction, &fused)?;
        let joined = gradient
            .filter(|gradient| call.add_bias_gradient(gradient.side, gradient.of, gradient.cluster.output));
        let mut nodes = cluster.nodes.clone();
        nodes.extend(joined.iter().flat_map(|gradient| &gradient.cluster.nodes));
        let output = cluster.output;
        let cluster = Cluster { kind: call.as_kind(), output, nodes };
        let mut task = Task::new(cluster, Lowering::Gemm(Box::new(call)));
        // If refused, the GEMM is tried without these.
        if let Some(gradient) = joined {
            task.query = LibraryQuery::Extra(gradient.cluster.output);
        } else if fused.scales.is_some() || !matches!(fused.activation, Activation::None | Activation::Relu) {
            task.query = LibraryQuery::Extra(output);
        }
        self.tasks.push(task);
        Ok(joined.is_some())
    }
}

/// Whether a cluster has no elements to compute. An opaque operation may run for what it does.
fn is_empty(graph: &Graph, cluster: &Cluster) -> bool {
    let given = graph.results(cluster.output);
    !matches!(graph.node(cluster.output).op, Op::Opaque(_))
        && given.into_iter().all(|id| graph.node(id).is_empty())
}
