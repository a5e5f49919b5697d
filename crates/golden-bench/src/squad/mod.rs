//! SQuAD v1.1: questions, features with sliding windows, answers from logits, F1 and exact match.

mod answers;
mod examples;
mod features;
mod metric;

use std::collections::BTreeMap;
use std::path::Path;

use warpforge::{Inputs, Tensor};

pub use self::examples::{Answer, Example, read};
pub use self::features::{Feature, Features, Settings};
pub use self::metric::{exact_match, f1, normalized};
use crate::Error;
use crate::description::Plan;
use crate::task::{Evaluation, Task};

/// Question answering on SQuAD.
pub(crate) struct Squad {
    train: Features,
    eval: Features,
    examples: Vec<Example>,
    n_best: usize,
    max_answer_length: usize,
}

impl Squad {
    pub(crate) fn load(plan: &Plan, train: &Path, eval: &Path, vocabulary: &Path) -> Result<Self, Error> {
        let data = &plan.data;
        let settings =
            Settings { max_length: data.max_length, stride: data.stride, lowercase: data.lowercase };
        let training = read(train, data.limit_train)?;
        let examples = read(eval, data.limit_eval)?;
        Ok(Self {
            train: Features::new(&training, vocabulary, settings, true)?,
            eval: Features::new(&examples, vocabulary, settings, false)?,
            examples,
            n_best: data.n_best,
            max_answer_length: data.max_answer_length,
        })
    }
}

impl Task for Squad {
    fn examples(&self, part: &str) -> usize {
        if part == "train" { self.train.list().len() } else { self.eval.list().len() }
    }

    fn row(&self, part: &str, index: usize) -> Vec<u8> {
        if part == "train" { self.train.row(index) } else { self.eval.row(index) }
    }

    fn batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        self.train.batch(indices)
    }

    fn evaluation_batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        self.eval.batch(indices)
    }

    fn outputs(&self) -> Vec<&str> {
        vec!["start_logits", "end_logits"]
    }

    fn evaluate(&self, outputs: &BTreeMap<String, Vec<Tensor>>) -> Result<Evaluation, Error> {
        let rows = |name: &str| -> Result<Vec<Vec<f32>>, Error> {
            let tensors = outputs.get(name).map(Vec::as_slice).unwrap_or_default();
            tensors.iter().map(|tensor| Ok(tensor.as_slice::<f32>()?.to_vec())).collect()
        };
        let (starts, ends) = (rows("start_logits")?, rows("end_logits")?);
        let found = answers::best(
            &self.examples,
            self.eval.list(),
            &starts,
            &ends,
            self.n_best,
            self.max_answer_length,
        );
        let (mut exact, mut overlap) = (0.0, 0.0);
        for (example, answer) in self.examples.iter().zip(&found) {
            let best = |score: fn(&str, &str) -> f64| {
                let scores = example.answers.iter().map(|gold| score(answer, &gold.text));
                scores.fold(if example.answers.is_empty() { score(answer, "") } else { 0.0 }, f64::max)
            };
            exact += best(exact_match);
            overlap += best(f1);
        }
        let count = self.examples.len().max(1) as f64;
        let metrics = [("exact_match", 100.0 * exact / count), ("f1", 100.0 * overlap / count)];
        let predictions =
            self.examples.iter().zip(found).map(|(example, answer)| (example.id.clone(), answer));
        Ok(Evaluation {
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            predictions: predictions.collect(),
            ..Evaluation::default()
        })
    }
}
