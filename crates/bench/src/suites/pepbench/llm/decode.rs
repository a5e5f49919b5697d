//! `llm_decode`: tokens one after the other, each the likeliest, with keys and values in a cache that stays where it is.

use std::cell::RefCell;
use std::time::Instant;

use serde::Deserialize;
use warpforge::{Outputs, QuantizationRecipe, Tensor};
use warpforge_probes::latency::Latencies;

use super::checkpoint::Checkpoint;
use super::decoder::{Decode, Prefill, failed, greedy};
use super::gate;
use super::reference::Reference;
use super::settings::{MOST_TOKENS, Settings, spec, takes};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};
use crate::suites::percentiles;
use crate::suites::stages::{StageTimes, Tagged as _, measure, report_memory};
use crate::suites::values::{bad_value, within};

/// Tokens that the gate looks at.
const CHECKED: usize = 16;
/// Times of single tokens that are kept.
const MOST_TIMES: usize = 10_000;
/// The cache is a multiple of so many tokens.
const CACHE_STEP: usize = 32;

/// The benchmark.
#[derive(Debug)]
pub(in super::super) struct LlmDecode;

/// What one pass gave: the tokens that were fed, and the logits after the first of them.
#[derive(Default)]
struct Answer {
    fed: Vec<Vec<i64>>,
    logits: Vec<Tensor>,
}

/// Tokens that another program gave for a prompt.
#[derive(Debug, Deserialize)]
struct Truth {
    prompt: Vec<i64>,
    tokens: Vec<i64>,
}

impl Truth {
    /// The file of the parameter `truth`, if there is one.
    fn read(params: &Params) -> Result<Option<Self>, BenchmarkError> {
        let path = text(params, "truth");
        if path.is_empty() {
            return Ok(None);
        }
        let bad = |reason: &dyn std::fmt::Display| bad_value("truth", &path, &reason.to_string());
        let read = std::fs::read_to_string(path).map_err(|error| bad(&error))?;
        let truth: Self = serde_json::from_str(&read).map_err(|error| bad(&error))?;
        if truth.prompt.is_empty() || truth.prompt.len() > MOST_TOKENS as usize {
            return Err(bad(&format!("its prompt has {} tokens", truth.prompt.len())));
        }
        Ok(Some(truth))
    }

    /// Holds the tokens of a pass to these, as far as both go.
    fn held(&self, answer: &Answer) -> Result<(), BenchmarkError> {
        // The first token that is fed is the last of the prompt.
        let given = answer.fed.iter().skip(1).zip(&self.tokens);
        for (at, (given, right)) in given.enumerate() {
            if let Some(given) = given.iter().find(|given| *given != right) {
                return Err(failed(format!("wrong answer: token {at} is {given}, `truth` has {right}")));
            }
        }
        Ok(())
    }
}

impl Benchmark for LlmDecode {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Greedy decoding of a language model: `tokens` tokens, one after the other, behind a prompt of `depth` \
                           tokens. Keys and values are state that is updated in place. Llama architecture; weights from a \
                           checkpoint or the seed.";
        spec(
            "llm_decode",
            description,
            128,
            &[("depth", ParamValue::Int(0)), ("truth", ParamValue::Text(String::new()))],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[
            ("depth", format!("0 to {MOST_TOKENS}")),
            ("truth", "a JSON file with a `prompt`, which replaces that of the seed, and the `tokens` that must follow".to_owned()),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        Truth::read(params)?;
        within(params, "depth", 0, MOST_TOKENS).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let truth = Truth::read(context.params())?;
        let depth = match &truth {
            Some(truth) => truth.prompt.len() - 1,
            None => within(context.params(), "depth", 0, MOST_TOKENS)?,
        };
        let (batch, tokens, stored) = (settings.batch, settings.tokens, settings.stored);
        let checkpoint = settings.checkpoint(depth + tokens)?;
        let limit = settings.read_rate()?;
        let capacity = (depth + tokens).next_multiple_of(CACHE_STEP);
        let program = Decode::new(&checkpoint, stored, [batch, capacity], &settings.options())?;
        let vocabulary = checkpoint.sizes.vocabulary;
        let prompts = match &truth {
            Some(truth) => truth.prompt.repeat(batch),
            None => settings.prompts(vocabulary, depth + 1),
        };
        if let Some(id) = prompts.iter().find(|id| !(0..vocabulary as i64).contains(*id)) {
            return Err(bad_value("truth", &id, &format!("the model has {vocabulary} tokens")));
        }
        let filled = prompt(&settings, &checkpoint, &program, &prompts, depth)?;
        // The last token of each prompt is the first that is fed.
        let first: Vec<i64> = prompts.chunks(depth + 1).map(|prompt| prompt[depth]).collect();
        context.begin("tokens");
        let times = RefCell::new(Vec::new());
        let pass = |_: &mut StageTimes| {
            let mut answer = Answer::default();
            let mut ids = first.clone();
            for position in depth..depth + tokens {
                let began = Instant::now();
                let logits = program.step(&ids, position)?;
                let values = logits.as_slice::<f32>().map_err(failed)?;
                let next = values.chunks(vocabulary).map(|row| greedy(row) as i64).collect();
                times.borrow_mut().push(began.elapsed());
                answer.fed.push(std::mem::replace(&mut ids, next));
                if answer.logits.len() < CHECKED {
                    answer.logits.push(logits);
                }
            }
            Ok(answer)
        };
        let gate = |answer: &Answer| {
            // The pass that is judged was the first: what it took is no sample.
            times.take();
            truth.iter().try_for_each(|truth| truth.held(answer))?;
            let mut sequences = vec![0, batch - 1];
            sequences.dedup();
            sequences.into_iter().try_for_each(|sequence| {
                let reference = match &filled {
                    Some(filled) => gate::after(&checkpoint, stored, filled, sequence, [depth, capacity])?,
                    None => Reference::new(&checkpoint, stored, capacity),
                };
                judge(reference, answer, sequence, depth, gate::tolerance(&checkpoint, stored))
            })
        };
        let time = context.time();
        let (_, samples) = measure(context, pass, gate, time)?;
        let depth_tag = |key: MetricKey| key.tag("depth", depth);
        let rate = depth_tag(MetricKey::more_is_better("tokens_per_second", "tokens/s"));
        samples.report(context, &settings, rate, (batch * tokens) as f64)?;
        let bytes: usize = (depth..depth + tokens).map(|at| bytes_read(&checkpoint, &settings, at)).sum();
        let part = depth_tag(MetricKey::more_is_better("read_bandwidth_percent", "%"));
        let parts = samples.rates(bytes as f64).into_iter().map(|rate| 100.0 * rate / limit).collect();
        context.record(settings.tag(part), parts)?;
        let times = times.take();
        let mut latencies = Latencies::new();
        times.iter().for_each(|time| latencies.add(*time));
        percentiles::record(context, "latency", &latencies, |key| settings.tag(depth_tag(key)))?;
        let each = depth_tag(MetricKey::less_is_better("token_time", "ms"));
        let each_time = times.iter().take(MOST_TIMES).map(|time| time.as_secs_f64() * 1e3).collect();
        context.record(settings.tag(each), each_time)?;
        report_memory(context, &settings)
    }
}

/// Fills the cache with the prompts but for the last token of each.
fn prompt(
    settings: &Settings,
    checkpoint: &Checkpoint,
    program: &Decode,
    prompts: &[i64],
    depth: usize,
) -> Result<Option<Outputs>, BenchmarkError> {
    if depth == 0 {
        return Ok(None);
    }
    let prefill = Prefill::new(checkpoint, settings.stored, [settings.batch, depth], &settings.options())?;
    let ids: Vec<i64> = prompts.chunks(depth + 1).flat_map(|prompt| prompt[..depth].to_vec()).collect();
    let filled = prefill.run(&ids)?;
    program.fill(&filled)?;
    Ok(Some(filled))
}

/// Bytes that a token at this position needs at least: every matrix, and keys and values up to it.
fn bytes_read(checkpoint: &Checkpoint, settings: &Settings, position: usize) -> usize {
    let sizes = &checkpoint.sizes;
    let cache = settings.batch * 2 * sizes.layers * sizes.keys() * (position + 1);
    let matrices = match settings.recipe {
        Some(QuantizationRecipe::Int4WeightOnly { group, .. }) => {
            sizes.multiplied() / 2 + 4 * (sizes.multiplied() / group as usize)
        }
        Some(_) => sizes.multiplied(),
        None => sizes.multiplied() * settings.stored.bytes(),
    };
    matrices + cache * settings.stored.bytes()
}

/// Holds the tokens of one sequence to the reference, which is fed the same.
fn judge(
    mut reference: Reference<'_>,
    answer: &Answer,
    sequence: usize,
    depth: usize,
    tolerance: f32,
) -> Result<(), BenchmarkError> {
    for (at, (fed, logits)) in answer.fed.iter().zip(&answer.logits).enumerate() {
        let right = reference.step(fed[sequence] as usize, depth + at);
        let found = logits.as_slice::<f32>().map_err(failed)?;
        let found = &found[sequence * right.len()..(sequence + 1) * right.len()];
        gate::held(found, &right, tolerance, depth + at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::{refused, round, with};

    /// A file of llama2.c: width 8, inner 12, two layers, two heads sharing one of keys and values, 20 words, 40 positions.
    fn model(folder: &std::path::Path) -> String {
        let mut random = fastrand::Rng::with_seed(3);
        let header = [8, 12, 2, 2, 1, 20, 40].into_iter().flat_map(i32::to_le_bytes);
        let values = (0..5_000).flat_map(|_| (random.f32() - 0.5).to_le_bytes());
        let path = folder.join("tiny.bin");
        std::fs::write(&path, header.chain(values).collect::<Vec<u8>>()).unwrap();
        path.display().to_string()
    }

    #[test]
    fn a_round_reports_every_token() {
        let folder = tempfile::tempdir().unwrap();
        let model = model(folder.path());
        for kind in ["f32", "bf16"] {
            let small =
                [("model", model.as_str()), ("type", kind), ("tokens", "20"), ("depth", "7"), ("batch", "2")];
            let round = round(&LlmDecode, &small, 0.0);
            let mut metrics = Vec::new();
            let mut report = |event| {
                if let Event::Metric { key, values } = event {
                    assert!(values.iter().all(|&value| value > 0.0), "{key:?}: {values:?}");
                    metrics.push((key.name, values.len()));
                }
            };
            LlmDecode.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
            assert_eq!(metrics[0].0, "tokens_per_second");
            assert!(metrics.contains(&("token_time".to_owned(), 20)), "{metrics:?}");
            assert!(metrics.iter().any(|(name, _)| name == "read_bandwidth_percent"), "{metrics:?}");
            let stopped = LlmDecode.run(&mut RunContext::new(&round, &|| true, &mut |_| {}));
            assert_eq!(stopped, Err(BenchmarkError::Stopped));
        }
    }

    #[test]
    fn quantized_weights_are_held_to_the_same_weights_in_plain_loops() {
        let folder = tempfile::tempdir().unwrap();
        let model = model(folder.path());
        let run = |precision: &str, kind: &str| {
            let values =
                [("model", model.as_str()), ("type", kind), ("tokens", "12"), ("precision", precision)];
            let round = round(&LlmDecode, &values, 0.0);
            LlmDecode.run(&mut RunContext::new(&round, &|| false, &mut |_| {}))
        };
        for precision in ["int8wo", "int8dq", "float8wo"] {
            for kind in ["f32", "bf16"] {
                run(precision, kind).unwrap_or_else(|error| panic!("{precision} {kind}: {error}"));
            }
        }
        // The width is 8, the inner width 12.
        let error = run("int4wo-8", "f32").unwrap_err().to_string();
        assert!(error.contains("does not divide"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let settings = |name: &str, value: &str| {
            LlmDecode.prepare(&with(&LlmDecode, &[(name, ParamValue::Text(value.to_owned()))]))
        };
        refused(settings, "type", &["f16", "BF16"], "f32 or bf16");
        refused(settings, "precision", &["int8", "f32"], "not a quantization recipe");
        refused(settings, "model", &["/no/such/model.gguf"], "SmolLM2-135M");
        // Longer than the model's context.
        let folder = tempfile::tempdir().unwrap();
        let model = model(folder.path());
        let round = round(&LlmDecode, &[("model", &model), ("tokens", "41")], 0.0);
        let error = LlmDecode.run(&mut RunContext::new(&round, &|| false, &mut |_| {})).unwrap_err();
        assert!(error.to_string().contains("40 tokens"), "{error}");
    }

    #[test]
    fn tokens_are_those_of_transformers() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny_llama");
        let truth = format!("{data}/truth.json");
        let right = [("model", data), ("type", "f32"), ("tokens", "25"), ("truth", &truth)];
        let run = |values: &[(&str, &str)]| {
            let round = round(&LlmDecode, values, 0.0);
            LlmDecode.run(&mut RunContext::new(&round, &|| false, &mut |_| {}))
        };
        run(&right).unwrap();
        // Another token is an error, and so is a file that is none.
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("wrong.json");
        let text =
            std::fs::read_to_string(&truth).unwrap().replace("\"tokens\": [9, 27", "\"tokens\": [9, 28");
        std::fs::write(&wrong, text).unwrap();
        let wrong = wrong.display().to_string();
        let error =
            run(&[("model", data), ("type", "f32"), ("tokens", "25"), ("truth", &wrong)]).unwrap_err();
        assert!(error.to_string().contains("token 1 is 27, `truth` has 28"), "{error}");
        let settings = |name: &str, value: &str| {
            LlmDecode.prepare(&with(&LlmDecode, &[(name, ParamValue::Text(value.to_owned()))]))
        };
        refused(settings, "truth", &["/no/such/file"], "No such file");
    }
}
