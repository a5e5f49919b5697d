//! `llm_prefill`: the tokens of a prompt at once, up to the first new token.

use warpforge::Outputs;

use super::decoder::{Prefill, failed, greedy};
use super::gate;
use super::settings::{Settings, spec, takes};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkSpec, Params};
use crate::suites::stages::{StageTimes, Tagged as _, measure, report_memory};

/// The benchmark.
#[derive(Debug)]
pub(in super::super) struct LlmPrefill;

impl Benchmark for LlmPrefill {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Prefill of a language model: the logits after prompts of `tokens` tokens, and keys and values of all \
                           of them. Llama architecture; weights from a checkpoint or the seed.";
        spec("llm_prefill", description, 512, &[])
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let (batch, tokens) = (settings.batch, settings.tokens);
        let checkpoint = settings.checkpoint(tokens)?;
        let vocabulary = checkpoint.sizes.vocabulary;
        let ids = settings.prompts(vocabulary, tokens);
        let program = Prefill::new(&checkpoint, settings.stored, [batch, tokens], &settings.options())?;
        context.begin("prompts");
        let pass = |_: &mut StageTimes| {
            let filled = program.run(&ids)?;
            let logits = filled.get("logits").ok_or_else(|| failed("the prefill gave no logits"))?;
            let logits = logits.as_slice::<f32>().map_err(failed)?;
            logits.chunks(vocabulary).for_each(|logits| {
                std::hint::black_box(greedy(logits));
            });
            Ok(filled)
        };
        let gate = |filled: &Outputs| {
            // The first sequence and the last stand for all.
            let mut sequences = vec![0, batch - 1];
            sequences.dedup();
            sequences.into_iter().try_for_each(|sequence| {
                let ids = &ids[sequence * tokens..(sequence + 1) * tokens];
                gate::prefilled(&checkpoint, settings.stored, filled, sequence, ids)
            })
        };
        let time = context.time();
        let (_, samples) = measure(context, pass, gate, time)?;
        let rate = MetricKey::more_is_better("tokens_per_second", "tokens/s");
        samples.report(context, &settings, rate, (batch * tokens) as f64)?;
        let first = settings.tag(MetricKey::less_is_better("time_to_first_token", "ms"));
        context.record(first, samples.rates(1.0).into_iter().map(|rate| 1e3 / rate).collect())?;
        report_memory(context, &settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::round;

    #[test]
    fn a_damaged_model_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken.gguf");
        std::fs::write(&path, b"GGUF\x03\0\0\0 and nothing else").unwrap();
        let round = round(&LlmPrefill, &[("model", path.to_str().unwrap()), ("tokens", "8")], 0.0);
        let mut events: Vec<Event> = Vec::new();
        let error = LlmPrefill.run(&mut RunContext::new(&round, &|| false, &mut |event| events.push(event)));
        let error = error.unwrap_err();
        assert!(matches!(&error, BenchmarkError::BadInput(text) if text.contains("broken.gguf")), "{error}");
        assert!(events.is_empty());
    }
}
