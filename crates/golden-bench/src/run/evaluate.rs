//! The trained model on the evaluation data.

use std::collections::BTreeMap;

use warpforge::{CompileOptions, CompiledModel, Model, Shape, Tensor};

use super::observe::all_weights;
use crate::task::{Evaluation, Stages, Task};
use crate::{Error, GoldenRun};

/// Runs the evaluation graph with trained weights on all examples. The last batch is filled up with examples of the first.
pub(super) fn evaluate(
    golden: &GoldenRun,
    task: &dyn Task,
    options: &CompileOptions,
    weights: &BTreeMap<String, Tensor>,
) -> Result<Evaluation, Error> {
    let load = |file: &str| -> Result<CompiledModel, Error> {
        let mut model = Model::load(golden.folder.join(file))?;
        model.bind_weights(&all_weights(&model, weights))?;
        Ok(model.compile(options)?)
    };
    let (size, count) = (golden.plan.training.eval_batch_size, task.examples("eval"));
    let stages = Stages { batch_size: size, load: &load };
    if let Some(evaluation) = task.evaluate_stages(&stages) {
        return evaluation;
    }
    let compiled = stages.compile("eval.pt2")?;
    let mut outputs: BTreeMap<String, Vec<Tensor>> = BTreeMap::new();
    for begin in (0..count).step_by(size) {
        let indices: Vec<usize> = (begin..begin + size).map(|index| index % count).collect();
        let given = compiled.run(task.evaluation_batch(&indices)?)?;
        for name in task.outputs() {
            let tensor = given
                .get(name)
                .ok_or_else(|| Error::Stopped(format!("the model gives no output `{name}`")))?;
            let rows = outputs.entry(name.to_owned()).or_default();
            for index in 0..size.min(count - begin) {
                rows.push(row(tensor, index)?);
            }
        }
    }
    task.evaluate(&outputs)
}

/// A row of a batch.
fn row(tensor: &Tensor, index: usize) -> Result<Tensor, Error> {
    let dims = tensor.dims().get(1..).unwrap_or_default().to_vec();
    let size = tensor.bytes().len() / tensor.dims().first().copied().unwrap_or(1).max(1);
    let bytes = &tensor.bytes()[index * size..(index + 1) * size];
    Ok(Tensor::from_bytes(tensor.element_type(), Shape::new(dims)?, bytes)?)
}

/// The metrics of the golden run.
pub(super) fn golden_metrics(golden: &GoldenRun) -> Result<BTreeMap<String, f64>, Error> {
    let path = golden.folder.join("metrics.json");
    let text = std::fs::read(&path).map_err(Error::io(&path))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::golden(&golden.folder, format!("metrics.json: {error}")))
}
