//! Features: a question and a window of its text as token ids of a fixed length, and where the answer is.

use std::path::Path;

use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{
    Encoding, PaddingDirection, PaddingParams, PaddingStrategy, Tokenizer, TruncationDirection,
    TruncationParams, TruncationStrategy,
};
use warpforge::{Inputs, Tensor};

use super::Example;
use crate::Error;

/// How texts become features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Tokens of a feature.
    pub max_length: usize,
    /// Tokens that a window of a text shares with the one before.
    pub stride: usize,
    /// Whether texts are put into lower case.
    pub lowercase: bool,
}

/// A question and a window of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The example that it is of, as a position.
    pub example: usize,
    /// The tokens.
    pub input_ids: Vec<i32>,
    /// 1 for tokens, 0 for padding.
    pub attention_mask: Vec<i32>,
    /// 1 for the text, 0 for the question.
    pub token_type_ids: Vec<i32>,
    /// The first and last token of the answer; the position of `[CLS]` where the window does not have it.
    pub answer: Option<(i32, i32)>,
    /// Where each token of the text is in it, in characters.
    spans: Vec<Option<(usize, usize)>>,
}

impl Feature {
    /// Where a token is in the text, in characters; `None` for tokens of the question and special ones.
    #[must_use]
    pub fn context_span(&self, token: usize) -> Option<(usize, usize)> {
        self.spans.get(token).copied().flatten()
    }
}

/// The features of all questions.
#[derive(Debug, Clone)]
pub struct Features {
    list: Vec<Feature>,
}

/// The tokens that BERT's vocabularies have for itself.
const SPECIAL: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];

impl Features {
    /// Makes features of questions. With `answers`, each says where its answer is.
    ///
    /// # Errors
    ///
    /// When the vocabulary cannot be used, or a question leaves no room for its text.
    pub fn new(
        examples: &[Example],
        vocabulary: &Path,
        settings: Settings,
        answers: bool,
    ) -> Result<Self, Error> {
        let (tokenizer, cls) = tokenizer(vocabulary, settings)?;
        let mut list = Vec::new();
        for (at, example) in examples.iter().enumerate() {
            let text = (example.question.trim_start().to_owned(), example.context.clone());
            let encoding = tokenizer.encode_char_offsets(text, true).map_err(|error| {
                let question = &example.id;
                Error::data(
                    vocabulary,
                    format!(
                        "question {question} does not fit into features of {} tokens: {error}",
                        settings.max_length
                    ),
                )
            })?;
            for window in std::iter::once(&encoding).chain(encoding.get_overflowing()) {
                list.push(feature(at, example, window, cls, answers));
            }
        }
        Ok(Self { list })
    }

    /// The features in order.
    #[must_use]
    pub fn list(&self) -> &[Feature] {
        &self.list
    }

    /// The bytes of a feature, its inputs in the order of their names.
    pub(crate) fn row(&self, index: usize) -> Vec<u8> {
        let feature = &self.list[index];
        let ends = feature.answer.map(|(start, end)| (vec![start], vec![end]));
        let (start, end) = ends.unwrap_or_default();
        // attention_mask, end_positions, input_ids, start_positions, token_type_ids
        let columns = [&feature.attention_mask, &end, &feature.input_ids, &start, &feature.token_type_ids];
        columns.iter().flat_map(|column| column.iter().flat_map(|value| value.to_le_bytes())).collect()
    }

    /// The inputs of a batch.
    pub(crate) fn batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        let features: Vec<&Feature> = indices.iter().map(|&index| &self.list[index]).collect();
        let rows = |column: fn(&Feature) -> &[i32]| -> Result<Tensor, Error> {
            let length = features.first().map_or(0, |feature| column(feature).len());
            let values: Vec<i64> = features
                .iter()
                .flat_map(|feature| column(feature).iter().map(|&value| i64::from(value)))
                .collect();
            Ok(Tensor::from_slice(&[features.len(), length], &values)?)
        };
        let mut inputs = Inputs::new();
        inputs.insert("input_ids", rows(|feature| &feature.input_ids)?);
        inputs.insert("attention_mask", rows(|feature| &feature.attention_mask)?);
        inputs.insert("token_type_ids", rows(|feature| &feature.token_type_ids)?);
        let answers: Option<Vec<(i32, i32)>> = features.iter().map(|feature| feature.answer).collect();
        if let Some(answers) = answers {
            let starts: Vec<i64> = answers.iter().map(|(start, _)| i64::from(*start)).collect();
            let ends: Vec<i64> = answers.iter().map(|(_, end)| i64::from(*end)).collect();
            inputs.insert("start_positions", Tensor::from_slice(&[starts.len()], &starts)?);
            inputs.insert("end_positions", Tensor::from_slice(&[ends.len()], &ends)?);
        }
        Ok(inputs)
    }
}

/// BERT's tokenizer over a vocabulary, and the id of `[CLS]`.
fn tokenizer(vocabulary: &Path, settings: Settings) -> Result<(Tokenizer, u32), Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::data(vocabulary, error.to_string());
    std::fs::metadata(vocabulary).map_err(Error::io(vocabulary))?;
    let words = WordPiece::from_file(&vocabulary.to_string_lossy()).unk_token("[UNK]".to_owned());
    let mut tokenizer = Tokenizer::new(words.build().map_err(|error| wrong(&error))?);
    let mut ids = [0; SPECIAL.len()];
    for (id, token) in ids.iter_mut().zip(SPECIAL) {
        let found = tokenizer.token_to_id(token);
        *id = found.ok_or_else(|| wrong(&format!("the vocabulary has no {token}: it is none of BERT's")))?;
    }
    let [pad, _, cls, sep] = ids;
    tokenizer.with_normalizer(Some(BertNormalizer::new(true, true, None, settings.lowercase)));
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer
        .with_post_processor(Some(BertProcessing::new(("[SEP]".to_owned(), sep), ("[CLS]".to_owned(), cls))));
    let truncation = TruncationParams {
        direction: TruncationDirection::Right,
        max_length: settings.max_length,
        strategy: TruncationStrategy::OnlySecond,
        stride: settings.stride,
    };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| wrong(&error))?;
    tokenizer.with_padding(Some(PaddingParams {
        strategy: PaddingStrategy::Fixed(settings.max_length),
        direction: PaddingDirection::Right,
        pad_to_multiple_of: None,
        pad_id: pad,
        pad_type_id: 0,
        pad_token: "[PAD]".to_owned(),
    }));
    Ok((tokenizer, cls))
}

fn feature(example: usize, of: &Example, window: &Encoding, cls: u32, answers: bool) -> Feature {
    let ids = |values: &[u32]| values.iter().map(|&value| value as i32).collect();
    let sequences = window.get_sequence_ids();
    let spans: Vec<Option<(usize, usize)>> = window
        .get_offsets()
        .iter()
        .zip(&sequences)
        .map(|(&span, sequence)| Some(span).filter(|_| *sequence == Some(1)))
        .collect();
    Feature {
        example,
        input_ids: ids(window.get_ids()),
        attention_mask: ids(window.get_attention_mask()),
        token_type_ids: ids(window.get_type_ids()),
        answer: answers.then(|| {
            let none = window.get_ids().iter().position(|&id| id == cls).unwrap_or(0) as i32;
            answer(of, &spans).unwrap_or((none, none))
        }),
        spans,
    }
}

/// The first and last token of the answer, where the window has all of it.
fn answer(example: &Example, spans: &[Option<(usize, usize)>]) -> Option<(i32, i32)> {
    let answer = example.answers.first()?;
    let (start, end) = (answer.start, answer.start + answer.text.chars().count());
    let first = spans.iter().position(Option::is_some)?;
    let last = spans.iter().rposition(Option::is_some)?;
    let span = |token: usize| spans[token].unwrap_or_default();
    if span(first).0 > start || span(last).1 < end {
        return None;
    }
    // The last token that begins at the answer or before it, and the first that ends with it or behind it. Tokens behind the
    // text begin at 0, so a search that runs out of it goes on to the end of the feature, as transformers' does.
    let begins = (first..spans.len()).find(|&token| span(token).0 > start).unwrap_or(spans.len()) - 1;
    let ends = (0..=last).rev().find(|&token| span(token).1 < end).map_or(0, |token| token + 1);
    Some((begins as i32, ends as i32))
}
