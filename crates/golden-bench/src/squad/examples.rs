//! Files of SQuAD v1.1.

use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// A question about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its name in the file.
    pub id: String,
    /// The question.
    pub question: String,
    /// The text.
    pub context: String,
    /// The answers that people gave.
    pub answers: Vec<Answer>,
}

/// An answer: a part of the text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// Where it begins in the text, in characters.
    #[serde(rename = "answer_start")]
    pub start: usize,
    /// It.
    pub text: String,
}

#[derive(Deserialize)]
struct File {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    id: String,
    question: String,
    answers: Vec<Answer>,
}

/// Reads a file, up to a number of questions.
///
/// # Errors
///
/// When the file cannot be read, is cut off, or is no file of SQuAD v1.1.
pub fn read(path: &Path, limit: Option<usize>) -> Result<Vec<Example>, Error> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| {
        let reason = match error.is_eof() {
            true => format!("the file is cut off after {} bytes: {error}", bytes.len()),
            false => format!("not a file of SQuAD v1.1: {error}"),
        };
        Error::data(path, reason)
    })?;
    let paragraphs = file.data.into_iter().flat_map(|article| article.paragraphs);
    let mut examples = Vec::new();
    for Paragraph { context, qas } in paragraphs {
        for Question { id, question, answers } in qas {
            let length = context.chars().count();
            if let Some(answer) =
                answers.iter().find(|answer| answer.start + answer.text.chars().count() > length)
            {
                let start = answer.start;
                return Err(Error::data(
                    path,
                    format!(
                        "question {id}: its answer begins at {start} and ends behind its text of {length} characters"
                    ),
                ));
            }
            examples.push(Example { id, question, context: context.clone(), answers });
        }
    }
    examples.truncate(limit.unwrap_or(usize::MAX));
    if examples.is_empty() {
        return Err(Error::data(path, "it has no questions"));
    }
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "Zürich lies on the Limmat.",
        "qas": [{"id": "a", "question": "Where?", "answers": [{"answer_start": 19, "text": "Limmat"}]}]}]}]}"#;

    fn read_text(text: &str) -> Result<Vec<Example>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path(), None).map_err(|error| error.to_string())
    }

    #[test]
    fn questions_are_read_with_positions_in_characters() {
        let examples = read_text(TEXT).unwrap();
        assert_eq!((examples[0].id.as_str(), examples[0].answers[0].start), ("a", 19));
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_refused() {
        assert!(read_text(&TEXT[..TEXT.len() / 2]).unwrap_err().contains("the file is cut off after "));
        assert!(read_text(&TEXT.replace("19", "21")).unwrap_err().contains("ends behind its text"));
        assert!(read_text("{\"data\": []}").unwrap_err().contains("no questions"));
        assert!(read_text("{\"data\": 3}").unwrap_err().contains("not a file of SQuAD"));
    }
}
