//! The parameters that benchmarks of this suite share, and what they are made into.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use warpforge::{CompileOptions, Device};
use warpforge_bio::available_threads;

use super::architecture::Architecture;
use super::corpus::{Corpus, TOKENIZER, lines, open_tokenizer};
use super::encoder::{CONFIG, Encoder};
use crate::benchmark::{BenchmarkError, MetricKey, int, text};
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params, params,
};
use crate::suites::stages::Tagged;
use crate::suites::values::{bad_value, within};

/// The most of anything that is counted: sentences, vectors of an index.
pub(super) const MOST: i64 = 10_000_000;
const MOST_THREADS: i64 = 4096;

/// Checked parameters.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// A checkpoint's folder; `None` for weights and a vocabulary from the seed.
    model: Option<PathBuf>,
    /// A file of sentences, one in a line; `None` for generated ones.
    data: Option<PathBuf>,
    pub(super) sentences: usize,
    threads: Option<NonZeroUsize>,
    pub(super) seed: u64,
}

impl Settings {
    pub(super) fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let path = |name| Some(text(params, name)).filter(|text| !text.is_empty()).map(PathBuf::from);
        let (model, data) = (path("model"), path("data"));
        if let Some(folder) = &model {
            for file in [CONFIG, TOKENIZER] {
                if !folder.join(file).is_file() {
                    let reason = format!("there is no {file}; give the folder of a checkpoint");
                    return Err(bad_value("model", &folder.display(), &reason));
                }
            }
        }
        if let Some(file) = data.as_ref().filter(|file| !file.is_file()) {
            return Err(bad_value("data", &file.display(), "there is no such file"));
        }
        let seed = int(params, "seed");
        Ok(Self {
            model,
            data,
            sentences: within(params, "sentences", 1, MOST)?,
            threads: NonZeroUsize::new(within(params, "threads", 0, MOST_THREADS)?),
            seed: u64::try_from(seed).map_err(|_| bad_value("seed", &seed, "a seed is not negative"))?,
        })
    }

    /// The text, at most as many sentences as were asked for.
    ///
    /// # Errors
    /// A tokenizer or a file that cannot be read.
    pub(super) fn corpus(&self) -> Result<Corpus, BenchmarkError> {
        let mut corpus = Corpus::generated(self.sentences, self.seed)?;
        if let Some(folder) = &self.model {
            corpus.tokenizer = open_tokenizer(folder)?;
        }
        if let Some(file) = &self.data {
            corpus.sentences = lines(file)?;
            corpus.sentences.truncate(self.sentences);
        }
        Ok(corpus)
    }

    /// The encoder on a device, for a vocabulary of this size where it is generated.
    ///
    /// # Errors
    /// A checkpoint that cannot be read.
    pub(super) fn encoder(&self, vocabulary: usize, device: Device) -> Result<Encoder, BenchmarkError> {
        let options = CompileOptions { device, ..self.options() };
        match &self.model {
            Some(folder) => Encoder::open(folder, options),
            None => Encoder::seeded(Architecture::mini_lm(vocabulary), self.seed, options),
        }
    }

    /// The threads that are used.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(available_threads, NonZeroUsize::get)
    }

    /// How programs are compiled: in f32, all of them kernels of the engine.
    pub(super) fn options(&self) -> CompileOptions {
        CompileOptions { threads: self.threads, no_fallback: true, ..CompileOptions::default() }
    }
}

impl Tagged for Settings {
    fn tag(&self, key: MetricKey) -> MetricKey {
        let name = |path: &Option<PathBuf>| {
            let name = path.as_deref().and_then(Path::file_name);
            name.map_or_else(|| "generated".to_owned(), |name| name.to_string_lossy().into_owned())
        };
        key.tag("model", name(&self.model)).tag("data", name(&self.data)).tag("threads", self.threads())
    }
}

/// What the common parameters take, and its own.
pub(super) fn takes(own: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let common = [
        (
            "model",
            "the folder of a BERT-like checkpoint; empty for MiniLM with weights from the seed".to_owned(),
        ),
        ("data", "a file with a sentence in each line; empty for generated ones".to_owned()),
        ("sentences", format!("1 to {MOST}")),
        ("threads", format!("1 to {MOST_THREADS}; 0 for all")),
        ("seed", "a whole number, 0 or more".to_owned()),
    ];
    common.into_iter().chain(own.iter().cloned()).collect()
}

/// A specification of this suite: the common parameters and its own.
pub(super) fn spec(
    name: &str,
    component: BenchmarkComponent,
    description: &str,
    sentences: i64,
    own: &[(&str, ParamValue)],
) -> BenchmarkSpec {
    let common = [
        ("model", ParamValue::Text(String::new())),
        ("data", ParamValue::Text(String::new())),
        ("sentences", ParamValue::Int(sentences)),
        ("threads", ParamValue::Int(0)),
        ("seed", ParamValue::Int(1)),
    ];
    BenchmarkSpec {
        components: vec![component],
        description: Some(description.to_owned()),
        default_duration_seconds: Some(15),
        params: Some(params(&[&common, own].concat())),
        ..BenchmarkId::new("pepbench", name).spec(BenchmarkKind::Application)
    }
}
