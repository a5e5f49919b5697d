//! `tokenize`: text to token ids.

use std::path::PathBuf;

use super::corpus::Corpus;
use super::settings::{Settings, spec, takes};
use super::truth::{self, Truth};
use super::vocabulary;
use super::words::{WordEncoder, Words};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, text};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::stages::{StageTimes, Tagged, measure, report_memory};
use crate::suites::values::bad_value;

const VOCABULARY: &str = "vocabulary";
const TRUTH: &str = "truth";

/// The benchmark.
#[derive(Debug)]
pub(super) struct Tokenize;

impl Benchmark for Tokenize {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Text to token ids by WordPiece, a checkpoint's tokenizer or the vocabulary of a GGUF file, the \
                           sentences divided among threads.";
        let own = [VOCABULARY, TRUTH].map(|name| (name, ParamValue::Text(String::new())));
        spec("tokenize", BenchmarkComponent::Cpu, description, 4096, &own)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        let vocabulary =
            "a GGUF file with a vocabulary (gpt2, llama or bert), in place of the model's tokenizer";
        let truth = "a file of texts whose ids are known, `NAME.inp` beside `NAME.out`; they have to be met";
        takes(&[(VOCABULARY, vocabulary.to_owned()), (TRUTH, truth.to_owned())])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        TokenizeSettings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = TokenizeSettings::from(context.params())?;
        let corpus = settings.corpus()?;
        let truths = settings.truth.as_deref().map(truth::read).transpose()?.unwrap_or_default();
        let threads = settings.common.threads();
        let bytes: usize = corpus.sentences.iter().map(String::len).sum();
        let mut tokens = 0;
        context.begin("text");
        let words = Words::of(&corpus.tokenizer);
        let pass = |_: &mut StageTimes| divided(&corpus, words.as_ref(), threads);
        let gate = |ids: &Vec<Vec<u32>>| {
            tokens = ids.iter().map(Vec::len).sum();
            judge(&corpus, ids)?;
            judge_truth(&corpus, words.as_ref(), &truths)
        };
        let time = context.time();
        let (_, samples) = measure(context, pass, gate, time)?;
        let rate = MetricKey::more_is_better("throughput", "MB/s");
        samples.report(context, &settings, rate, bytes as f64 / 1e6)?;
        let rate = MetricKey::more_is_better("tokens_per_second", "tokens/s");
        context.record(settings.tag(rate), samples.rates(tokens as f64))?;
        report_memory(context, &settings)
    }
}

/// Checked parameters.
struct TokenizeSettings {
    common: Settings,
    vocabulary: Option<PathBuf>,
    truth: Option<PathBuf>,
}

impl TokenizeSettings {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let path = |name| Some(text(params, name)).filter(|text| !text.is_empty()).map(PathBuf::from);
        let vocabulary = path(VOCABULARY);
        if let Some(file) = &vocabulary {
            if !file.is_file() {
                return Err(bad_value(VOCABULARY, &file.display(), "there is no such file"));
            }
            if path("model").is_some() {
                let reason = "`model` has a tokenizer of its own; give one of the two";
                return Err(bad_value(VOCABULARY, &file.display(), reason));
            }
        }
        let truth = path(TRUTH);
        if let Some(file) = &truth {
            truth::read(file)?;
        }
        Ok(Self { common: Settings::from(params)?, vocabulary, truth })
    }

    fn corpus(&self) -> Result<Corpus, BenchmarkError> {
        let mut corpus = self.common.corpus()?;
        if let Some(file) = &self.vocabulary {
            corpus.tokenizer = vocabulary::open(file)?;
        }
        Ok(corpus)
    }
}

impl Tagged for TokenizeSettings {
    fn tag(&self, key: MetricKey) -> MetricKey {
        let name = self.vocabulary.as_deref().and_then(std::path::Path::file_name);
        let key = self.common.tag(key);
        match name {
            Some(name) => key.tag(VOCABULARY, name.to_string_lossy()),
            None => key,
        }
    }
}

/// All sentences, each thread a run of them. No thread knows a word before it has met it.
fn divided(corpus: &Corpus, words: Option<&Words>, threads: usize) -> Result<Vec<Vec<u32>>, BenchmarkError> {
    let part = corpus.sentences.len().div_ceil(threads).max(1);
    let encode = |sentences: &[String]| {
        let mut encoder = WordEncoder::new(&corpus.tokenizer, words);
        let ids = |sentence: &String| {
            let mut ids = Vec::new();
            encoder.encode(sentence, &mut ids).map(|()| ids)
        };
        sentences.iter().map(ids).collect::<Result<Vec<_>, BenchmarkError>>()
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> =
            corpus.sentences.chunks(part).map(|sentences| scope.spawn(move || encode(sentences))).collect();
        started.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.map_err(|_| BenchmarkError::Failed("a thread of the tokenizer died".to_owned()))??);
    }
    Ok(all)
}

/// Holds ids to their text: the crate `tokenizers` gives each sentence the same, and the pieces put together are the words.
fn judge(corpus: &Corpus, ids: &[Vec<u32>]) -> Result<(), BenchmarkError> {
    let wrong = |reason: String| BenchmarkError::Failed(format!("wrong answer: {reason}"));
    if ids != divided(corpus, None, 1)? {
        return Err(wrong("the ids are not those of the crate `tokenizers`".to_owned()));
    }
    for (sentence, ids) in corpus.sentences.iter().zip(ids) {
        if ids.is_empty() {
            return Err(wrong(format!("`{sentence}` has no token")));
        }
    }
    // What a checkpoint's normalizer leaves out cannot come back.
    let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
    let plain = corpus.sentences.iter().zip(ids).filter(|(sentence, _)| is_plain(sentence));
    for (sentence, ids) in plain {
        let back = corpus.tokenizer.decode(ids, true).map_err(|error| wrong(error.to_string()))?;
        let back = ["[cls]", "[sep]"].iter().fold(back.to_lowercase(), |text, token| text.replace(token, ""));
        if letters(&back) != letters(sentence) {
            return Err(wrong(format!("`{sentence}` comes back as `{back}`")));
        }
    }
    Ok(())
}

/// Holds the tokenizer to texts whose ids are known.
fn judge_truth(corpus: &Corpus, words: Option<&Words>, truths: &[Truth]) -> Result<(), BenchmarkError> {
    let mut encoder = WordEncoder::new(&corpus.tokenizer, words).without_special_tokens();
    for Truth { text, ids: expected } in truths {
        let mut ids = Vec::new();
        encoder.encode(text, &mut ids)?;
        if ids != *expected {
            let reason = format!("wrong answer: {text:?} has the ids {ids:?}, not {expected:?}");
            return Err(BenchmarkError::Failed(reason));
        }
    }
    Ok(())
}

/// Whether a sentence is of small letters, spaces and stops only.
fn is_plain(sentence: &str) -> bool {
    sentence.chars().all(|letter| letter.is_ascii_lowercase() || " .,".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::round;

    #[test]
    fn a_round_reports_bytes_and_tokens() {
        let round = round(&Tokenize, &[("sentences", "30"), ("threads", "2")], 0.0);
        let mut names = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(values.iter().all(|&value| value > 0.0), "{key:?}: {values:?}");
                names.push(key.name);
            }
        };
        Tokenize.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
        assert_eq!(names[..2], ["throughput", "tokens_per_second"]);
    }

    #[test]
    fn other_ids_are_found() {
        let corpus = Corpus::generated(5, 1).unwrap();
        let words = Words::of(&corpus.tokenizer);
        let mut ids = divided(&corpus, words.as_ref(), 2).unwrap();
        judge(&corpus, &ids).unwrap();
        ids[3][1] += 1;
        assert!(judge(&corpus, &ids).unwrap_err().to_string().starts_with("wrong answer"));
    }

    #[test]
    fn known_ids_have_to_be_met() {
        let corpus = Corpus::generated(3, 1).unwrap();
        let text = corpus.sentences[0].clone();
        let ids = corpus.tokenizer.encode_fast(text.as_str(), false).unwrap().get_ids().to_vec();
        let words = Words::of(&corpus.tokenizer);
        let judge = |ids: &[u32]| {
            judge_truth(&corpus, words.as_ref(), &[Truth { text: text.clone(), ids: ids.to_vec() }])
        };
        judge(&ids).unwrap();
        let wrong = judge(&ids[1..]).unwrap_err();
        assert!(wrong.to_string().starts_with("wrong answer"), "{wrong}");
    }
}
