//! Finding the operations that are out of tolerance, the first one first, and where their errors come from.

use crate::Class;
use crate::cause::cause;
use crate::folder::{ClusterEntry, Folder};
use crate::graph::{Graph, Model};
use crate::order::{Order, natural};
use crate::replay::{Replayer, key_of, unknown};
use crate::report::{Cluster, Operation, Origin, Status, TensorReport, Validation, Verdict};

/// Operations out of tolerance that are replayed unless somebody wants more.
pub const DEFAULT_REPLAYS: usize = 16;

/// Puts a validation into execution order, by the manifests or the model, and says for each operation out of tolerance
/// whether its error arose there: the first `replays` of them are computed again by the reference.
///
/// Without a model, outputs and gradients belong to no operation, and nothing can be replayed.
pub fn explain(
    validation: &mut Validation,
    golden: &Folder,
    candidate: &Folder,
    model: Option<&Model<'_>>,
    replays: usize,
) {
    let (graph, no_graph) = match model.map(Graph::new) {
        Some(Ok(graph)) => (Some(graph), String::new()),
        Some(Err(reason)) => (None, reason),
        None => (None, "no model is given to replay it with".to_owned()),
    };
    let order = Order::new(golden, candidate, graph.as_ref());
    let mut tensors: Vec<Placed> = std::mem::take(&mut validation.tensors)
        .into_iter()
        .map(|report| Placed { position: order.position(report.class, &report.name, graph.as_ref()), report })
        .collect();
    for placed in &mut tensors {
        placed.report.node = placed.position.map(|at| order.node(at).name.clone());
    }
    // Where a run has steps, what is in none of them is what it came to in the end.
    let stepped = tensors.iter().any(|placed| placed.report.step.is_some());
    tensors.sort_by(|left, right| {
        let at_the_end = |placed: &Placed| stepped && placed.report.step.is_none();
        at_the_end(left).cmp(&at_the_end(right)).then_with(|| left.by_execution(right))
    });
    let origin = |report: &TensorReport, index: usize| -> Origin {
        let Some(graph) = &graph else { return unknown(no_graph.clone()) };
        if index >= replays {
            return unknown(format!("only the first {replays} operations were replayed"));
        }
        Replayer { graph, golden, candidate }.origin(&key_of(report), &report.rule)
    };
    let clusters = candidate.manifest().map(|manifest| manifest.clusters.as_slice()).unwrap_or_default();
    validation.operations = operations(&tensors, &order, clusters, &origin);
    validation.tensors = tensors.into_iter().map(|placed| placed.report).collect();
    validation.first_operation = validation.operations.first().cloned();
    let replayer = graph.as_ref().map(|graph| Replayer { graph, golden, candidate });
    validation.cause = validation
        .first_operation
        .as_ref()
        .zip(replayer)
        .and_then(|(first, replayer)| cause(first, &validation.tensors, &order, &replayer));
    let unexplained = validation.verdict == Verdict::Fail && validation.first_operation.is_none();
    validation.first_operation_unknown =
        unexplained.then(|| no_operation(&validation.tensors, &order, graph.is_some()));
    if let Some(model) = model {
        validation.model = Some(model.name.to_owned());
        if graph.is_none() {
            validation.notes.push(format!("nothing can be replayed with the model: {no_graph}"));
        }
    }
}

/// A report with its node's place in execution order.
struct Placed {
    position: Option<usize>,
    report: TensorReport,
}

impl Placed {
    fn by_execution(&self, right: &Self) -> std::cmp::Ordering {
        let step = |placed: &Self| placed.report.step.clone().unwrap_or_default();
        let place = |placed: &Self| placed.position.unwrap_or(usize::MAX);
        natural(&step(self), &step(right))
            .then_with(|| place(self).cmp(&place(right)))
            .then_with(|| self.report.class.cmp(&right.report.class))
            .then_with(|| natural(&self.report.name, &right.report.name))
    }
}

/// The nodes with a value out of tolerance, in execution order, each by the first of its tensors that shows it.
fn operations(
    tensors: &[Placed],
    order: &Order,
    clusters: &[ClusterEntry],
    origin: &dyn Fn(&TensorReport, usize) -> Origin,
) -> Vec<Operation> {
    let mut found: Vec<Operation> = Vec::new();
    for placed in tensors {
        let report = &placed.report;
        let differs =
            matches!(report.status, Status::OutOfTolerance | Status::ShapeMismatch | Status::TypeMismatch);
        let (Some(position), true) = (placed.position, differs) else { continue };
        if found.last().is_some_and(|last| last.position == position && last.step == report.step) {
            continue;
        }
        let node = order.node(position);
        found.push(Operation {
            node: node.name.clone(),
            position,
            target: node.target.clone(),
            module: node.module.clone(),
            source: node.source.clone(),
            step: report.step.clone(),
            tensor: report.name.clone(),
            class: report.class,
            cluster: cluster_of(clusters, report, &node.name),
            figures: report.figures.clone(),
            origin: origin(report, found.len()),
        });
    }
    found
}

/// The cluster that gave a tensor; for one that is no activation, the last that computes its node.
fn cluster_of(clusters: &[ClusterEntry], report: &TensorReport, node: &str) -> Option<Cluster> {
    let gives =
        |cluster: &ClusterEntry| report.class == Class::Activations && cluster.tensors.contains(&report.name);
    let computes = |cluster: &ClusterEntry| cluster.nodes.iter().any(|name| name == node);
    let position = clusters.iter().position(gives).or_else(|| clusters.iter().rposition(computes))?;
    let ClusterEntry { kernel, nodes, .. } = clusters[position].clone();
    Some(Cluster { position, kernel, nodes })
}

fn no_operation(tensors: &[TensorReport], order: &Order, has_graph: bool) -> String {
    let activations =
        tensors.iter().any(|report| report.class == Class::Activations && report.figures.is_some());
    let what = if order.is_unknown() {
        "neither a manifest nor a model says in which order the operations ran"
    } else if !activations {
        "the two runs have no activations in common"
    } else {
        "all activations that the runs have in common are within their tolerances"
    };
    let hint =
        if has_graph { "" } else { "; with --model, outputs and gradients are traced to operations too" };
    format!("{what}{hint}")
}
