//! A task: batches by position, and metrics of what the trained model makes of the evaluation data.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use warpforge::{CompiledModel, Inputs, Outputs, Tensor};
use warpforge_detection::coco::Detection;

use crate::Error;
use crate::coco::{Agreement, Coco};
use crate::description::{Format, Plan};
use crate::golden::DataFiles;
use crate::instruct::Instruct;
use crate::squad::Squad;
use crate::tensors::Tensors;

/// What a trained model came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Evaluation {
    pub(crate) metrics: BTreeMap<String, f64>,
    /// The answer to each question.
    pub(crate) predictions: BTreeMap<String, String>,
    /// The objects that were found.
    pub(crate) detections: Vec<Detection>,
    /// How far they are from those of the golden run.
    pub(crate) agreement: Option<Agreement>,
}

/// The graphs of an evaluation that has several, with the trained weights.
pub(crate) struct Stages<'a> {
    /// Examples of a batch.
    pub(crate) batch_size: usize,
    pub(crate) load: &'a dyn Fn(&str) -> Result<CompiledModel, Error>,
}

impl Stages<'_> {
    /// A graph by the name of its file.
    pub(crate) fn compile(&self, file: &str) -> Result<CompiledModel, Error> {
        (self.load)(file)
    }
}

/// Data that a model is trained on and judged by. Parts are `train` and `eval`.
pub(crate) trait Task {
    /// How many examples a part has.
    fn examples(&self, part: &str) -> usize;

    /// The bytes of an example, its inputs in the order of their names.
    fn row(&self, part: &str, index: usize) -> Vec<u8>;

    /// The inputs of a training step.
    fn batch(&self, indices: &[usize]) -> Result<Inputs, Error>;

    /// The inputs of a run that is judged.
    fn evaluation_batch(&self, indices: &[usize]) -> Result<Inputs, Error>;

    /// Outputs of a step that the loss is the sum of.
    fn parts(&self) -> &[&'static str] {
        &[]
    }

    /// The outputs that metrics are computed from.
    fn outputs(&self) -> Vec<&str>;

    /// The metrics, from the rows of each output for all examples of the evaluation.
    fn evaluate(&self, outputs: &BTreeMap<String, Vec<Tensor>>) -> Result<Evaluation, Error>;

    /// Inputs of a training step that depend on what the model itself makes of the batch, by our own choice. `given` is of the
    /// graph that the evaluation begins with.
    fn choose(&self, _given: &Outputs, _indices: &[usize], _seed: u64) -> Result<Inputs, Error> {
        Err(Error::Stopped("the benchmark has nothing to choose; leave --selection out".to_owned()))
    }

    /// The metrics of a model whose evaluation has several graphs; most have one.
    fn evaluate_stages(&self, _stages: &Stages<'_>) -> Option<Result<Evaluation, Error>> {
        None
    }
}

/// The task of a plan on the files of a golden run.
pub(crate) fn load(plan: &Plan, files: &DataFiles) -> Result<Box<dyn Task>, Error> {
    Ok(match plan.data.format {
        Format::Squad => Box::new(Squad::load(plan, &files.train, &files.eval, &files.vocabulary)?),
        Format::Instruct => Box::new(Instruct::load(plan, &files.train, &files.eval, &files.vocabulary)?),
        Format::Coco => Box::new(Coco::load(plan, &files.golden, &files.train, &files.eval)?),
        Format::Tensors => Box::new(Tensors::load(plan, &files.train, &files.eval)?),
    })
}

/// The SHA-256 of all examples of a part, in hexadecimal, and the CRC-32 of each.
pub(crate) fn digest(task: &dyn Task, part: &str) -> (String, Vec<u32>) {
    let mut all = Sha256::new();
    let mut each = Vec::with_capacity(task.examples(part));
    for index in 0..task.examples(part) {
        let row = task.row(part, index);
        all.update(&row);
        each.push(crc32fast::hash(&row));
    }
    (crate::golden::hexadecimal(&all.finalize()), each)
}
