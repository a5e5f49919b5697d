//! `data_pipeline`: documents from files to batches of token ids, as training reads them.

mod flow;
mod shards;
mod stages;

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use warpforge_bio::available_threads;

use self::flow::{Flow, Stalls};
use self::stages::{Shape, Totals};
use super::corpus::Corpus;
use super::words::Words;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, int, text};
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params, params,
};
use crate::suites::stages::{StageTimes, Tagged, measure, report_memory};
use crate::suites::values::{bad_value, within};

const MOST_SAMPLES: i64 = 1 << 20;
const MOST_SHARDS: i64 = 4096;
const MOST_LENGTH: i64 = 1 << 16;
const MOST_BATCH: i64 = 4096;
const MOST_THREADS: i64 = 256;

/// The benchmark.
#[derive(Debug)]
pub(super) struct DataPipeline;

/// Checked parameters.
struct Settings {
    data: Option<PathBuf>,
    samples: usize,
    shards: usize,
    shape: Shape,
    threads: Option<NonZeroUsize>,
    seed: u64,
}

impl Settings {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let data = Some(text(params, "data")).filter(|text| !text.is_empty()).map(PathBuf::from);
        if let Some(folder) = data.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(bad_value("data", &folder.display(), "there is no such folder"));
        }
        let seed = int(params, "seed");
        Ok(Self {
            data,
            samples: within(params, "samples", 1, MOST_SAMPLES)?,
            shards: within(params, "shards", 1, MOST_SHARDS)?,
            shape: Shape {
                length: within(params, "length", 1, MOST_LENGTH)?,
                batch: within(params, "batch", 1, MOST_BATCH)?,
            },
            threads: NonZeroUsize::new(within(params, "threads", 0, MOST_THREADS)?),
            seed: u64::try_from(seed).map_err(|_| bad_value("seed", &seed, "a seed is not negative"))?,
        })
    }

    fn threads(&self) -> usize {
        self.threads.map_or_else(available_threads, NonZeroUsize::get)
    }
}

impl Tagged for Settings {
    fn tag(&self, key: MetricKey) -> MetricKey {
        let name = self.data.as_deref().and_then(|path| path.file_name());
        let name = name.map_or_else(|| "generated".to_owned(), |name| name.to_string_lossy().into_owned());
        key.tag("data", name)
            .tag("length", self.shape.length)
            .tag("batch", self.shape.batch)
            .tag("threads", self.threads())
    }
}

impl Benchmark for DataPipeline {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Documents from files to batches: compressed JSON lines are read, decoded, tokenized, packed into rows of \
                           `length` tokens and put into batches. One thread reads, `threads` decode and tokenize, one packs.";
        let own = [
            ("data", ParamValue::Text(String::new())),
            ("samples", ParamValue::Int(4096)),
            ("shards", ParamValue::Int(16)),
            ("length", ParamValue::Int(512)),
            ("batch", ParamValue::Int(8)),
            ("threads", ParamValue::Int(0)),
            ("seed", ParamValue::Int(1)),
        ];
        BenchmarkSpec {
            components: vec![BenchmarkComponent::Storage, BenchmarkComponent::Cpu],
            description: Some(description.to_owned()),
            default_duration_seconds: Some(15),
            params: Some(params(&own)),
            ..BenchmarkId::new("pepbench", "data_pipeline").spec(BenchmarkKind::Application)
        }
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        vec![
            (
                "data",
                "a folder of .jsonl, .jsonl.gz or .txt files, a document in each line (of JSON: its field `text`); empty for \
                 generated ones"
                    .to_owned(),
            ),
            ("samples", format!("1 to {MOST_SAMPLES}")),
            ("shards", format!("1 to {MOST_SHARDS}")),
            ("length", format!("1 to {MOST_LENGTH}")),
            ("batch", format!("1 to {MOST_BATCH}")),
            ("threads", format!("1 to {MOST_THREADS}; 0 for all")),
            ("seed", "a whole number, 0 or more".to_owned()),
        ]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let made;
        let corpus = Corpus::generated(settings.samples, settings.seed)?;
        let files = match &settings.data {
            Some(folder) => shards::list(folder)?,
            None => {
                made = crate::benchmark::scratch_folder()?;
                shards::write(made.path(), &corpus.sentences, settings.shards)?
            }
        };
        let words = Words::of(&corpus.tokenizer);
        let flow = Flow {
            files: &files,
            tokenizer: &corpus.tokenizer,
            words: words.as_ref(),
            shape: settings.shape,
            threads: settings.threads(),
        };
        context.begin("documents");
        let stalls = RefCell::new(Vec::new());
        let pass = |times: &mut StageTimes| {
            let (totals, waited) = flow.run(times)?;
            stalls.borrow_mut().push(waited);
            Ok(totals)
        };
        let gate = |found: &Totals| {
            stalls.take();
            judge(found, &flow.in_turn()?)
        };
        let time = context.time();
        let (totals, samples) = measure(context, pass, gate, time)?;
        let rate = MetricKey::more_is_better("samples_per_second", "samples/s");
        samples.report(context, &settings, rate, totals.samples as f64)?;
        let rate = MetricKey::more_is_better("throughput", "MB/s");
        context.record(settings.tag(rate), samples.rates(totals.bytes as f64 / 1e6))?;
        let rate = MetricKey::more_is_better("tokens_per_second", "tokens/s");
        context.record(settings.tag(rate), samples.rates(totals.tokens as f64))?;
        let stalls: Vec<Stalls> = stalls.take();
        for (at, stage) in Stalls::STAGES.into_iter().enumerate() {
            let key = MetricKey::less_is_better("stall_percent", "%").tag("stage", stage);
            context.record(settings.tag(key), stalls.iter().map(|stalls| stalls.percent[at]).collect())?;
        }
        report_memory(context, &settings)
    }
}

/// Holds what the threads gave together to what one thread gives, one document after the other.
fn judge(found: &Totals, right: &Totals) -> Result<(), BenchmarkError> {
    if found == right {
        return Ok(());
    }
    Err(BenchmarkError::Failed(format!(
        "wrong answer: the batches are {found:?}, in turn they are {right:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::round;

    fn metrics(values: &[(&str, &str)]) -> Result<Vec<String>, BenchmarkError> {
        let round = round(&DataPipeline, values, 0.0);
        let mut names = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(values.iter().all(|&value| value >= 0.0), "{key:?}: {values:?}");
                names.push(key.label());
            }
        };
        DataPipeline.run(&mut RunContext::new(&round, &|| false, &mut report))?;
        Ok(names)
    }

    #[test]
    fn a_round_reports_rates_stages_and_stalls() {
        let small = [("samples", "60"), ("shards", "5"), ("length", "32"), ("batch", "2"), ("threads", "3")];
        let names = metrics(&small).unwrap();
        for part in ["samples_per_second", "throughput", "stage_time", "tokenize", "stall_percent", "pack"] {
            assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
        }
    }

    #[test]
    fn files_of_users_are_read_and_what_is_wrong_with_them_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let none = metrics(&[("data", &path)]).unwrap_err();
        assert!(none.to_string().contains(".jsonl"), "{none}");
        std::fs::write(folder.path().join("a.txt"), "a line\n\nand another\n").unwrap();
        std::fs::write(folder.path().join("b.jsonl"), "{\"text\": \"some words\"}\n").unwrap();
        metrics(&[("data", &path), ("length", "4"), ("batch", "1")]).unwrap();
        std::fs::write(folder.path().join("c.jsonl"), "{\"body\": 1}\n").unwrap();
        let wrong = metrics(&[("data", &path)]).unwrap_err();
        assert!(wrong.to_string().contains("c.jsonl") && wrong.to_string().contains("line 1"), "{wrong}");
        std::fs::write(folder.path().join("c.jsonl"), "").unwrap();
        std::fs::write(folder.path().join("d.jsonl.gz"), "no gzip").unwrap();
        let damaged = metrics(&[("data", &path)]).unwrap_err();
        assert!(damaged.to_string().contains("d.jsonl.gz"), "{damaged}");
    }
}
