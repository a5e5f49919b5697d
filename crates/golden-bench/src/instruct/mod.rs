//! Instructions with answers: examples packed into sequences of a fixed length, loss on answers only, perplexity.

mod examples;
mod generate;
mod pack;

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use generate::generate;
use warpforge::{Inputs, Tensor};

use self::examples::Example;
use self::pack::{Sequences, Tokens};
use crate::Error;
use crate::description::Plan;
use crate::task::{Evaluation, Task};

/// Without a file for the evaluation, every so many-th example is for it.
const HELD_OUT: usize = 10;

/// Answers to instructions.
pub(crate) struct Instruct {
    train: Sequences,
    eval: Sequences,
}

impl Instruct {
    pub(crate) fn load(plan: &Plan, train: &Path, eval: &Path, vocabulary: &Path) -> Result<Self, Error> {
        let data = &plan.data;
        let tokens = Tokens::load(data, vocabulary)?;
        let mut training = examples::read(train)?;
        let mut judging = match data.eval.is_some() {
            true => examples::read(eval)?,
            false => held_out(&mut training),
        };
        training.truncate(data.limit_train.unwrap_or(usize::MAX));
        judging.truncate(data.limit_eval.unwrap_or(usize::MAX));
        Ok(Self {
            train: Sequences::pack(&training, &tokens, data, train)?,
            eval: Sequences::pack(&judging, &tokens, data, eval)?,
        })
    }

    fn part(&self, part: &str) -> &Sequences {
        if part == "train" { &self.train } else { &self.eval }
    }
}

/// Takes the examples for the evaluation out.
fn held_out(examples: &mut Vec<Example>) -> Vec<Example> {
    let (mut train, mut eval) = (Vec::new(), Vec::new());
    for (at, example) in std::mem::take(examples).into_iter().enumerate() {
        if at % HELD_OUT == HELD_OUT - 1 { eval.push(example) } else { train.push(example) }
    }
    *examples = train;
    eval
}

impl Task for Instruct {
    fn examples(&self, part: &str) -> usize {
        self.part(part).len()
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
        vec!["nll", "tokens"]
    }

    fn evaluate(&self, outputs: &BTreeMap<String, Vec<Tensor>>) -> Result<Evaluation, Error> {
        let total = |name: &str| -> f64 {
            let rows = outputs.get(name).map(Vec::as_slice).unwrap_or_default();
            rows.iter().map(|row| row.get(0).to_f64()).sum()
        };
        let perplexity = (total("nll") / total("tokens")).exp();
        Ok(Evaluation { metrics: [("perplexity".to_owned(), perplexity)].into(), ..Evaluation::default() })
    }
}
