//! What a chosen step has, as a golden run keeps it: inputs, weights, activations and gradients before the update.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpforge::trace::{NodeValues, Trace, TraceOptions};
use warpforge::{
    CompileOptions, CompiledModel, Inputs, Model, Observer, Outputs, ResultRole, RunOptions, Tensor, Tier,
};
use warpforge_golden::Class;
use warpforge_golden::folder::{ClusterEntry, NodeEntry};
use warpforge_runtime::Executable;

use super::folder::RunFolder;
use crate::Error;
use crate::description::Activations;
use crate::values::{MODULES, Modules, at_borders, nodes};

/// What the manifest says about the graph.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<NodeEntry>,
    pub(super) clusters: Vec<ClusterEntry>,
    pub(super) skipped: BTreeMap<String, String>,
}

/// The folder of a step.
pub(super) fn step_name(step: u64) -> String {
    format!("step_{step:06}")
}

/// The loss and the gradients of one batch with given weights, and the values inside, written to the folder of the step.
pub(super) fn observe(
    model: &Model,
    options: &CompileOptions,
    level: Activations,
    weights: &BTreeMap<String, Tensor>,
    batch: &Inputs,
    step: u64,
    folder: &mut RunFolder,
) -> Result<Graph, Error> {
    let mut model = model.clone();
    model.bind_weights(&all_weights(&model, weights))?;
    let compiled = model.compile(options)?;
    let inputs = compiled.in_order(batch)?;
    let executable = compiled.prepare(&inputs)?;
    let (outputs, values, clusters) = run(&compiled, executable.as_ref(), &inputs, level)?;
    let name = step_name(step);
    let mut gradients: Vec<(&str, &Tensor)> = Vec::new();
    for (result, (label, tensor)) in model.signature().results.iter().zip(outputs.iter()) {
        if result.role == ResultRole::Gradient {
            gradients.push((result.of.as_deref().unwrap_or(label), tensor));
        }
    }
    let writer = &mut folder.writer;
    writer.step(&name, Class::Gradients, None, gradients)?;
    if level == Activations::Nodes {
        writer.step(&name, Class::Inputs, None, batch.iter())?;
        let trained = weights.iter().map(|(name, tensor)| (name.as_str(), tensor));
        writer.step(&name, Class::Weights, None, trained)?;
        writer.step(
            &name,
            Class::Activations,
            None,
            values.iter().map(|(name, tensor)| (name.as_str(), tensor)),
        )?;
    }
    let modules = Modules::of(&model, &values)?;
    if level != Activations::None && !modules.values.is_empty() {
        let named = modules.values.iter().map(|(name, tensor)| (name.as_str(), *tensor));
        writer.step(&name, Class::Activations, Some(MODULES), named)?;
    }
    Ok(Graph { nodes: nodes(executable.as_ref(), &values), clusters, skipped: modules.unknown.clone() })
}

type Seen = (Outputs, Vec<(String, Tensor)>, Vec<ClusterEntry>);

/// Runs once and sees what the tier shows: every node, or what clusters leave in memory.
fn run(
    compiled: &CompiledModel,
    executable: &dyn Executable,
    inputs: &[Tensor],
    level: Activations,
) -> Result<Seen, Error> {
    if level == Activations::None {
        return Ok((compiled.run_in_order(inputs, &RunOptions::default())?, Vec::new(), Vec::new()));
    }
    let program = executable.program();
    if compiled.target().tier == Tier::Correctness
        && let Some(function) = program.module().function(program.entry())
    {
        let seen = Arc::new(NodeValues::new(function));
        let observer = Some(Arc::clone(&seen) as Arc<dyn Observer>);
        let outputs = compiled.run_in_order(inputs, &RunOptions { observer, ..RunOptions::default() })?;
        return Ok((outputs, seen.take(), Vec::new()));
    }
    match compiled.run_in_order(inputs, &RunOptions { clusters: true, ..RunOptions::default() }) {
        Ok(outputs) => {
            let (values, clusters) = at_borders(executable, outputs.clusters());
            Ok((outputs, values, clusters))
        }
        // The device does not show what is inside; the gradients are there all the same.
        Err(error) if error.is_not_offered() => {
            Ok((compiled.run_in_order(inputs, &RunOptions::default())?, Vec::new(), Vec::new()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The weights that a model has, with those that were trained in place of its own.
pub(super) fn all_weights(model: &Model, trained: &BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let own = model.weights().map(|(name, tensor)| (name.to_owned(), tensor.clone()));
    own.map(|(name, tensor)| (name.clone(), trained.get(&name).cloned().unwrap_or(tensor))).collect()
}

/// The first operation that makes a NaN of a batch with given weights.
pub(super) fn first_nan(
    model: &Model,
    weights: &BTreeMap<String, Tensor>,
    batch: &Inputs,
) -> Result<String, Error> {
    let has_nan = |tensor: &Tensor| tensor.iter().any(|value| !value.to_f64().is_finite());
    if let Some((name, _)) = weights.iter().find(|(_, tensor)| has_nan(tensor)) {
        return Ok(format!("`{name}` was not finite before it: the update before made it so"));
    }
    let mut model = model.clone();
    model.bind_weights(&all_weights(&model, weights))?;
    let options = CompileOptions { tier: Some(Tier::Correctness), ..CompileOptions::default() };
    let compiled = model.compile(&options)?;
    let trace = Trace::new(std::io::sink(), None, TraceOptions { break_on_nan: true, keep: None });
    let observer = Some(Arc::new(trace) as Arc<dyn Observer>);
    match compiled.run_with(batch.clone(), &RunOptions { observer, ..RunOptions::default() }) {
        Err(error) => Ok(error.to_string()),
        Ok(_) => Ok("the reference makes no NaN of the same weights and batch".to_owned()),
    }
}
