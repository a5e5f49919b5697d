//! Packing: examples one after the other in sequences of a fixed length, each filled with as many as fit.

use std::path::Path;

use tokenizers::Tokenizer;
use warpforge::{Inputs, Tensor};

use super::examples::Example;
use crate::Error;
use crate::description::Data;

/// The label of tokens that the loss leaves out.
const IGNORED: i32 = -100;

/// The inputs, in the order of their names.
const COLUMNS: [&str; 4] = ["input_ids", "labels", "position_ids", "segment_ids"];

/// A tokenizer with its special tokens.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    first: Option<i32>,
    last: i32,
    padding: i32,
}

impl Tokens {
    pub(super) fn load(data: &Data, path: &Path) -> Result<Self, Error> {
        let tokenizer = Tokenizer::from_file(path)
            .map_err(|error| Error::data(path, format!("no tokenizer: {error}")))?;
        let id = |name: &str, token: Option<&String>| -> Result<Option<i32>, Error> {
            let Some(token) = token else { return Ok(None) };
            let id = tokenizer.token_to_id(token).and_then(|id| i32::try_from(id).ok());
            let missing = || {
                Error::data(path, format!("the tokenizer has no token `{token}`, which `{name}_token` names"))
            };
            Ok(Some(id.ok_or_else(missing)?))
        };
        let needed = |name: &str, token: Option<&String>| -> Result<i32, Error> {
            let unnamed = || {
                Error::data(
                    path,
                    format!("the tokenizer names no {name} token; name one in [data] {name}_token"),
                )
            };
            id(name, token)?.ok_or_else(unnamed)
        };
        Ok(Self {
            first: id("bos", data.bos_token.as_ref())?,
            last: needed("eos", data.eos_token.as_ref())?,
            padding: needed("pad", data.pad_token.as_ref())?,
            tokenizer,
        })
    }

    fn encode(&self, text: &str, path: &Path) -> Result<Vec<i32>, Error> {
        let encoded = self.tokenizer.encode_fast(text, false);
        let encoded = encoded.map_err(|error| Error::data(path, error.to_string()))?;
        Ok(encoded.get_ids().iter().map(|&id| id as i32).collect())
    }

    /// The tokens of an example, and its labels: those of the answer and the end.
    fn example(&self, example: &Example, path: &Path) -> Result<(Vec<i32>, Vec<i32>), Error> {
        let mut tokens: Vec<i32> = self.first.into_iter().collect();
        tokens.extend(self.encode(&example.prompt, path)?);
        let mut labels = vec![IGNORED; tokens.len()];
        let mut answer = self.encode(&example.answer, path)?;
        answer.push(self.last);
        tokens.extend_from_slice(&answer);
        labels.extend(answer);
        Ok((tokens, labels))
    }
}

/// Sequences of the same length; each has its columns in the order of [`COLUMNS`].
#[derive(Debug, Default)]
pub(super) struct Sequences {
    rows: Vec<[Vec<i32>; 4]>,
}

impl Sequences {
    pub(super) fn pack(
        examples: &[Example],
        tokens: &Tokens,
        data: &Data,
        path: &Path,
    ) -> Result<Self, Error> {
        let length = data.max_length;
        let mut rows: Vec<[Vec<i32>; 4]> = Vec::new();
        for example in examples {
            let (ids, labels) = tokens.example(example, path)?;
            let count = ids.len();
            if count > length {
                if data.skip_long {
                    continue;
                }
                let line = example.line;
                return Err(Error::data(
                    path,
                    format!(
                        "line {line}: the example has {count} tokens, and a sequence {length}; a larger max_length takes it, `skip_long = true` leaves such examples out"
                    ),
                ));
            }
            if rows.last().is_none_or(|row| row[0].len() + count > length) {
                rows.push(Default::default());
            }
            if let Some([all_ids, all_labels, positions, segments]) = rows.last_mut() {
                let segment = segments.last().map_or(1, |last| last + 1);
                all_ids.extend(ids);
                all_labels.extend(labels);
                positions.extend((0..).take(count));
                segments.extend(std::iter::repeat_n(segment, count));
            }
        }
        if rows.is_empty() {
            return Err(Error::data(path, "it has no examples"));
        }
        let padding = [tokens.padding, IGNORED, 0, 0];
        for row in &mut rows {
            row.iter_mut().zip(padding).for_each(|(column, padding)| column.resize(length, padding));
        }
        Ok(Self { rows })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn row(&self, index: usize) -> Vec<u8> {
        self.rows[index].iter().flatten().flat_map(|value| value.to_le_bytes()).collect()
    }

    pub(super) fn batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        let length = self.rows.first().map_or(0, |row| row[0].len());
        let mut inputs = Inputs::new();
        for (at, name) in COLUMNS.into_iter().enumerate() {
            let values: Vec<i64> = indices
                .iter()
                .flat_map(|&index| &self.rows[index][at])
                .map(|&value| i64::from(value))
                .collect();
            inputs.insert(name, Tensor::from_slice(&[indices.len(), length], &values)?);
        }
        Ok(inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{Description, Generated, Overrides};

    fn packed(texts: &[(&str, &str)], change: impl Fn(&mut Data)) -> Result<Sequences, String> {
        let plan = Description::find("llama-qlora").unwrap();
        let mut data = plan.plan(Some("tiny"), &Overrides::default()).unwrap().data;
        change(&mut data);
        let folder = tempfile::tempdir().unwrap();
        let sizes = Generated { paragraphs: 1, evaluation: 1 };
        let [_, _, tokenizer] = crate::instruct::generate(folder.path(), sizes, 0).unwrap();
        let examples: Vec<Example> = texts
            .iter()
            .zip(1..)
            .map(|((prompt, answer), line)| Example {
                line,
                prompt: (*prompt).to_owned(),
                answer: (*answer).to_owned(),
            })
            .collect();
        let tokens =
            Tokens::load(&data, &folder.path().join(tokenizer)).map_err(|error| error.to_string())?;
        Sequences::pack(&examples, &tokens, &data, Path::new("x.jsonl")).map_err(|error| error.to_string())
    }

    #[test]
    fn examples_share_a_sequence_and_only_answers_have_labels() {
        // Begin, prompt, answer, end: five tokens and four.
        let rows = packed(&[("ab", "c"), ("a", "b"), ("abc", "d")], |data| data.max_length = 10).unwrap();
        assert_eq!(rows.len(), 2);
        let [ids, labels, positions, segments] = &rows.rows[0];
        assert_eq!(*segments, [1, 1, 1, 1, 1, 2, 2, 2, 2, 0]);
        assert_eq!(*positions, [0, 1, 2, 3, 4, 0, 1, 2, 3, 0]);
        let (end, padding) = (2, 0);
        assert_eq!((ids[0], ids[4], ids[5], ids[9]), (1, end, 1, padding));
        assert_eq!(labels[..5], [IGNORED, IGNORED, IGNORED, ids[3], end]);
        assert_eq!(labels[5..], [IGNORED, IGNORED, ids[7], end, IGNORED]);
        assert_eq!(rows.row(0).len(), 4 * 4 * 10);
    }

    #[test]
    fn what_does_not_fit_is_refused_or_left_out() {
        let texts = [("ab", "c"), ("a long one", "d")];
        let error = packed(&texts, |data| data.max_length = 8).unwrap_err();
        assert!(error.contains("x.jsonl: line 2: the example has 13 tokens, and a sequence 8"), "{error}");
        let skipped = packed(&texts, |data| (data.max_length, data.skip_long) = (8, true)).unwrap();
        assert_eq!(skipped.len(), 1);
        assert!(packed(&[], |_| ()).unwrap_err().contains("no examples"));
    }

    #[test]
    fn a_tokenizer_without_padding_is_refused() {
        let error = packed(&[("a", "b")], |data| data.pad_token = None).unwrap_err();
        assert!(error.contains("names no pad token"), "{error}");
        let error = packed(&[("a", "b")], |data| data.pad_token = Some("[PAD]".to_owned())).unwrap_err();
        assert!(error.contains("has no token `[PAD]`"), "{error}");
    }
}
