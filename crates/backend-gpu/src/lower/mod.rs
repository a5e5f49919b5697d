//! Clusters to tasks: which of them a library computes, which a generated kernel, which the host.

mod attention;
mod bytes;
mod conv;
mod epilogue;
mod gelu;
mod geometry;
mod join;
mod narrow;
mod operands;
mod predicate;
mod relu;
mod split;
mod sums;
mod tidy;
mod unfused;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use warpforge_codegen::{Emitted, Options, Products as Rounding, emit};
use warpforge_fusion::cluster::{Cluster, Clusters, Kind, clusters, fuse_attention_gradients};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_runtime::{Precision, Tier};
use warpforge_tensor::ElementType;

pub(crate) use attention::{AttentionCall, Heads, Mask, Masking};
pub(crate) use conv::{ConvCall, Taken};
pub(crate) use geometry::Call;
pub(crate) use predicate::{Seen, seen};

use operands::Operands;
use predicate::Predicates;
use sums::Sum;

use crate::collectives::Exchange;
use crate::library::Vendor;
use crate::processes::{Shared, Together};
use crate::products::{Activation, Library};
use crate::steps::Processes;

/// How a cluster is computed.
pub(crate) enum Way {
    /// By generated kernels.
    Emitted(Emitted),
    /// By the vendor's products.
    Product(Box<Call>),
    /// By the vendor's convolutions.
    Convolution(Box<ConvCall>),
    /// By cuDNN's attention.
    Attention(Box<AttentionCall>),
    /// By an exchange with other processes.
    Exchange(Arc<Exchange>),
    /// By processes on several devices.
    Grid(Arc<Processes>),
    /// By the reference on the host; why, where more is known than that nothing else has it.
    Host(Option<String>),
}

/// A cluster and how it is computed.
pub(crate) struct Task {
    pub(crate) cluster: Cluster,
    pub(crate) way: Way,
    /// What a library refuses when it refuses this.
    pub(crate) asked: Asked,
}

/// What a library is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    /// The cluster with this output.
    Whole(NodeId),
    /// Something that it may do besides, by the output that this gives.
    More(NodeId),
}

impl Task {
    fn new(cluster: Cluster, way: Way) -> Self {
        Self { asked: Asked::Whole(cluster.output), cluster, way }
    }
}

/// What a program becomes.
pub(crate) struct Lowered {
    /// The graph, with nodes for what was added.
    pub(crate) graph: Graph,
    /// What is done once, to constants.
    pub(crate) once: Vec<Task>,
    /// What each run does.
    pub(crate) tasks: Vec<Task>,
    /// Where the results are.
    pub(crate) outputs: Vec<warpforge_fusion::cluster::Operand>,
}

/// What is asked for and what there is.
pub(crate) struct Setting<'a> {
    pub(crate) tier: Tier,
    pub(crate) options: &'a Options,
    /// The vendor's products, where they are at hand.
    pub(crate) products: Option<&'a Library>,
    /// Whose library of convolutions is.
    pub(crate) networks: Option<Vendor>,
    /// What is for several processes.
    pub(crate) together: &'a Together,
    /// What a library was asked for and refused.
    pub(crate) refused: &'a HashSet<Asked>,
}

/// Chooses how each cluster of a graph is computed.
///
/// # Errors
///
/// When one can be computed in no way but by the reference as a whole: what it is.
pub(crate) fn lower(graph: Graph, setting: &Setting<'_>) -> Result<Lowered, String> {
    // Where a product of bytes lies so that the library does not take it, all stay with the reference.
    let library = setting.tier == Tier::Production && setting.products.is_some() && bytes::any(&graph);
    match library.then(|| lower_with(graph.clone(), setting, true)) {
        Some(Ok(lowered)) => Ok(lowered),
        _ => lower_with(graph, setting, false),
    }
}

fn lower_with(graph: Graph, setting: &Setting<'_>, with_bytes: bool) -> Result<Lowered, String> {
    // Kernels of complex numbers are not as near as the reference's at the ends of their range.
    if graph.nodes.iter().any(|node| matches!(node.element, ElementType::Complex(_))) {
        return Err("no kernels for complex numbers".to_owned());
    }
    let mut graph = match setting.tier {
        Tier::Correctness => graph,
        Tier::Observable => narrow::narrow(&graph),
        Tier::Production => join::join(&narrow::narrow(&graph)),
    };
    if with_bytes {
        bytes::products(&mut graph, setting.refused);
    }
    let Clusters { clusters, outputs } = match setting.tier {
        Tier::Correctness => unfused::clusters(&graph)?,
        _ => fuse_attention_gradients(&graph, clusters(&graph, false), &|cluster| {
            in_one_piece(&graph, cluster, setting)
        }),
    };
    let constant = tidy::constant(&graph);
    let mut in_memory: Vec<bool> =
        graph.nodes.iter().map(|node| matches!(node.op, Op::Argument(_) | Op::Constant(_))).collect();
    clusters.iter().flat_map(Cluster::results).for_each(|given| in_memory[given.index()] = true);
    let mut lowering = Lowering {
        operands: Operands::new(graph),
        setting,
        tasks: Vec::new(),
        constant,
        in_memory,
        predicates: Predicates::default(),
    };
    let mut sums = match setting.tier {
        Tier::Production if setting.products.is_some_and(Library::has_epilogues) => {
            sums::of_operands(&lowering.operands.graph, &clusters, setting)
        }
        _ => HashMap::new(),
    };
    let with_products: HashSet<NodeId> = sums.values().map(|sum| sum.cluster.output).collect();
    for cluster in clusters {
        match sums.remove(&cluster.output) {
            Some(sum) => lowering.add_with_sum(cluster, sum)?,
            None if with_products.contains(&cluster.output) => {}
            None => lowering.add(cluster)?,
        }
    }
    let Lowering { operands, mut tasks, .. } = lowering;
    let (graph, mut once) = operands.finish();
    if setting.tier != Tier::Correctness {
        attention::turn_results(&graph, &mut tasks, &outputs);
        tidy::prune(&graph, &mut tasks, &outputs);
        tidy::hoist(&graph, &mut once, &mut tasks, &outputs);
    }
    Ok(Lowered { graph, once, tasks, outputs })
}

struct Lowering<'a> {
    operands: Operands,
    setting: &'a Setting<'a>,
    tasks: Vec<Task>,
    /// Whether each value of the graph depends on nothing but constants.
    constant: Vec<bool>,
    /// Whether each lies in memory.
    in_memory: Vec<bool>,
    predicates: Predicates,
}

impl Lowering<'_> {
    /// Adds what computes a cluster.
    fn add(&mut self, cluster: Cluster) -> Result<(), String> {
        let graph = &self.operands.graph;
        let way = self.setting.together.of(&graph.node(cluster.output).op).map(|shared| match shared {
            Shared::Exchange(exchange) => Way::Exchange(Arc::clone(exchange)),
            Shared::Grid(processes) => Way::Grid(Arc::clone(processes)),
            Shared::Reference(why) => Way::Host(Some(why.to_owned())),
        });
        if let Some(way) = way {
            self.tasks.push(Task::new(cluster, way));
            return Ok(());
        }
        if results_are_empty(graph, &cluster) {
            return Ok(());
        }
        if let Kind::Dot(product) | Kind::Conv(product) = &cluster.kind
            && product.operands.iter().any(|operand| operand.view.is_empty())
        {
            let parts = split::parts(&cluster).unwrap_or_else(|| vec![split::nothing(graph, product.node)]);
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        let libraries = self.setting.tier == Tier::Production
            && !self.setting.refused.contains(&Asked::Whole(cluster.output));
        if self.is_asked_again(&cluster)
            && let Some(parts) = split::parts(&cluster)
        {
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        match &cluster.kind {
            Kind::Dot(product)
                if libraries && self.setting.products.is_some() && geometry::supported(graph, product) =>
            {
                return self.add_product(&cluster, &product.clone(), None).map(|_| ());
            }
            Kind::Conv(product)
                if libraries
                    && self.setting.networks.is_some_and(|vendor| {
                        conv::supported(graph, product, vendor, self.setting.options)
                    }) =>
            {
                return self.add_convolution(&cluster, &product.clone());
            }
            Kind::Attention(attention) if libraries && self.setting.networks == Some(Vendor::Cuda) => {
                let known = attention::Known { constant: &self.constant, in_memory: &self.in_memory };
                let predicates = &mut self.predicates;
                if let Some(call) = attention::call(graph, attention, cluster.output, &known, predicates) {
                    let cluster = Cluster { kind: call.as_single(), ..cluster };
                    self.tasks.push(Task::new(cluster, Way::Attention(Box::new(call))));
                    return Ok(());
                }
            }
            _ => {}
        }
        if libraries
            && is_wide_attention(graph, &cluster, self.setting)
            && let Some(parts) = split::parts(&cluster)
        {
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        let reason = match emit(graph, &cluster, self.setting.options) {
            // No kernel at all is right for what has no elements, which operations of the host do not say of themselves.
            Ok(emitted) if emitted.kernels.is_empty() && is_host(graph, &cluster) => {
                self.tasks.push(Task::new(cluster, Way::Host(None)));
                return Ok(());
            }
            Ok(emitted) => {
                self.tasks.push(Task::new(cluster, Way::Emitted(emitted)));
                return Ok(());
            }
            Err(reason) => reason,
        };
        if let Some(parts) = split::parts(&cluster) {
            return parts.into_iter().try_for_each(|part| self.add(part));
        }
        if is_host(graph, &cluster) {
            self.tasks.push(Task::new(cluster, Way::Host(None)));
            return Ok(());
        }
        Err(reason.to_string())
    }

    /// Whether a library that refused a product or a convolution with its epilogue is asked for it without.
    fn is_asked_again(&self, cluster: &Cluster) -> bool {
        let Setting { tier, products, networks, refused, .. } = self.setting;
        let again = match &cluster.kind {
            Kind::Dot(product) => product.epilogue.is_some() && products.is_some_and(Library::has_second),
            // MIOpen fuses little of what it computes.
            Kind::Conv(product) => product.epilogue.is_some() && *networks == Some(Vendor::Hip),
            _ => false,
        };
        again && *tier == Tier::Production && refused.contains(&Asked::Whole(cluster.output))
    }

    /// A convolution by the vendor's library, what it cannot do to the result by a kernel after it.
    fn add_convolution(
        &mut self,
        cluster: &Cluster,
        product: &warpforge_fusion::cluster::Contraction,
    ) -> Result<(), String> {
        let options = self.setting.options;
        let vendor = self.setting.networks;
        let asked = conv::Convolution { product, output: cluster.output, vendor };
        let made = conv::call(&mut self.operands, &mut self.tasks, options, &asked)?;
        let Some(call) = made else {
            let parts = split::parts(cluster).ok_or("a convolution cannot be taken from its epilogue")?;
            return parts.into_iter().try_for_each(|part| self.add(part));
        };
        let cluster =
            Cluster { kind: call.as_single(), output: cluster.output, nodes: cluster.nodes.clone() };
        self.tasks.push(Task::new(cluster, Way::Convolution(Box::new(call))));
        Ok(())
    }

    /// Adds a product and the sums of one of its operands, together where the library has both.
    fn add_with_sum(&mut self, cluster: Cluster, sum: Sum) -> Result<(), String> {
        let graph = &self.operands.graph;
        let joined = match &cluster.kind {
            Kind::Dot(product)
                if geometry::supported(graph, product)
                    && !self.setting.refused.contains(&Asked::Whole(cluster.output)) =>
            {
                self.add_product(&cluster, &product.clone(), Some(&sum))?
            }
            _ => {
                self.add(cluster)?;
                false
            }
        };
        if joined { Ok(()) } else { self.add(sum.cluster) }
    }

    /// A product by the vendor's library, what it cannot do to the result by a kernel after it. Says whether it gives the
    /// sum that is asked for too.
    fn add_product(
        &mut self,
        cluster: &Cluster,
        product: &warpforge_fusion::cluster::Contraction,
        sum: Option<&Sum>,
    ) -> Result<bool, String> {
        let bytes = geometry::in_bytes(self.operands.graph.node(product.operands[0].value).element);
        let fused = match &product.epilogue {
            Some(_) if bytes => {
                let parts = split::parts(cluster).ok_or("a product cannot be taken from its epilogue")?;
                return parts.into_iter().try_for_each(|part| self.add(part)).map(|()| false);
            }
            Some(epilogue) => {
                let library = self.setting.products;
                let gelu = !self.setting.refused.contains(&Asked::More(cluster.output));
                let relu_gradient = gelu && library.is_some_and(Library::has_relu_gradient);
                let more = epilogue::More { gelu, relu_gradient };
                let graph = &self.operands.graph;
                let fused = epilogue::of_library(graph, product, epilogue, cluster.output, more);
                match fused.filter(|fused| fused.is_sum() || library.is_some_and(Library::has_epilogues)) {
                    Some(fused) => fused,
                    None => {
                        let parts =
                            split::parts(cluster).ok_or("a product cannot be taken from its epilogue")?;
                        return parts.into_iter().try_for_each(|part| self.add(part)).map(|()| false);
                    }
                }
            }
            None => epilogue::Fused::none(product.node),
        };
        let mut call =
            geometry::call(&mut self.operands, &mut self.tasks, self.setting.options, product, &fused)?;
        let joined = sum.filter(|sum| call.sum(sum.side, sum.of, sum.cluster.output));
        let mut nodes = cluster.nodes.clone();
        nodes.extend(joined.iter().flat_map(|sum| &sum.cluster.nodes));
        let output = cluster.output;
        let cluster = Cluster { kind: call.as_kind(), output, nodes };
        let mut task = Task::new(cluster, Way::Product(Box::new(call)));
        // Refused, the product is asked for without these.
        if let Some(sum) = joined {
            task.asked = Asked::More(sum.cluster.output);
        } else if !matches!(fused.activation, Activation::None | Activation::Relu) {
            task.asked = Asked::More(output);
        }
        self.tasks.push(task);
        Ok(joined.is_some())
    }
}

/// Whether the gradients of attention, or attention itself, are computed by kernels of ours that have no scores in memory.
fn in_one_piece(graph: &Graph, cluster: &Cluster, setting: &Setting<'_>) -> bool {
    !is_wide_attention(graph, cluster, setting) && emit(graph, cluster, setting.options).is_ok()
}

/// Whether attention is of f32, and faster by the library's products, with the scores in memory, than by a kernel of ours.
fn is_wide_attention(graph: &Graph, cluster: &Cluster, setting: &Setting<'_>) -> bool {
    let queries = match &cluster.kind {
        Kind::Attention(attention) => &attention.scores.operands[0],
        Kind::AttentionGradient(backward) => &backward.scores.operands[0],
        _ => return false,
    };
    let library = setting.tier == Tier::Production && setting.products.is_some();
    library && graph.node(queries.value).element == ElementType::F32
}

/// Whether a cluster has nothing to compute.
fn results_are_empty(graph: &Graph, cluster: &Cluster) -> bool {
    let empty = |id: NodeId| graph.node(id).is_empty();
    !is_host(graph, cluster) && empty(cluster.output)
}

/// Whether the reference can compute a cluster on the host.
fn is_host(graph: &Graph, cluster: &Cluster) -> bool {
    matches!(graph.node(cluster.output).op, Op::Opaque(_))
}

/// The rounding of products by a precision.
pub(crate) fn rounding(precision: Precision) -> Rounding {
    match precision {
        Precision::Model => Rounding::Model,
        Precision::Tf32 => Rounding::Tf32,
        Precision::Bf16 => Rounding::Bf16,
        Precision::F16 => Rounding::F16,
    }
}
