//! Sentences and a tokenizer for them: of a checkpoint and a file, or made from a seed.

use std::path::Path;

use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::encoder::Batch;
use crate::benchmark::BenchmarkError;

/// The tokenizer's file in a checkpoint.
pub(in crate::suites) const TOKENIZER: &str = "tokenizer.json";

/// The pieces of the generated vocabulary, as many as BERT's has.
const PIECES: usize = 30_522;
/// Lengths are rounded up to multiples of this: few programs, little padding.
const LENGTH_STEP: usize = 16;

/// Text that sentences are encoded from.
pub(in crate::suites) struct Corpus {
    pub(in crate::suites) tokenizer: Tokenizer,
    pub(in crate::suites) sentences: Vec<String>,
}

/// The tokenizer of a checkpoint's folder.
///
/// # Errors
/// A file that is not there or is none.
pub(in crate::suites) fn open_tokenizer(folder: &Path) -> Result<Tokenizer, BenchmarkError> {
    let path = folder.join(TOKENIZER);
    let wrong = |reason: String| BenchmarkError::BadInput(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let mut tokenizer: Tokenizer = text.parse().map_err(|error| wrong(format!("{error}")))?;
    // Batches are padded and cut here.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|error| wrong(format!("{error}")))?;
    Ok(tokenizer)
}

/// The lines of a file that are not empty.
///
/// # Errors
/// A file that cannot be read or has none.
pub(in crate::suites) fn lines(path: &Path) -> Result<Vec<String>, BenchmarkError> {
    let wrong = |reason: &str| BenchmarkError::BadInput(format!("data={}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let lines: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if lines.is_empty() { Err(wrong("the file has no line of text")) } else { Ok(lines) }
}

/// Words of a language that is made of syllables, common ones first, and what they are made of.
struct Language {
    words: Vec<String>,
    tokenizer: Tokenizer,
}

const ONSETS: [&str; 16] =
    ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "sh"];
const NUCLEI: [&str; 8] = ["a", "e", "i", "o", "u", "ai", "ou", "ea"];

impl Language {
    fn new(seed: u64) -> Result<Self, BenchmarkError> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut vocabulary = serde_json::Map::new();
        let mut add = |piece: String| {
            let next = vocabulary.len();
            vocabulary.entry(piece).or_insert_with(|| Value::from(next));
            vocabulary.len()
        };
        for special in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", ","] {
            add(special.to_owned());
        }
        for letter in 'a'..='z' {
            add(letter.to_string());
            add(format!("##{letter}"));
        }
        for (onset, nucleus) in ONSETS.iter().flat_map(|onset| NUCLEI.map(|nucleus| (onset, nucleus))) {
            add(format!("##{onset}{nucleus}"));
        }
        let mut words = Vec::new();
        loop {
            let word = word(&mut random);
            if add(word.clone()) == PIECES {
                break;
            }
            words.push(word);
        }
        let tokenizer = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [],
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocabulary},
        });
        let tokenizer = tokenizer.to_string().parse();
        let tokenizer =
            tokenizer.map_err(|error| BenchmarkError::Failed(format!("the tokenizer: {error}")))?;
        Ok(Self { words, tokenizer })
    }

    /// A sentence of 4 to 40 words; a word's frequency falls with its rank, as in natural text, and one in eight is put
    /// together of two.
    fn sentence(&self, random: &mut fastrand::Rng) -> String {
        let count = 4 + (36.0 * random.f64() * random.f64()) as usize;
        let word = |random: &mut fastrand::Rng| {
            let rank = (self.words.len() as f64).powf(random.f64()) as usize;
            self.words[rank.min(self.words.len()) - 1].as_str()
        };
        let mut text = String::new();
        for at in 0..count {
            let separator = match at {
                0 => "",
                _ if random.u8(..) < 20 => ", ",
                _ => " ",
            };
            text += separator;
            text += word(random);
            if random.u8(..) < 32 {
                text += word(random);
            }
        }
        text.push('.');
        text
    }
}

fn word(random: &mut fastrand::Rng) -> String {
    let syllables = 1 + usize::from(random.u8(..)) % 4;
    let syllable = |_| {
        let (onset, nucleus) = (random.usize(..ONSETS.len()), random.usize(..NUCLEI.len()));
        format!("{}{}", ONSETS[onset], NUCLEI[nucleus])
    };
    (0..syllables).map(syllable).collect()
}

impl Corpus {
    /// Sentences and a tokenizer from a seed.
    ///
    /// # Errors
    /// If the tokenizer cannot be made.
    pub(in crate::suites) fn generated(count: usize, seed: u64) -> Result<Self, BenchmarkError> {
        let language = Language::new(seed)?;
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5e47);
        let sentences = (0..count).map(|_| language.sentence(&mut random)).collect();
        Ok(Self { tokenizer: language.tokenizer, sentences })
    }

    /// The token ids of sentences, special tokens included, at most `longest` of each.
    ///
    /// # Errors
    /// What the tokenizer says.
    pub(in crate::suites) fn ids(
        &self,
        sentences: &[String],
        longest: usize,
    ) -> Result<Vec<Vec<i64>>, BenchmarkError> {
        let encode = |sentence: &String| {
            let encoding = self.tokenizer.encode_fast(sentence.as_str(), true);
            let encoding =
                encoding.map_err(|error| BenchmarkError::Failed(format!("the tokenizer: {error}")))?;
            Ok(encoding.get_ids().iter().take(longest).map(|&id| i64::from(id)).collect())
        };
        sentences.iter().map(encode).collect()
    }
}

/// The length that sentences of at most this many tokens are padded to.
pub(in crate::suites) fn padded(length: usize, longest: usize) -> usize {
    length.next_multiple_of(LENGTH_STEP).clamp(1, longest.max(1))
}

/// Puts sentences into batches of the same size: padded to the longest, and the last filled up with its last sentence.
pub(in crate::suites) fn batches(ids: &[Vec<i64>], size: usize, longest: usize) -> Vec<Batch> {
    let batch = |rows: &[Vec<i64>]| {
        let length = padded(rows.iter().map(Vec::len).max().unwrap_or(0), longest);
        let mut batch = Batch { sentences: size, length, ids: Vec::new(), mask: Vec::new() };
        for at in 0..size {
            let row = &rows[at.min(rows.len() - 1)];
            let padding = length - row.len();
            batch.ids.extend(row.iter().copied().chain(std::iter::repeat_n(0, padding)));
            batch.mask.extend(row.iter().map(|_| 1).chain(std::iter::repeat_n(0, padding)));
        }
        batch
    };
    ids.chunks(size).map(batch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_sentences_and_the_tokenizer_knows_their_words() {
        let corpus = Corpus::generated(50, 7).unwrap();
        assert_eq!(corpus.sentences, Corpus::generated(50, 7).unwrap().sentences);
        assert_ne!(corpus.sentences, Corpus::generated(50, 8).unwrap().sentences);
        let ids = corpus.ids(&corpus.sentences, 512).unwrap();
        assert!(ids.iter().all(|row| row[0] == 2 && row.last() == Some(&3)), "[CLS] and [SEP]");
        assert!(!ids.concat().contains(&1), "no [UNK]");
        let words: usize = corpus.sentences.iter().map(|sentence| sentence.split(' ').count()).sum();
        let tokens: usize = ids.iter().map(Vec::len).sum();
        assert!(tokens > words && tokens < 3 * words, "{tokens} tokens of {words} words");
        assert!(corpus.ids(&corpus.sentences, 5).unwrap().iter().all(|row| row.len() == 5));
    }

    #[test]
    fn batches_are_padded_to_a_step_and_filled_up() {
        let ids = vec![vec![2, 9, 3], vec![2, 3], vec![2; 17]];
        let batches = batches(&ids, 2, 128);
        assert_eq!(batches.iter().map(|batch| batch.length).collect::<Vec<_>>(), [16, 32]);
        assert_eq!(batches[0].mask.iter().sum::<i64>(), 5);
        assert_eq!((batches[1].sentences, batches[1].mask.iter().sum::<i64>()), (2, 34));
        assert_eq!(padded(130, 128), 128);
    }
}
