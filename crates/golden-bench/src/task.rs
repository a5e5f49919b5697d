//! A task: batches by position, and metrics of what the trained model makes of the evaluation data.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use warpforge::{Inputs, Tensor};

use crate::Error;
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

    /// The outputs that metrics are computed from.
    fn outputs(&self) -> Vec<&str>;

    /// The metrics, from the rows of each output for all examples of the evaluation.
    fn evaluate(&self, outputs: &BTreeMap<String, Vec<Tensor>>) -> Result<Evaluation, Error>;
}

/// The task of a plan on the files of a golden run.
pub(crate) fn load(plan: &Plan, files: &DataFiles) -> Result<Box<dyn Task>, Error> {
    Ok(match plan.data.format {
        Format::Squad => Box::new(Squad::load(plan, &files.train, &files.eval, &files.vocabulary)?),
        Format::Instruct => Box::new(Instruct::load(plan, &files.train, &files.eval, &files.vocabulary)?),
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
