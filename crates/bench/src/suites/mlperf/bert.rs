//! `bert_infer`: sentence embeddings of questions and paragraphs by a BERT-like encoder.

use std::path::{Path, PathBuf};

use super::measure;
use super::settings::{Scenario, Settings, called, spec, takes};
use super::system::{Answer, First, System};
use crate::benchmark::{Benchmark, BenchmarkError, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};
use crate::squad;
use crate::suites::packages;
use crate::suites::pepbench::architecture::Architecture;
use crate::suites::pepbench::corpus::{Corpus, open_tokenizer};
use crate::suites::pepbench::encoder::{Batch, Encoder, held};
use crate::suites::values::bad_value;

/// The longest sample in tokens, as MLPerf's BERT has it.
const LONGEST: usize = 384;
/// Samples are padded to multiples of so many tokens: few programs.
const STEP: usize = 128;
/// Samples that are held to the reference interpreter, and to what they are padded there.
const CHECKED: usize = 2;
const CHECKED_STEP: usize = 16;
/// How far from 1 the length of an embedding may be.
const UNIT: f32 = 1e-4;

/// The benchmark.
#[derive(Debug)]
pub(super) struct BertInfer;

impl Benchmark for BertInfer {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Embeddings of questions and paragraphs of SQuAD by a BERT-like encoder (MiniLM-L6), driven by MLPerf's \
                           LoadGen. Not an MLPerf result.";
        let own = [
            ("model", ParamValue::Text("MiniLM-L6".to_owned())),
            ("data", ParamValue::Text("SQuAD".to_owned())),
        ];
        spec("bert_infer", description, [128, 8], &own)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[
            (
                "model",
                format!(
                    "the folder of a BERT-like checkpoint; {} from an installed package; empty for weights from the seed",
                    packages::names(&packages::BERT)
                ),
            ),
            (
                "data",
                format!(
                    "a file of SQuAD v1.1; {} from an installed package; empty for generated sentences",
                    packages::names(&packages::SQUAD)
                ),
            ),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from("bert_infer", params)?;
        paths(params)?;
        super::loadgen::python().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from("bert_infer", context.params())?;
        let [model, data] = paths(context.params())?;
        let mut settings = settings
            .with_tag("model", called(model.as_deref()))
            .with_tag("data", called(data.as_deref()))
            .with_tag("type", "f32");
        let mut bert = Bert::new(&settings, model.as_deref(), data.as_deref())?;
        settings.samples = bert.samples();
        measure::run(context, &settings, "bert", &mut bert)
    }
}

/// Where the model and the data are.
fn paths(params: &Params) -> Result<[Option<PathBuf>; 2], BenchmarkError> {
    let path = |name: &str, known| match text(params, name) {
        "" => Ok(None),
        value => packages::find(name, value, known).map(Some),
    };
    Ok([path("model", &packages::BERT[..])?, path("data", &packages::SQUAD[..])?])
}

/// The encoder and its samples.
struct Bert {
    encoder: Encoder,
    /// The tokens of each sample.
    ids: Vec<Vec<i64>>,
    /// Whether samples are questions and their paragraphs in turn.
    paired: bool,
    batch: usize,
    /// The sizes of batches that there are programs for.
    sizes: Vec<usize>,
}

impl Bert {
    fn new(settings: &Settings, model: Option<&Path>, data: Option<&Path>) -> Result<Self, BenchmarkError> {
        let paired = data.is_some();
        let mut corpus = Corpus::generated(settings.samples, settings.seed)?;
        if let Some(file) = data {
            let first = squad::first_questions(file, settings.samples.div_ceil(2));
            let first = first.map_err(|error| bad_value("data", &file.display(), &error.to_string()))?;
            corpus.sentences =
                first.into_iter().flat_map(|example| [example.question, example.context]).collect();
        }
        let encoder = match model {
            Some(folder) => {
                corpus.tokenizer = open_tokenizer(folder)?;
                Encoder::open(folder, settings.options())?
            }
            None => {
                let words = corpus.tokenizer.get_vocab_size(true);
                Encoder::seeded(Architecture::mini_lm(words), settings.seed, settings.options())?
            }
        };
        let ids = corpus.ids(&corpus.sentences, LONGEST.min(encoder.longest()))?;
        let batch = settings.most_at_once();
        let mut sizes = match settings.scenario {
            Scenario::Server => vec![1, batch],
            _ => vec![batch],
        };
        sizes.dedup();
        let mut bert = Self { encoder, ids, paired, batch, sizes };
        bert.compile()?;
        Ok(bert)
    }

    fn compile(&mut self) -> Result<(), BenchmarkError> {
        let mut lengths: Vec<usize> = (0..self.ids.len()).map(|sample| self.size(sample)).collect();
        lengths.sort_unstable();
        lengths.dedup();
        for length in lengths {
            for &size in &self.sizes {
                self.encoder.prepare(size, length)?;
            }
        }
        Ok(())
    }

    fn padded(&self, length: usize, step: usize) -> usize {
        length.next_multiple_of(step).clamp(1, self.encoder.longest())
    }

    /// Samples padded to a length; the last fills the batch up.
    fn batched(&self, samples: &[usize], sentences: usize, length: usize) -> Batch {
        let mut batch = Batch { sentences, length, ids: Vec::new(), mask: Vec::new() };
        for at in 0..sentences {
            let row = &self.ids[samples[at.min(samples.len() - 1)]];
            let padding = length - row.len();
            batch.ids.extend(row.iter().copied().chain(std::iter::repeat_n(0, padding)));
            batch.mask.extend(row.iter().map(|_| 1).chain(std::iter::repeat_n(0, padding)));
        }
        batch
    }

    /// The shortest samples, which the reference interpreter can compute soon.
    fn shortest(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_by_key(|&sample| self.ids[sample].len());
        order.truncate(CHECKED);
        order
    }

    /// Holds an embedding to that of the reference interpreter.
    fn checked(&self, sample: usize, embedding: &[f32]) -> Result<(), BenchmarkError> {
        let length = self.padded(self.ids[sample].len(), CHECKED_STEP);
        let right = self.encoder.reference(&self.batched(&[sample], 1, length))?;
        let found = warpforge::Tensor::from_slice(&[1, embedding.len()], embedding).map_err(failed)?;
        held(&found, &right)
    }
}

impl System for Bert {
    fn samples(&self) -> usize {
        self.ids.len()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn size(&self, sample: usize) -> usize {
        self.padded(self.ids[sample].len(), STEP)
    }

    fn answer(&mut self, samples: &[usize], _first: First<'_>) -> Result<Vec<Answer>, BenchmarkError> {
        let size = self.sizes.iter().copied().find(|&size| size >= samples.len()).unwrap_or(self.batch);
        let length = samples.iter().map(|&sample| self.size(sample)).max().unwrap_or(1);
        let found = self.encoder.embed(&self.batched(samples, size, length))?;
        let width = self.encoder.architecture.hidden;
        let rows = found.as_slice::<f32>().map_err(failed)?.chunks(width);
        let answer = |row: &[f32]| Answer {
            data: row.iter().flat_map(|value| value.to_le_bytes()).collect(),
            tokens: 0,
        };
        Ok(rows.take(samples.len()).map(answer).collect())
    }

    fn judge(&mut self) -> Result<(), BenchmarkError> {
        for sample in self.shortest() {
            let answers = self.answer(&[sample], &mut |_| Ok(()))?;
            let embedding = floats(&answers.first().map(|answer| answer.data.clone()).unwrap_or_default());
            self.checked(sample, &embedding)?;
        }
        Ok(())
    }

    /// Of questions: how many have their own paragraph as the nearest of all. Without them: every embedding is right.
    fn accuracy(&mut self, answers: &[Vec<u8>]) -> Result<f64, BenchmarkError> {
        let embeddings: Vec<Vec<f32>> = answers.iter().map(|data| floats(data)).collect();
        let width = self.encoder.architecture.hidden;
        for (sample, embedding) in embeddings.iter().enumerate() {
            let norm = dot(embedding, embedding).sqrt();
            if embedding.len() != width || (norm - 1.0).abs() > UNIT || norm.is_nan() {
                return Err(failed(format!("wrong answer: sample {sample} is no unit vector ({norm})")));
            }
        }
        for sample in self.shortest() {
            self.checked(sample, &embeddings[sample])?;
        }
        if !self.paired {
            return Ok(100.0);
        }
        Ok(found_by_their_questions(&embeddings))
    }
}

/// How many in a hundred questions are nearest to their own paragraph; the two come in turn.
fn found_by_their_questions(embeddings: &[Vec<f32>]) -> f64 {
    let paragraphs: Vec<&Vec<f32>> = embeddings.iter().skip(1).step_by(2).collect();
    let questions: Vec<&Vec<f32>> = embeddings.iter().step_by(2).take(paragraphs.len()).collect();
    let nearest = |question: &[f32]| {
        let scores = paragraphs.iter().map(|paragraph| dot(question, paragraph));
        scores.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    };
    let right = questions.iter().enumerate().filter(|(at, question)| nearest(question) == Some(*at)).count();
    100.0 * right as f64 / questions.len().max(1) as f64
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn floats(data: &[u8]) -> Vec<f32> {
    data.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn failed(error: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_find_their_paragraphs_or_not() {
        let [x, y] = [vec![1.0, 0.0], vec![0.0, 1.0]];
        assert_eq!(found_by_their_questions(&[x.clone(), x.clone(), y.clone(), y.clone()]), 100.0);
        assert_eq!(found_by_their_questions(&[x.clone(), y.clone(), y.clone(), x.clone()]), 0.0);
        assert_eq!(found_by_their_questions(&[x.clone(), x.clone(), x, y]), 50.0);
    }
}
