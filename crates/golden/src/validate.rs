//! Comparing two runs as a whole.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};
use std::sync::{Mutex, PoisonError};

use crate::Class;
use crate::folder::{Folder, Key};
use crate::graph::{Graph, Model};
use crate::judge::Pair;
use crate::order::{Order, natural};
use crate::replay::{Replayer, unknown};
use crate::report::{
    ClassSummary, Counts, Operation, Origin, RunInfo, SCHEMA_VERSION, Status, TensorReport, Validation,
    Verdict,
};
use crate::tolerance::Tolerances;

/// How to validate.
#[derive(Debug, Clone)]
pub struct Options<'m> {
    /// How far apart the runs may be.
    pub tolerances: Tolerances,
    /// The model to replay operations with.
    pub model: Option<Model<'m>>,
    /// How many operations out of tolerance are replayed, the first ones first.
    pub replays: usize,
    /// Threads that compare tensors.
    pub threads: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { tolerances: Tolerances::default(), model: None, replays: 16, threads: 1 }
    }
}

/// Judges a candidate by a golden run.
#[must_use]
pub fn validate(golden: &Folder, candidate: &Folder, options: &Options<'_>) -> Validation {
    let (graph, no_graph) = match options.model.as_ref().map(Graph::new) {
        Some(Ok(graph)) => (Some(graph), None),
        Some(Err(reason)) => (None, Some(reason)),
        None => (None, Some("no model is given to replay it with".to_owned())),
    };
    let order = Order::new(golden, candidate, graph.as_ref());
    let keys: BTreeSet<&Key> = golden.items().chain(candidate.items()).map(|(key, _)| key).collect();
    let pairs: Vec<Pair<'_>> = keys
        .into_iter()
        .map(|key| Pair { key, golden: golden.get(key), candidate: candidate.get(key) })
        .collect();
    let judged = judge_all(&pairs, golden, candidate, options);
    let mut tensors: Vec<Placed> = judged
        .into_iter()
        .map(|report| Placed { position: order.position(report.class, &report.name, graph.as_ref()), report })
        .collect();
    for placed in &mut tensors {
        placed.report.node = placed.position.map(|at| order.node(at).name.clone());
    }
    tensors.sort_by(Placed::by_execution);
    let origin = |report: &TensorReport, index: usize| -> Origin {
        let Some(graph) = &graph else { return unknown(no_graph.clone().unwrap_or_default()) };
        if index >= options.replays {
            return unknown(format!("only the first {} operations were replayed", options.replays));
        }
        let replayer = Replayer { graph, golden, candidate };
        replayer.origin(&key_of(report), &report.rule)
    };
    let operations = operations(&tensors, &order, &origin);
    let tensors: Vec<TensorReport> = tensors.into_iter().map(|placed| placed.report).collect();
    let counts = counts(tensors.iter());
    let verdict = verdict(tensors.iter());
    let failed = verdict == Verdict::Fail;
    let first_operation = operations.first().cloned();
    let first_operation_unknown =
        (failed && first_operation.is_none()).then(|| no_operation(&tensors, &order, graph.is_some()));
    let mut notes = notes(golden, candidate, &tensors);
    if let (Some(model), Some(reason)) = (&options.model, no_graph) {
        notes.push(format!("operations cannot be replayed with {}: {reason}", model.name));
    }
    Validation {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        verdict,
        golden: run_info(golden),
        candidate: run_info(candidate),
        model: options.model.map(|model| model.name.to_owned()),
        counts,
        classes: classes(&tensors),
        first_operation,
        first_operation_unknown,
        operations,
        tensors,
        notes,
    }
}

/// A report with its node's place in execution order.
struct Placed {
    position: Option<usize>,
    report: TensorReport,
}

impl Placed {
    fn by_execution(left: &Self, right: &Self) -> std::cmp::Ordering {
        let step = |placed: &Self| placed.report.step.clone().unwrap_or_default();
        let place = |placed: &Self| placed.position.unwrap_or(usize::MAX);
        natural(&step(left), &step(right))
            .then_with(|| place(left).cmp(&place(right)))
            .then_with(|| left.report.class.cmp(&right.report.class))
            .then_with(|| natural(&left.report.name, &right.report.name))
    }
}

fn key_of(report: &TensorReport) -> Key {
    Key { step: report.step.clone().unwrap_or_default(), class: report.class, name: report.name.clone() }
}

/// Judges all pairs, several at a time. The order of the answers is that of the pairs.
fn judge_all(
    pairs: &[Pair<'_>],
    golden: &Folder,
    candidate: &Folder,
    options: &Options<'_>,
) -> Vec<TensorReport> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(pairs.len()));
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, pairs.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, pair)) = {
                    let index = next.fetch_add(1, Atomic::Relaxed);
                    pairs.get(index).map(|pair| (index, pair))
                } {
                    let report = pair.judge(golden, candidate, &options.tolerances);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, report));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, report)| report).collect()
}

/// The nodes with a value out of tolerance, in execution order, each by the first of its tensors that shows it.
fn operations(
    tensors: &[Placed],
    order: &Order,
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
            figures: report.figures.clone(),
            origin: origin(report, found.len()),
        });
    }
    found
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

fn counts<'a>(tensors: impl Iterator<Item = &'a TensorReport>) -> Counts {
    let mut counts = Counts::default();
    for report in tensors {
        counts.failed += usize::from(report.failed);
        match report.status {
            Status::Missing => counts.missing += 1,
            Status::Extra => counts.extra += 1,
            Status::Ignored => counts.ignored += 1,
            _ => {}
        }
        if let Some(figures) = &report.figures {
            counts.compared += 1;
            counts.identical += usize::from(report.identical);
            counts.passed += usize::from(!report.failed);
            counts.elements += figures.elements;
            counts.elements_out_of_tolerance += figures.out_of_tolerance;
        }
    }
    counts
}

/// A candidate that shares nothing with the golden run but its inputs has not been judged.
fn verdict<'a>(tensors: impl Iterator<Item = &'a TensorReport>) -> Verdict {
    let (mut compared, mut failed) = (false, false);
    for report in tensors {
        let both = report.golden.is_some() && report.candidate.is_some() && report.status != Status::Ignored;
        compared |= both && report.class != Class::Inputs;
        failed |= report.failed;
    }
    match (compared, failed) {
        (false, _) => Verdict::Inconclusive,
        (true, true) => Verdict::Fail,
        (true, false) => Verdict::Pass,
    }
}

fn classes(tensors: &[TensorReport]) -> Vec<ClassSummary> {
    let summary = |class: Class| {
        let own = || tensors.iter().filter(|report| report.class == class);
        own().next()?;
        let measured = || own().filter_map(|report| Some((report, report.figures.as_ref()?)));
        let largest = |value: fn(&crate::report::Figures) -> f64| {
            measured().map(|(_, figures)| value(figures)).reduce(f64::max)
        };
        let counts = counts(own());
        let verdict = match counts {
            Counts { failed: 1.., .. } => Verdict::Fail,
            Counts { compared: 0, .. } => Verdict::Inconclusive,
            _ => Verdict::Pass,
        };
        let worst = measured()
            .filter(|(_, figures)| figures.max_abs > 0.0)
            .max_by(|left, right| left.1.max_abs.total_cmp(&right.1.max_abs));
        Some(ClassSummary {
            class,
            verdict,
            counts,
            max_abs: largest(|figures| figures.max_abs),
            max_rel: largest(|figures| figures.max_rel),
            max_ulp: measured().map(|(_, figures)| figures.max_ulp).max(),
            min_cosine: measured().filter_map(|(_, figures)| figures.cosine).reduce(f64::min),
            worst_tensor: worst.map(|(report, _)| report.label()),
        })
    };
    Class::ALL.into_iter().filter_map(summary).collect()
}

fn run_info(folder: &Folder) -> RunInfo {
    let manifest = folder.manifest();
    RunInfo {
        path: folder.path().display().to_string(),
        model: manifest.and_then(|manifest| manifest.model.clone()),
        seed: manifest.and_then(|manifest| manifest.seed),
        versions: manifest.map(|manifest| manifest.versions.clone()).unwrap_or_default(),
    }
}

fn notes(golden: &Folder, candidate: &Folder, tensors: &[TensorReport]) -> Vec<String> {
    let mut notes = Vec::new();
    if tensors.iter().any(|report| report.class == Class::Inputs && report.failed) {
        notes.push("the candidate was given other inputs, so other results are to be expected".to_owned());
    }
    for folder in [golden, candidate] {
        for file in folder.skipped() {
            notes.push(format!("{} is left out: {}", folder.path().join(&file.path).display(), file.reason));
        }
    }
    let said = |folder: &Folder| folder.manifest().map(|manifest| (manifest.seed, manifest.model.clone()));
    if let (Some((left, one)), Some((right, other))) = (said(golden), said(candidate)) {
        if let (Some(left), Some(right)) = (left, right)
            && left != right
        {
            notes.push(format!("the runs have different seeds: {left} and {right}"));
        }
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            notes.push(format!("the runs are of different models: {one} and {other}"));
        }
    }
    notes
}
