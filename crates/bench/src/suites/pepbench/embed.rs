//! `embed`: embeddings of sentences that are token ids already.

use warpforge::Device;

use super::corpus::batches;
use super::encoder::{Batch, held};
use super::settings::{Settings, spec, takes};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::device;
use crate::suites::stages::{StageTimes, Tagged as _, measure, report_memory};
use crate::suites::values::within;

/// The benchmark.
#[derive(Debug)]
pub(super) struct Embed;

/// Sentences of the first batch that the gate looks at.
const CHECKED: usize = 4;

impl Benchmark for Embed {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Embeddings of tokenized sentences by a MiniLM-like encoder: sorted by length, padded to \
                           multiples of 16 tokens, in batches.";
        let own = [("batch", ParamValue::Int(32)), ("device", ParamValue::Text(Device::Cpu.to_string()))];
        spec("embed", BenchmarkComponent::Cpu, description, 256, &own)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[("batch", "1 to 1024".to_owned()), ("device", device::PLACES.to_owned())])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        within(params, "batch", 1, 1024)?;
        device::named(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let size = within(context.params(), "batch", 1, 1024)?;
        let device = device::named(context.params())?;
        let corpus = settings.corpus()?;
        let mut encoder = settings.encoder(corpus.tokenizer.get_vocab_size(true), device)?;
        let mut ids = corpus.ids(&corpus.sentences, encoder.longest())?;
        ids.sort_by_key(Vec::len);
        let tokens: usize = ids.iter().map(Vec::len).sum();
        let batches = batches(&ids, size, encoder.longest());
        for batch in &batches {
            encoder.prepare(batch.sentences, batch.length)?;
        }
        context.begin("sentences");
        // The first batch once more, in a size that the reference can compute soon.
        let few = few(&ids, encoder.longest())?;
        encoder.prepare(few.sentences, few.length)?;
        let pass = |_: &mut StageTimes| {
            for batch in &batches {
                std::hint::black_box(encoder.embed(batch)?);
            }
            Ok(())
        };
        let gate = |(): &()| held(&encoder.embed(&few)?, &encoder.reference(&few)?);
        let time = context.time();
        let ((), samples) = measure(context, pass, gate, time)?;
        let of = |key: MetricKey| device::tag(key, device).tag("batch", size);
        let rate = of(MetricKey::more_is_better("sentences_per_second", "sentences/s"));
        samples.report(context, &settings, rate, ids.len() as f64)?;
        let rate = of(MetricKey::more_is_better("tokens_per_second", "tokens/s"));
        context.record(settings.tag(rate), samples.rates(tokens as f64))?;
        report_memory(context, &settings)
    }
}

fn few(ids: &[Vec<i64>], longest: usize) -> Result<Batch, BenchmarkError> {
    let rows = &ids[..ids.len().min(CHECKED)];
    let batch = batches(rows, rows.len().max(1), longest).into_iter().next();
    batch.ok_or_else(|| BenchmarkError::BadInput("there is no sentence".to_owned()))
}
