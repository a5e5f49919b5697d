//! `tokenize`: text to token ids.

use super::corpus::Corpus;
use super::settings::{Settings, spec, takes};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, Params};
use crate::suites::stages::{StageTimes, Tagged as _, measure, report_memory};

/// The benchmark.
#[derive(Debug)]
pub(super) struct Tokenize;

impl Benchmark for Tokenize {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Text to token ids by WordPiece or the checkpoint's tokenizer, the sentences divided among \
                           threads.";
        spec("tokenize", BenchmarkComponent::Cpu, description, 4096, &[])
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let corpus = settings.corpus()?;
        let threads = settings.threads();
        let bytes: usize = corpus.sentences.iter().map(String::len).sum();
        let mut tokens = 0;
        context.begin("text");
        let pass = |_: &mut StageTimes| divided(&corpus, threads);
        let gate = |ids: &Vec<Vec<i64>>| {
            tokens = ids.iter().map(Vec::len).sum();
            judge(&corpus, ids)
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

/// All sentences, each thread a run of them.
fn divided(corpus: &Corpus, threads: usize) -> Result<Vec<Vec<i64>>, BenchmarkError> {
    let part = corpus.sentences.len().div_ceil(threads).max(1);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = corpus
            .sentences
            .chunks(part)
            .map(|sentences| scope.spawn(move || corpus.ids(sentences, usize::MAX)))
            .collect();
        started.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.map_err(|_| BenchmarkError::Failed("a thread of the tokenizer died".to_owned()))??);
    }
    Ok(all)
}

/// Holds ids to their text: one thread gives the same, and the pieces put together are the words.
fn judge(corpus: &Corpus, ids: &[Vec<i64>]) -> Result<(), BenchmarkError> {
    let wrong = |reason: String| BenchmarkError::Failed(format!("wrong answer: {reason}"));
    if ids != divided(corpus, 1)? {
        return Err(wrong("one thread gives other ids than several".to_owned()));
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
        let ids: Vec<u32> = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        let back = corpus.tokenizer.decode(&ids, true).map_err(|error| wrong(error.to_string()))?;
        let back = ["[cls]", "[sep]"].iter().fold(back.to_lowercase(), |text, token| text.replace(token, ""));
        if letters(&back) != letters(sentence) {
            return Err(wrong(format!("`{sentence}` comes back as `{back}`")));
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
        let mut ids = divided(&corpus, 2).unwrap();
        judge(&corpus, &ids).unwrap();
        ids[3][1] += 1;
        assert!(judge(&corpus, &ids).unwrap_err().to_string().starts_with("wrong answer"));
    }
}
