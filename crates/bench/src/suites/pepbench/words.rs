//! Token ids of text, word by word: a word that was seen before has the ids that it had then.
//!
//! Nearly all words of a text have been in it before. Where a tokenizer gives the words of a text the ids that they have alone,
//! the crate `tokenizers` is asked once for each word; where that is not certain, it is asked for each text.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde_json::Value;
use tokenizers::{Model as _, ModelWrapper, Tokenizer};

use super::vocabulary::divides_words;
use crate::benchmark::BenchmarkError;

/// What SentencePiece writes for a space.
const SPACE: &str = "\u{2581}";
/// The longest word that is kept, and how many.
const LONGEST: usize = 64;
const MOST: usize = 1 << 18;

/// How a tokenizer takes a text that is cut into words.
#[derive(Debug, Clone)]
pub(super) struct Words {
    cut: Cut,
    /// What stands before a word of small letters when the model looks it up, at the beginning of a text and after a space;
    /// `None` where such a word cannot be looked up as it is.
    plain: Option<[&'static str; 2]>,
    /// The ids of the tokens that the tokenizer puts before and after every text.
    before: Vec<u32>,
    after: Vec<u32>,
    /// Tokens such as `[CLS]` that are found in a text as a whole, and that a cut may fall into; by their first byte.
    unbreakable: BTreeMap<u8, Vec<String>>,
}

/// Where a text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Before a space, and between a letter and a punctuation mark.
    Words,
    /// Before a space.
    Spaces,
    /// In place of a space, which the tokenizer puts before every text itself.
    InSpaces,
}

impl Words {
    /// `None` where words may have other ids in a text than alone.
    pub(super) fn of(tokenizer: &Tokenizer) -> Option<Self> {
        let added = tokenizer.get_added_tokens_decoder();
        if added.values().any(|token| token.rstrip || reaches_over_space(&token.content)) {
            return None;
        }
        let (cut, plain) = words_are_apart(tokenizer)?;
        let plain = plain.filter(|_| !added.values().any(|token| is_plain(token.content.as_bytes())));
        let ids = |special| tokenizer.encode_fast("a", special).map(|encoding| encoding.get_ids().to_vec());
        let (bare, whole) = (ids(false).ok()?, ids(true).ok()?);
        let at = whole.windows(bare.len().max(1)).position(|window| window == bare)?;
        let after = whole[at + bare.len()..].to_vec();
        let mut unbreakable: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        for token in added.values().filter(|token| cuts(&token.content, cut).next().is_some()) {
            unbreakable.entry(token.content.as_bytes()[0]).or_default().push(token.content.clone());
        }
        Some(Self { cut, plain, before: whole[..at].to_vec(), after, unbreakable })
    }

    /// Whether a text has a token in it that a cut may fall into.
    fn has_unbreakable(&self, text: &str) -> bool {
        let begins = |(first, tokens): (&u8, &Vec<String>)| {
            text.as_bytes().contains(first) && tokens.iter().any(|token| text.contains(token.as_str()))
        };
        self.unbreakable.iter().any(begins)
    }
}

/// Whether the words of a text are encoded by themselves; then, where it may be cut, and what stands before plain words.
fn words_are_apart(tokenizer: &Tokenizer) -> Option<(Cut, Option<[&'static str; 2]>)> {
    if has_dropout(tokenizer) {
        return None;
    }
    let normalizer = serde_json::to_value(tokenizer.get_normalizer()).ok()?;
    let by_letter = ["BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents"];
    let others: Vec<&Value> =
        steps(&normalizer, "normalizers").iter().filter(|step| !by_letter.contains(&kind(step))).collect();
    match tokenizer.get_pre_tokenizer() {
        Some(divider) if others.is_empty() => divided(&serde_json::to_value(divider).ok()?),
        Some(_) => None,
        None => joined(tokenizer, &others),
    }
}

/// A text that is divided before the model sees it.
fn divided(divider: &Value) -> Option<(Cut, Option<[&'static str; 2]>)> {
    let (mut cut, mut bytes) = (None, false);
    for step in steps(divider, "pretokenizers") {
        match kind(step) {
            "BertPreTokenizer" => cut = Some(Cut::Words),
            "Whitespace" | "WhitespaceSplit" => cut = cut.or(Some(Cut::Spaces)),
            "Split" if step["behavior"] == "Isolated" && step["invert"] == false => {
                let divides = divides_words(step["pattern"]["Regex"].as_str()?)?;
                cut = if divides { Some(Cut::Words) } else { cut };
            }
            "ByteLevel" if step["add_prefix_space"] == false => {
                bytes = true;
                cut = if step["use_regex"] == false { cut } else { Some(Cut::Words) };
            }
            "Digits" | "Punctuation" => {}
            _ => return None,
        }
    }
    Some((cut?, Some(if bytes { ["", "\u{120}"] } else { ["", ""] })))
}

/// SentencePiece: spaces become letters, and pieces reach over words only where the vocabulary has such.
fn joined(tokenizer: &Tokenizer, normalizers: &[&Value]) -> Option<(Cut, Option<[&'static str; 2]>)> {
    let replaces = |step: &Value| {
        kind(step) == "Replace" && step["pattern"]["String"] == " " && step["content"] == SPACE
    };
    let prepends = |step: &Value| kind(step) == "Prepend" && step["prepend"] == SPACE;
    let (cut, first) = match normalizers {
        [only] if replaces(only) => (Cut::Spaces, ""),
        [first, second] if prepends(first) && replaces(second) => (Cut::InSpaces, SPACE),
        _ => return None,
    };
    let pieces = tokenizer.get_vocab(false);
    let over_words = |piece: &String| piece.trim_start_matches(SPACE).contains(SPACE);
    let apart = pieces.contains_key(SPACE) && !pieces.keys().any(over_words);
    apart.then_some((cut, Some([first, SPACE])))
}

fn kind(step: &Value) -> &str {
    step["type"].as_str().unwrap_or_default()
}

/// Whether a token may take a single space together with what stands beside it, or alone. Longer runs of spaces are never cut.
fn reaches_over_space(token: &str) -> bool {
    let spaces = token.chars().filter(|letter| letter.is_whitespace()).count();
    spaces == 1 || (spaces > 1 && spaces < token.chars().count())
}

/// Whether a word has small ASCII letters and nothing else: no tokenizer divides or changes it.
fn is_plain(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_lowercase)
}

/// The steps of a normalizer or pre-tokenizer, which may be one or a sequence.
fn steps<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    match value[name].as_array() {
        Some(steps) => steps,
        None if value.is_null() => &[],
        None => std::slice::from_ref(value),
    }
}

fn has_dropout(tokenizer: &Tokenizer) -> bool {
    match tokenizer.get_model() {
        ModelWrapper::BPE(model) => model.dropout.is_some(),
        ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => false,
        ModelWrapper::Unigram(_) => true,
    }
}

/// Encodes texts, one after the other, and remembers their words.
pub(super) struct WordEncoder<'t> {
    tokenizer: &'t Tokenizer,
    words: Option<&'t Words>,
    special: bool,
    /// A plain word as the model has it.
    plain: String,
    /// Where the ids of a word are in `ids`.
    seen: HashMap<Box<str>, (u32, u32)>,
    ids: Vec<u32>,
}

impl<'t> WordEncoder<'t> {
    pub(super) fn new(tokenizer: &'t Tokenizer, words: Option<&'t Words>) -> Self {
        Self { tokenizer, words, special: true, plain: String::new(), seen: HashMap::new(), ids: Vec::new() }
    }

    /// Leaves out the tokens that the tokenizer puts around every text.
    pub(super) fn without_special_tokens(self) -> Self {
        Self { special: false, ..self }
    }

    /// Appends the ids of a text.
    ///
    /// # Errors
    /// What the tokenizer says.
    pub(super) fn encode(&mut self, text: &str, into: &mut Vec<u32>) -> Result<(), BenchmarkError> {
        let Some(words) = self.words.filter(|words| !words.has_unbreakable(text)) else {
            into.extend(asked(self.tokenizer, text, self.special)?);
            return Ok(());
        };
        into.extend(words.before.iter().filter(|_| self.special));
        let mut start = 0;
        for end in cuts(text, words.cut).chain([text.len()]) {
            self.word(&text[start..end], words, into)?;
            start = if words.cut == Cut::InSpaces { end + 1 } else { end };
        }
        into.extend(words.after.iter().filter(|_| self.special));
        Ok(())
    }

    fn word(&mut self, word: &str, words: &Words, into: &mut Vec<u32>) -> Result<(), BenchmarkError> {
        if let Some(&(start, end)) = self.seen.get(word) {
            into.extend(&self.ids[start as usize..end as usize]);
            return Ok(());
        }
        let ids = self.looked_up(word, words)?;
        into.extend(&ids);
        if word.len() <= LONGEST {
            if self.seen.len() == MOST {
                self.seen.clear();
                self.ids.clear();
            }
            let start = self.ids.len();
            self.ids.extend(ids);
            // Words are at most `MOST` and short: their ids are fewer than 2^32.
            self.seen.insert(word.into(), (start as u32, self.ids.len() as u32));
        }
        Ok(())
    }

    fn looked_up(&mut self, word: &str, words: &Words) -> Result<Vec<u32>, BenchmarkError> {
        // Without the spaces between words, one at the beginning is the text's own.
        let bare = word.strip_prefix(' ').filter(|_| words.cut != Cut::InSpaces).unwrap_or(word);
        let Some(before) = words.plain.filter(|_| is_plain(bare.as_bytes())) else {
            return asked(self.tokenizer, word, false);
        };
        self.plain.clear();
        self.plain += before[usize::from(bare.len() < word.len())];
        self.plain += bare;
        let tokens = self.tokenizer.get_model().tokenize(&self.plain).map_err(|error| failed(&error))?;
        Ok(tokens.iter().map(|token| token.id).collect())
    }
}

fn failed(error: &tokenizers::Error) -> BenchmarkError {
    BenchmarkError::Failed(format!("the tokenizer: {error}"))
}

fn asked(tokenizer: &Tokenizer, text: &str, special: bool) -> Result<Vec<u32>, BenchmarkError> {
    Ok(tokenizer.encode_fast(text, special).map_err(|error| failed(&error))?.get_ids().to_vec())
}

/// Where words end: before a single space between a visible ASCII character and an ASCII letter, and between an ASCII letter and a
/// punctuation mark that is no apostrophe.
fn cuts(text: &str, cut: Cut) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends = move |&at: &usize| match (bytes[at - 1], bytes[at]) {
        (before, b' ') => before.is_ascii_graphic() && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic),
        (before, mark) => {
            cut == Cut::Words && before.is_ascii_alphabetic() && mark.is_ascii_punctuation() && mark != b'\''
        }
    };
    (1..bytes.len()).filter(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::pepbench::corpus::Corpus;

    fn tokenizer(description: &Value) -> Tokenizer {
        description.to_string().parse().unwrap()
    }

    /// Ids by words, and by the crate alone.
    fn both(tokenizer: &Tokenizer, texts: &[&str]) -> [Vec<Vec<u32>>; 2] {
        let words = Words::of(tokenizer);
        assert!(words.is_some(), "words are apart");
        [words.as_ref(), None].map(|words| {
            let mut encoder = WordEncoder::new(tokenizer, words);
            let ids = |text: &&str| {
                let mut ids = Vec::new();
                encoder.encode(text, &mut ids).unwrap();
                ids
            };
            texts.iter().map(ids).collect()
        })
    }

    const TEXTS: [&str; 8] = [
        "a ab abc, ab a",
        "",
        "  ab  a b ",
        "ab\n a\t b ab",
        "ab é ab\u{a0}a b\u{3000}a",
        "ab 1 2 a11 ab",
        "a's b'T ab ",
        "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc ab",
    ];

    #[test]
    fn words_have_the_ids_of_the_whole_text() {
        let generated = Corpus::generated(200, 3).unwrap();
        let sentences: Vec<&str> = generated.sentences.iter().map(String::as_str).collect();
        let [by_words, whole] = both(&generated.tokenizer, &sentences);
        assert_eq!(by_words, whole);
        let [by_words, whole] = both(&generated.tokenizer, &TEXTS);
        assert_eq!(by_words, whole);
    }

    #[test]
    fn tokens_that_are_added_are_not_cut() {
        let mut tokenizer = Corpus::generated(1, 3).unwrap().tokenizer;
        tokenizer.add_special_tokens(&[tokenizers::AddedToken::from("[CLS]", true)]);
        let [by_words, whole] = both(&tokenizer, &["a [CLS] ab", "ab[CLS], a", "a [cls] ab", "[ a"]);
        assert_eq!(by_words, whole);
        assert_eq!(whole[0].iter().filter(|&&id| id == 2).count(), 2, "{whole:?}");
    }

    #[test]
    fn pieces_of_sentence_piece_stay_within_words() {
        let piece = |pieces: &[&str], merges: &[[&str; 2]]| {
            let ids: serde_json::Map<String, Value> =
                pieces.iter().enumerate().map(|(id, piece)| ((*piece).to_owned(), id.into())).collect();
            tokenizer(
                &serde_json::json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
                "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
                "pre_tokenizer": null, "post_processor": null, "decoder": null,
                "model": {"type": "BPE", "vocab": ids, "merges": merges, "unk_token": "?", "fuse_unk": true}}),
            )
        };
        let own = ["?", "▁", "a", "b", "c", "ab", "▁a", "▁ab"];
        let merges = [["a", "b"], ["▁", "ab"], ["▁", "a"]];
        let [by_words, whole] = both(&piece(&own, &merges), &TEXTS);
        assert_eq!(by_words, whole);
        let over = ["?", "▁", "a", "b", "a▁", "a▁b"];
        assert!(Words::of(&piece(&over, &[["a", "▁"], ["a▁", "b"]])).is_none(), "a piece reaches over words");
    }

    #[test]
    fn words_end_before_single_spaces_and_marks() {
        assert_eq!(cuts("ab c  d \n e! f1 2 g's", Cut::Spaces).collect::<Vec<_>>(), [2, 12, 17]);
        assert_eq!(cuts("ab, c d's", Cut::Words).collect::<Vec<_>>(), [2, 3, 5]);
    }
}
