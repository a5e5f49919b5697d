//! Data that are tensors already: the first dimension counts examples.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge::{Inputs, Shape, Tensor};
use warpforge_tensor::io::safetensors;

use crate::Error;
use crate::description::{Accuracy, Plan};
use crate::task::{Evaluation, Task};

/// Classification of examples that are rows of tensors.
pub(crate) struct Tensors {
    train: Part,
    eval: Part,
    accuracy: Accuracy,
}

struct Part {
    columns: BTreeMap<String, Tensor>,
    examples: usize,
}

impl Part {
    fn read(path: &Path) -> Result<Self, Error> {
        let columns = safetensors::read(path).map_err(|error| Error::data(path, error.to_string()))?;
        let mut counts: Vec<usize> =
            columns.values().map(|tensor| tensor.dims().first().copied().unwrap_or(0)).collect();
        counts.dedup();
        match counts.as_slice() {
            &[examples] if examples > 0 => Ok(Self { columns, examples }),
            _ => Err(Error::data(
                path,
                format!("the tensors have {counts:?} examples; all need the same number"),
            )),
        }
    }

    fn bytes<'t>(&'t self, tensor: &'t Tensor, index: usize) -> &'t [u8] {
        let size = tensor.bytes().len() / self.examples;
        &tensor.bytes()[index * size..(index + 1) * size]
    }

    fn row(&self, index: usize) -> Vec<u8> {
        self.columns.values().flat_map(|tensor| self.bytes(tensor, index)).copied().collect()
    }

    fn batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        let mut inputs = Inputs::new();
        for (name, tensor) in &self.columns {
            let bytes: Vec<u8> =
                indices.iter().flat_map(|&index| self.bytes(tensor, index)).copied().collect();
            let dims: Vec<usize> =
                std::iter::once(indices.len()).chain(tensor.dims()[1..].iter().copied()).collect();
            inputs.insert(name, Tensor::from_bytes(tensor.element_type(), Shape::new(dims)?, &bytes)?);
        }
        Ok(inputs)
    }
}

impl Tensors {
    pub(crate) fn load(plan: &Plan, train: &Path, eval: &Path) -> Result<Self, Error> {
        let accuracy = plan.metrics.accuracy.clone();
        let accuracy = accuracy.ok_or_else(|| Error::data(eval, "the plan has no metric `accuracy`"))?;
        let eval_part = Part::read(eval)?;
        if !eval_part.columns.contains_key(&accuracy.labels) {
            return Err(Error::data(eval, format!("it has no labels `{}`", accuracy.labels)));
        }
        Ok(Self { train: Part::read(train)?, eval: eval_part, accuracy })
    }

    fn part(&self, part: &str) -> &Part {
        if part == "train" { &self.train } else { &self.eval }
    }
}

impl Task for Tensors {
    fn examples(&self, part: &str) -> usize {
        self.part(part).examples
    }

    fn row(&self, part: &str, index: usize) -> Vec<u8> {
        self.part(part).row(index)
    }

    fn batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        self.train.batch(indices)
    }

    fn evaluation_batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        self.eval.batch(indices)
    }

    fn outputs(&self) -> Vec<&str> {
        vec![&self.accuracy.output]
    }

    fn evaluate(&self, outputs: &BTreeMap<String, Vec<Tensor>>) -> Result<Evaluation, Error> {
        let labels = &self.eval.columns[&self.accuracy.labels];
        let rows = outputs.get(&self.accuracy.output).map(Vec::as_slice).unwrap_or_default();
        let right = rows.iter().zip(labels.iter()).filter(|(row, label)| {
            // The first of equal values, as PyTorch has it.
            let mut best = 0;
            for (at, value) in row.iter().enumerate() {
                if value.to_f64() > row.get(best).to_f64() {
                    best = at;
                }
            }
            best as f64 == label.to_f64()
        });
        let accuracy = 100.0 * right.count() as f64 / self.eval.examples as f64;
        Ok(Evaluation { metrics: [("accuracy".to_owned(), accuracy)].into(), ..Evaluation::default() })
    }
}
