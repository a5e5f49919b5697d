//! `llama_infer`: greedy continuations of prompts by a Llama-like decoder.

use std::path::PathBuf;

use warpforge::Outputs;

use super::measure;
use super::settings::{Scenario, Settings, called, spec, takes};
use super::system::{Answer, First, System};
use crate::benchmark::{Benchmark, BenchmarkError, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};
use crate::suites::packages;
use crate::suites::pepbench::llm::checkpoint::Checkpoint;
use crate::suites::pepbench::llm::decoder::{Decode, Prefill, failed, greedy};
use crate::suites::pepbench::llm::gate;
use crate::suites::pepbench::llm::program::Stored;
use crate::suites::pepbench::llm::sizes::Sizes;
use crate::suites::values::{bad_value, within};

const MOST_TOKENS: i64 = 4096;
/// The cache is a multiple of so many tokens.
const CACHE_STEP: usize = 32;
/// Tokens that the gate looks at before a test of performance, and at most in one of accuracy.
const CHECKED: usize = 4;
const MOST_CHECKED: usize = 64;
/// Samples in a hundred that must be right: MLPerf's own bound.
const QUALITY: f64 = 99.0;

/// The benchmark.
#[derive(Debug)]
pub(super) struct LlamaInfer;

impl Benchmark for LlamaInfer {
    fn spec(&self) -> BenchmarkSpec {
        let description = "`tokens` greedy tokens behind prompts of `prompt` tokens by a Llama-like decoder (SmolLM2-135M), driven by \
                           MLPerf's LoadGen with the time to the first token and per token. Not an MLPerf result.";
        let own = [
            ("model", ParamValue::Text("SmolLM2-135M".to_owned())),
            ("type", ParamValue::Text("bf16".to_owned())),
            ("prompt", ParamValue::Int(64)),
            ("tokens", ParamValue::Int(16)),
        ];
        spec("llama_infer", description, [16, 4], &own)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[
            (
                "model",
                format!(
                    "a Llama-like checkpoint: a GGUF file, a folder with config.json and model.safetensors, or a file of llama2.c; \
                     {} from an installed package; empty for weights from the seed",
                    packages::names(&packages::LLAMA)
                ),
            ),
            ("type", "f32 or bf16: weights, cache and operands of matrix products".to_owned()),
            ("prompt", format!("1 to {MOST_TOKENS}")),
            ("tokens", format!("1 to {MOST_TOKENS}")),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from("llama_infer", params)?;
        Own::from(params)?;
        super::loadgen::python().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let own = Own::from(context.params())?;
        let settings = Settings::from("llama_infer", context.params())?
            .with_tag("model", called(own.model.as_deref()))
            .with_tag("type", own.stored.name())
            .with_tag("prompt", own.prompt.to_string())
            .with_tag("tokens", own.tokens.to_string());
        let mut llama = Llama::new(&settings, own)?;
        measure::run(context, &settings, "llama3_1-8b", &mut llama)
    }
}

/// Its own parameters.
struct Own {
    model: Option<PathBuf>,
    stored: Stored,
    prompt: usize,
    tokens: usize,
}

impl Own {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let stored = match text(params, "type") {
            "f32" => Stored::F32,
            "bf16" => Stored::Bf16,
            other => return Err(bad_value("type", &other, "give f32 or bf16")),
        };
        Ok(Self {
            stored,
            prompt: within(params, "prompt", 1, MOST_TOKENS)?,
            tokens: within(params, "tokens", 1, MOST_TOKENS)?,
            model: match text(params, "model") {
                "" => None,
                name => Some(packages::find("model", name, &packages::LLAMA)?),
            },
        })
    }
}

/// The programs of one size of batch.
struct Programs {
    size: usize,
    prefill: Prefill,
    decode: Decode,
}

/// The decoder and its prompts.
struct Llama {
    checkpoint: Checkpoint,
    own: Own,
    prompts: Vec<Vec<i64>>,
    batch: usize,
    /// From the smallest to the largest.
    programs: Vec<Programs>,
}

impl Llama {
    fn new(settings: &Settings, own: Own) -> Result<Self, BenchmarkError> {
        let longest = own.prompt + own.tokens;
        let mut checkpoint = match &own.model {
            Some(path) => Checkpoint::open(path)?,
            None => Checkpoint::seeded(
                Sizes { context: longest.max(Sizes::generated().context), ..Sizes::generated() },
                settings.seed,
            ),
        };
        if longest > checkpoint.sizes.context {
            let reason = format!("the model's context is {} tokens", checkpoint.sizes.context);
            return Err(bad_value("tokens", &own.tokens, &reason));
        }
        checkpoint.round(own.stored);
        let mut random = fastrand::Rng::with_seed(settings.seed ^ 0x6c_6c_61_6d);
        let words = checkpoint.sizes.vocabulary;
        let mut prompt = || (0..own.prompt).map(|_| random.usize(..words) as i64).collect();
        let prompts = (0..settings.samples).map(|_| prompt()).collect();
        let batch = settings.most_at_once();
        let mut sizes = match settings.scenario {
            Scenario::Server => vec![1, batch],
            _ => vec![batch],
        };
        sizes.dedup();
        let capacity = longest.next_multiple_of(CACHE_STEP);
        let options = settings.options();
        let programs = sizes.into_iter().map(|size| {
            Ok(Programs {
                size,
                prefill: Prefill::new(&checkpoint, own.stored, [size, own.prompt], &options)?,
                decode: Decode::new(&checkpoint, own.stored, [size, capacity], &options)?,
            })
        });
        let programs = programs.collect::<Result<Vec<_>, BenchmarkError>>()?;
        Ok(Self { checkpoint, own, prompts, batch, programs })
    }

    /// The programs for so many samples.
    fn programs(&self, samples: usize) -> Result<&Programs, BenchmarkError> {
        let fits = self.programs.iter().find(|programs| programs.size >= samples);
        fits.ok_or_else(|| failed(format!("{samples} samples are more than a batch")))
    }

    /// The keys and values of prompts; the last fills the batch up.
    fn filled(&self, samples: &[usize]) -> Result<(&Programs, Outputs), BenchmarkError> {
        let programs = self.programs(samples.len())?;
        let rows = (0..programs.size).map(|at| samples[at.min(samples.len() - 1)]);
        let ids: Vec<i64> = rows.flat_map(|sample| self.prompts[sample].iter().copied()).collect();
        let filled = programs.prefill.run(&ids)?;
        Ok((programs, filled))
    }

    /// Holds the first of some tokens to plain loops, which go on from the keys and values of the prompt.
    fn checked(&self, sample: usize, tokens: &[i64], most: usize) -> Result<(), BenchmarkError> {
        let Own { stored, prompt, .. } = self.own;
        let (_, filled) = self.filled(&[sample])?;
        let capacity = prompt + most;
        let mut reference = gate::after(&self.checkpoint, stored, &filled, 0, [prompt, capacity])?;
        // The last token of the prompt is computed anew: its logits give the first token.
        let mut fed = self.prompts[sample][prompt - 1];
        for (at, &token) in tokens.iter().take(most).enumerate() {
            let position = prompt - 1 + at;
            let right = reference.step(fed as usize, position);
            gate::chosen(token, &right, gate::tolerance(&self.checkpoint, stored), position)?;
            fed = token;
        }
        Ok(())
    }
}

impl System for Llama {
    fn samples(&self) -> usize {
        self.prompts.len()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn answer(&mut self, samples: &[usize], first: First<'_>) -> Result<Vec<Answer>, BenchmarkError> {
        let words = self.checkpoint.sizes.vocabulary;
        let (programs, filled) = self.filled(samples)?;
        let logits = filled.get("logits").ok_or_else(|| failed("the prefill gave no logits"))?;
        let chosen = |logits: &warpforge::Tensor| -> Result<Vec<i64>, BenchmarkError> {
            let values = logits.as_slice::<f32>().map_err(failed)?;
            Ok(values.chunks(words).map(|row| greedy(row) as i64).collect())
        };
        let mut ids = chosen(logits)?;
        let mut made: Vec<Vec<i64>> = ids.iter().take(samples.len()).map(|&id| vec![id]).collect();
        first(&answers(&made))?;
        programs.decode.fill(&filled)?;
        for at in 1..self.own.tokens {
            ids = chosen(&programs.decode.step(&ids, self.own.prompt + at - 1)?)?;
            made.iter_mut().zip(&ids).for_each(|(made, &id)| made.push(id));
        }
        Ok(answers(&made))
    }

    fn judge(&mut self) -> Result<(), BenchmarkError> {
        let sample = 0;
        let (_, filled) = self.filled(&[sample])?;
        gate::prefilled(&self.checkpoint, self.own.stored, &filled, 0, &self.prompts[sample])?;
        let answers = self.answer(&[sample], &mut |_| Ok(()))?;
        let tokens = answers.first().map(|answer| tokens(&answer.data)).unwrap_or_default();
        self.checked(sample, &tokens, CHECKED)
    }

    /// How many in a hundred continuations are those of plain loops, as far as these are computed.
    fn accuracy(&mut self, answers: &[Vec<u8>]) -> Result<f64, BenchmarkError> {
        let most = (MOST_CHECKED / answers.len().max(1)).max(1);
        let mut wrong = Vec::new();
        for (sample, answer) in answers.iter().enumerate() {
            let tokens = tokens(answer);
            if tokens.len() != self.own.tokens {
                return Err(failed(format!("wrong answer: sample {sample} has {} tokens", tokens.len())));
            }
            wrong.extend(self.checked(sample, &tokens, most).err().map(|error| (sample, error)));
        }
        let right = 100.0 * (1.0 - wrong.len() as f64 / answers.len().max(1) as f64);
        match wrong.into_iter().next() {
            Some((sample, error)) if right < QUALITY => Err(failed(format!(
                "{right:.1} % of the answers are right, not {QUALITY} %; sample {sample}: {error}"
            ))),
            _ => Ok(right),
        }
    }
}

fn answers(made: &[Vec<i64>]) -> Vec<Answer> {
    let answer = |tokens: &Vec<i64>| Answer {
        data: tokens.iter().flat_map(|&token| (token as i32).to_le_bytes()).collect(),
        tokens: tokens.len() as u32,
    };
    made.iter().map(answer).collect()
}

fn tokens(data: &[u8]) -> Vec<i64> {
    let token = |word: &[u8]| i64::from(i32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    data.chunks_exact(4).map(token).collect()
}
