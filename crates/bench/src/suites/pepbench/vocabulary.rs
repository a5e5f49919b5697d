//! Vocabularies of GGUF files as tokenizers of the crate `tokenizers`.
//!
//! A vocabulary encodes text and nothing else: it puts no tokens before or after it, and the names of control tokens in a text
//! are letters like others.

mod splits;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use tokenizers::Tokenizer;
use warpforge::io::gguf::{self, Gguf, Value};

use crate::benchmark::BenchmarkError;
pub(super) use splits::divides_words;

/// The types of tokens that matter here, as GGUF numbers them.
const UNKNOWN: usize = 2;
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// What stands for a space in the pieces of SentencePiece, and for the beginning of a word in GGUF's WordPiece.
const SPACE: char = '\u{2581}';
/// The longest word that WordPiece looks up; GGUF's has no limit.
const LONGEST_WORD: usize = 1 << 20;

/// The tokenizer of a GGUF file.
///
/// # Errors
/// A file that cannot be read, or whose vocabulary is of a kind that is not known.
pub(super) fn open(path: &Path) -> Result<Tokenizer, BenchmarkError> {
    let wrong = |reason: String| BenchmarkError::BadInput(format!("vocabulary={}: {reason}", path.display()));
    let file = gguf::read(path).map_err(|error| wrong(error.to_string()))?;
    let description = Vocabulary::of(&file).and_then(|vocabulary| vocabulary.description()).map_err(wrong)?;
    description.to_string().parse().map_err(|error| wrong(format!("the vocabulary is no tokenizer: {error}")))
}

/// What a file says about its tokens.
struct Vocabulary<'a> {
    file: &'a Gguf,
    tokens: Vec<String>,
    /// The type of each token; empty where the file has none.
    types: Vec<usize>,
}

impl<'a> Vocabulary<'a> {
    fn of(file: &'a Gguf) -> Result<Self, String> {
        let tokens = texts(file, "tokenizer.ggml.tokens")?;
        let types = elements(file, "tokenizer.ggml.token_type")?.unwrap_or_default();
        let types: Vec<usize> = types.iter().filter_map(Value::as_size).collect();
        if !types.is_empty() && types.len() != tokens.len() {
            return Err(format!("{} tokens have {} types", tokens.len(), types.len()));
        }
        Ok(Self { file, tokens, types })
    }

    fn is(&self, id: usize, kind: usize) -> bool {
        self.types.get(id) == Some(&kind)
    }

    /// The description of the tokenizer, as `tokenizer.json` has it.
    fn description(&self) -> Result<Json, String> {
        let model = self.file.value("tokenizer.ggml.model").and_then(Value::as_text);
        let (normalizer, pre_tokenizer, model) = match model {
            Some("gpt2") => self.byte_level()?,
            Some("llama") => self.sentence_piece()?,
            Some("bert") => self.word_piece(),
            Some(other) => {
                return Err(format!("a vocabulary of kind `{other}`; there are gpt2, llama and bert"));
            }
            None => return Err("the file says no `tokenizer.ggml.model`: it has no vocabulary".to_owned()),
        };
        Ok(json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added(),
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": null,
            "decoder": null,
            "model": model,
        }))
    }

    /// Tokens that the user of the vocabulary has defined: they are found in a text before it is divided.
    fn added(&self) -> Vec<Json> {
        let defined = self.tokens.iter().enumerate().filter(|&(id, _)| self.is(id, USER_DEFINED));
        let added = defined.map(|(id, token)| {
            json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": false})
        });
        added.collect()
    }

    /// The tokens as they are, by name.
    fn ids(&self) -> Map<String, Json> {
        self.tokens.iter().enumerate().map(|(id, token)| (token.clone(), id.into())).collect()
    }

    /// Byte-pair encoding of bytes, with the merges in the file.
    fn byte_level(&self) -> Result<(Json, Json, Json), String> {
        let kind = self.file.value("tokenizer.ggml.pre").and_then(Value::as_text).unwrap_or("default");
        let splits = splits::of(kind).ok_or_else(|| {
            format!("the vocabulary divides text as `{kind}` does; there are {}", splits::names())
        })?;
        let merges: Vec<Json> =
            texts(self.file, "tokenizer.ggml.merges")?.into_iter().map(Json::from).collect();
        let divide = splits.patterns.iter().map(|pattern| {
            json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
        });
        let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
            "use_regex": false});
        let sequence: Vec<Json> = divide.chain([bytes]).collect();
        let model = json!({"type": "BPE", "vocab": self.ids(), "merges": merges,
            "ignore_merges": splits.whole_words_first});
        Ok((Json::Null, json!({"type": "Sequence", "pretokenizers": sequence}), model))
    }

    /// SentencePiece's byte-pair encoding: the merge whose result has the best score comes first.
    fn sentence_piece(&self) -> Result<(Json, Json, Json), String> {
        let scores = elements(self.file, "tokenizer.ggml.scores")?.unwrap_or_default();
        let scores: Vec<f64> = scores.iter().filter_map(Value::as_f64).collect();
        if scores.len() != self.tokens.len() {
            return Err(format!("{} tokens have {} scores", self.tokens.len(), scores.len()));
        }
        let plain = |id: usize| ![UNKNOWN, CONTROL, USER_DEFINED].iter().any(|&kind| self.is(id, kind));
        let pieces = self.tokens.iter().enumerate().filter(|&(id, _)| plain(id));
        let ids: HashMap<&str, usize> = pieces.map(|(id, token)| (token.as_str(), id)).collect();
        let mut merges = Vec::new();
        for (&piece, &id) in &ids {
            for (at, _) in piece.char_indices().skip(1) {
                let (left, right) = piece.split_at(at);
                if let (Some(&first), Some(&second)) = (ids.get(left), ids.get(right)) {
                    merges.push((id, first, second));
                }
            }
        }
        merges.sort_by(|one, other| scores[other.0].total_cmp(&scores[one.0]).then(one.cmp(other)));
        let merges: Vec<[&str; 2]> = merges
            .iter()
            .map(|&(_, first, second)| [first, second].map(|id| self.tokens[id].as_str()))
            .collect();
        let unknown = self.file.value("tokenizer.ggml.unknown_token_id").and_then(Value::as_size);
        let unknown = unknown.and_then(|id| self.tokens.get(id));
        let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE.to_string()});
        let prefix = !matches!(self.file.value("tokenizer.ggml.add_space_prefix"), Some(Value::Bool(false)));
        let prepend = prefix.then(|| json!({"type": "Prepend", "prepend": SPACE.to_string()}));
        let normalizers: Vec<Json> = prepend.into_iter().chain([replace]).collect();
        let model = json!({"type": "BPE", "vocab": self.ids(), "merges": merges, "unk_token": unknown,
            "fuse_unk": true, "byte_fallback": true});
        Ok((json!({"type": "Sequence", "normalizers": normalizers}), Json::Null, model))
    }

    /// BERT's WordPiece. GGUF marks the beginning of a word where BERT marks what goes on.
    fn word_piece(&self) -> (Json, Json, Json) {
        let piece = |token: &str| match token.strip_prefix(SPACE) {
            Some(word) => word.to_owned(),
            None if token.starts_with('[') && token.ends_with(']') => token.to_owned(),
            None => format!("##{token}"),
        };
        // The first of two equal pieces is the one that is looked up.
        let pieces: BTreeMap<String, usize> =
            self.tokens.iter().enumerate().rev().map(|(id, token)| (piece(token), id)).collect();
        let unknown = self.file.value("tokenizer.ggml.unknown_token_id").and_then(Value::as_size);
        let unknown = unknown.and_then(|id| self.tokens.get(id)).map_or("[UNK]", String::as_str);
        let normalizer = json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": true, "lowercase": true});
        let model = json!({"type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##",
            "max_input_chars_per_word": LONGEST_WORD, "vocab": pieces});
        (normalizer, json!({"type": "BertPreTokenizer"}), model)
    }
}

fn elements(file: &Gguf, name: &str) -> Result<Option<Vec<Value>>, String> {
    file.elements(name).map_err(|error| error.to_string())
}

/// An array of texts that has to be there.
fn texts(file: &Gguf, name: &str) -> Result<Vec<String>, String> {
    let values =
        elements(file, name)?.ok_or_else(|| format!("the file has no `{name}`: it has no vocabulary"))?;
    let text = |value| match value {
        Value::Text(text) => Ok(text),
        _ => Err(format!("`{name}` has elements that are no text")),
    };
    values.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A GGUF file without tensors.
    #[derive(Default)]
    struct File {
        count: u64,
        values: Vec<u8>,
    }

    impl File {
        fn text(mut self, name: &str, value: &str) -> Self {
            self.begin(name, 8);
            self.string(value);
            self
        }

        fn texts(mut self, name: &str, values: &[&str]) -> Self {
            self.array(name, 8, values.len());
            values.iter().for_each(|value| self.string(value));
            self
        }

        fn numbers(mut self, name: &str, values: &[f32]) -> Self {
            self.array(name, 6, values.len());
            values.iter().for_each(|value| self.values.extend(value.to_le_bytes()));
            self
        }

        fn array(&mut self, name: &str, kind: u32, count: usize) {
            self.begin(name, 9);
            self.values.extend(kind.to_le_bytes());
            self.values.extend((count as u64).to_le_bytes());
        }

        fn begin(&mut self, name: &str, kind: u32) {
            self.count += 1;
            self.string(name);
            self.values.extend(kind.to_le_bytes());
        }

        fn string(&mut self, text: &str) {
            self.values.extend((text.len() as u64).to_le_bytes());
            self.values.extend(text.as_bytes());
        }

        fn open(self) -> Result<Tokenizer, BenchmarkError> {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("vocabulary.gguf");
            let count = self.count.to_le_bytes();
            let mut bytes = [b"GGUF".as_slice(), &3u32.to_le_bytes(), &[0; 8], &count, &self.values].concat();
            bytes.resize(bytes.len().next_multiple_of(32), 0);
            std::fs::write(&path, bytes).unwrap();
            open(&path)
        }
    }

    fn tokens(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        tokenizer.encode(text, true).unwrap().get_tokens().to_vec()
    }

    #[test]
    fn bytes_are_merged_in_the_order_of_the_file() {
        let file = |pre: &str| {
            File::default()
                .text("tokenizer.ggml.model", "gpt2")
                .text("tokenizer.ggml.pre", pre)
                .texts("tokenizer.ggml.tokens", &["a", "b", "c", "1", "Ġ", "bc", "ab", "Ġa", "11", "abc"])
                .texts("tokenizer.ggml.merges", &["b c", "a b", "Ġ a", "1 1"])
        };
        let plain = file("gpt-2").open().unwrap();
        assert_eq!(tokens(&plain, "abc ab 11"), ["a", "bc", "Ġ", "ab", "Ġ", "11"]);
        assert_eq!(
            tokens(&file("starcoder").open().unwrap(), "ab11"),
            ["ab", "1", "1"],
            "digits stand alone"
        );
        assert_eq!(tokens(&file("llama-bpe").open().unwrap(), "abc"), ["abc"], "a part that is a token");
        let error = file("klingon").open().unwrap_err().to_string();
        assert!(error.contains("`klingon`") && error.contains("qwen2"), "{error}");
    }

    #[test]
    fn pieces_are_merged_by_their_scores() {
        let tokens_of = ["▁", "a", "b", "c", "ab", "bc", "▁a", "<0xC3>", "<0xA9>"];
        let file = |scores: &[f32]| {
            File::default()
                .text("tokenizer.ggml.model", "llama")
                .texts("tokenizer.ggml.tokens", &tokens_of)
                .numbers("tokenizer.ggml.scores", scores)
        };
        let by = |ab: f32, bc: f32| file(&[0.0, 0.0, 0.0, 0.0, ab, bc, -9.0, 0.0, 0.0]).open().unwrap();
        assert_eq!(tokens(&by(-1.0, -2.0), "abc"), ["▁", "ab", "c"]);
        assert_eq!(tokens(&by(-2.0, -1.0), "abc"), ["▁a", "bc"]);
        assert_eq!(tokens(&by(-1.0, -2.0), "é"), ["▁", "<0xC3>", "<0xA9>"], "bytes of what is no piece");
        let error = file(&[0.0]).open().unwrap_err().to_string();
        assert!(error.contains("9 tokens have 1 scores"), "{error}");
    }

    #[test]
    fn words_are_marked_at_their_beginning() {
        let file = File::default()
            .text("tokenizer.ggml.model", "bert")
            .texts("tokenizer.ggml.tokens", &["[UNK]", "▁play", "ing", "▁!", "▁ing"]);
        assert_eq!(tokens(&file.open().unwrap(), "Playing ing! x"), ["play", "##ing", "ing", "!", "[UNK]"]);
    }

    #[test]
    fn what_has_no_vocabulary_is_refused() {
        let error = |file: File| file.open().unwrap_err().to_string();
        assert!(error(File::default()).contains("tokenizer.ggml.tokens"));
        let other = |model: &str| {
            let file = File::default().text("tokenizer.ggml.model", model);
            error(file.texts("tokenizer.ggml.tokens", &["a"]))
        };
        assert!(other("rwkv").contains("kind `rwkv`"));
        assert!(other("gpt2").contains("tokenizer.ggml.merges"));
        assert!(error(File::default().numbers("tokenizer.ggml.tokens", &[1.0])).contains("no text"));
    }
}
