//! `end_to_end_infer`: sentences are tokenized, embedded, and their nearest neighbours found.

use std::cell::RefCell;
use std::time::Instant;

use warpforge::{Device, Tensor};
use warpforge_probes::latency::Latencies;

use super::corpus::{Corpus, batches};
use super::encoder::{Batch, Encoder, held};
use super::neighbours::{Index, Neighbour};
use super::settings::{MOST, Settings, spec, takes};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::percentiles;
use crate::suites::stages::{StageTimes, Tagged as _, measure, report_memory, timed};
use crate::suites::values::within;

/// Queries whose neighbours are held to plain search.
const CHECKED: usize = 4;

/// The benchmark.
#[derive(Debug)]
pub(super) struct EndToEndInfer;

/// What one pass gave.
struct Answer {
    embeddings: Vec<Tensor>,
    neighbours: Vec<Vec<Vec<Neighbour>>>,
}

struct Sizes {
    batch: usize,
    neighbours: usize,
    index: usize,
}

impl Sizes {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let batch = within(params, "batch", 1, 1024)?;
        let index = within(params, "index", 1, MOST)?;
        let neighbours = within(params, "neighbours", 1, 1000)?;
        Ok(Self { batch, neighbours, index })
    }
}

impl Benchmark for EndToEndInfer {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Sentences from text to answer: tokenized, embedded by a MiniLM-like encoder in batches, and their \
                           nearest neighbours found in an index by exhaustive search.";
        spec(
            "end_to_end_infer",
            BenchmarkComponent::System,
            description,
            128,
            &[
                ("batch", ParamValue::Int(16)),
                ("index", ParamValue::Int(10_000)),
                ("neighbours", ParamValue::Int(10)),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[
            ("batch", "1 to 1024".to_owned()),
            ("index", format!("1 to {MOST}")),
            ("neighbours", "1 to 1000".to_owned()),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        Sizes::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let sizes = Sizes::from(context.params())?;
        let corpus = settings.corpus()?;
        let mut encoder = settings.encoder(corpus.tokenizer.get_vocab_size(true), Device::Cpu)?;
        let tokenized = tokenize(&corpus, &encoder, sizes.batch)?;
        for batch in &tokenized {
            encoder.prepare(batch.sentences, batch.length)?;
        }
        let width = encoder.architecture.hidden;
        let vectors = index(sizes.index, width, settings.seed);
        let index = Index::new(vectors, width, sizes.batch, &settings.options())?;
        context.begin("sentences");
        let latencies = RefCell::new(Latencies::new());
        let pass = |stages: &mut StageTimes| {
            pass(&corpus, &encoder, &index, &sizes, stages, &mut latencies.borrow_mut())
        };
        let gate = |answer: &Answer| {
            // The pass that is judged was the first: what it took is no sample.
            latencies.take();
            judge(&encoder, &index, &tokenized, answer)
        };
        let time = context.time();
        let (_, samples) = measure(context, pass, gate, time)?;
        let rate = MetricKey::more_is_better("sentences_per_second", "sentences/s");
        samples.report(context, &settings, rate, corpus.sentences.len() as f64)?;
        percentiles::record(context, "latency", &latencies.take(), |key| {
            settings.tag(key).tag("batch", sizes.batch)
        })?;
        report_memory(context, &settings)
    }
}

fn tokenize(corpus: &Corpus, encoder: &Encoder, size: usize) -> Result<Vec<Batch>, BenchmarkError> {
    let ids = corpus.ids(&corpus.sentences, encoder.longest())?;
    Ok(batches(&ids, size, encoder.longest()))
}

/// All sentences from text to neighbours, batch by batch. The time of each batch is a latency.
fn pass(
    corpus: &Corpus,
    encoder: &Encoder,
    index: &Index,
    sizes: &Sizes,
    stages: &mut StageTimes,
    latencies: &mut Latencies,
) -> Result<Answer, BenchmarkError> {
    let mut answer = Answer { embeddings: Vec::new(), neighbours: Vec::new() };
    let mut steps = [("tokenize", 0.0), ("embed", 0.0), ("search", 0.0)];
    for sentences in corpus.sentences.chunks(sizes.batch) {
        let began = Instant::now();
        let mut times = StageTimes::new();
        let ids = timed(&mut times, "tokenize", || corpus.ids(sentences, encoder.longest()))?;
        let batches = batches(&ids, sizes.batch, encoder.longest());
        for batch in &batches {
            let embeddings = timed(&mut times, "embed", || encoder.embed(batch))?;
            let found = timed(&mut times, "search", || index.search(&embeddings, sizes.neighbours))?;
            answer.embeddings.push(embeddings);
            answer.neighbours.push(found);
        }
        for ((_, total), (_, seconds)) in steps.iter_mut().zip(times) {
            *total += seconds;
        }
        latencies.add(began.elapsed());
    }
    stages.extend(steps);
    Ok(answer)
}

/// Holds the first batch's embeddings to the reference, and neighbours of its first queries to plain search.
fn judge(encoder: &Encoder, index: &Index, batches: &[Batch], answer: &Answer) -> Result<(), BenchmarkError> {
    let (Some(batch), Some(embeddings)) = (batches.first(), answer.embeddings.first()) else {
        return Err(BenchmarkError::BadInput("there is no sentence".to_owned()));
    };
    // The reference is slow: the first sentences of the batch stand for all of it.
    let sentences = batch.sentences.min(CHECKED);
    let part = |values: &[i64]| values[..sentences * batch.length].to_vec();
    let few = Batch { sentences, length: batch.length, ids: part(&batch.ids), mask: part(&batch.mask) };
    let width = encoder.architecture.hidden;
    let failed = |error: &dyn std::fmt::Display| BenchmarkError::Failed(error.to_string());
    let values = embeddings.as_slice::<f32>().map_err(|error| failed(&error))?;
    let found = Tensor::from_slice(&[sentences, width], &values[..sentences * width]);
    held(&found.map_err(|error| failed(&error))?, &encoder.reference(&few)?)?;
    let queries = values.chunks(width).zip(answer.neighbours.iter().flatten());
    queries.take(sentences).try_for_each(|(query, found)| index.held(query, found))
}

/// Unit vectors from a seed.
fn index(count: usize, width: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x1dec5);
    let mut vectors: Vec<f32> = (0..count * width).map(|_| random.f32() - 0.5).collect();
    for vector in vectors.chunks_mut(width) {
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
    }
    vectors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::round;

    #[test]
    fn a_round_reports_rate_stages_and_memory() {
        let small = [("sentences", "6"), ("batch", "4"), ("index", "50"), ("neighbours", "3")];
        let round = round(&EndToEndInfer, &small, 0.0);
        let mut names = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(values.iter().all(|&value| value > 0.0), "{key:?}: {values:?}");
                names.push(key.label());
            }
        };
        EndToEndInfer.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
        assert!(names[0].starts_with("sentences_per_second"), "{names:?}");
        for stage in ["tokenize", "embed", "search"] {
            assert!(names.iter().any(|name| name.contains(stage)), "{names:?}");
        }
        let stopped = EndToEndInfer.run(&mut RunContext::new(&round, &|| true, &mut |_| {}));
        assert_eq!(stopped, Err(BenchmarkError::Stopped));
    }
}
