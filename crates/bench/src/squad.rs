//! Files of SQuAD v1.1.

use std::path::Path;

use serde::Deserialize;

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

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SquadError {
    /// The system does not give it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It ends before its end.
    #[error("the file is cut off after {bytes} bytes: {cause}")]
    CutOff {
        /// What there is of it.
        bytes: usize,
        /// Where it ends.
        cause: serde_json::Error,
    },
    /// It is of another kind.
    #[error("not a file of SQuAD v1.1: {0}")]
    Other(serde_json::Error),
    /// An answer is not a part of its text.
    #[error("question {id}: its answer begins at {start} and ends behind its text of {length} characters")]
    AnswerOutside {
        /// The question.
        id: String,
        /// Where the answer begins, in characters.
        start: usize,
        /// The characters of the text.
        length: usize,
    },
    /// There is nothing in it.
    #[error("it has no questions")]
    NoQuestions,
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
/// When the file cannot be read, is cut off, or is no file of SQuAD v1.1.
pub fn read(path: &Path, limit: Option<usize>) -> Result<Vec<Example>, SquadError> {
    let mut examples: Vec<Example> = paragraphs(path)?.into_iter().flatten().collect();
    examples.truncate(limit.unwrap_or(usize::MAX));
    Ok(examples)
}

/// Reads the first question of each paragraph that has one, up to a number of them.
///
/// # Errors
/// As [`read`].
pub fn first_questions(path: &Path, limit: usize) -> Result<Vec<Example>, SquadError> {
    Ok(paragraphs(path)?
        .into_iter()
        .filter_map(|questions| questions.into_iter().next())
        .take(limit)
        .collect())
}

/// The questions of each paragraph; there is at least one question.
fn paragraphs(path: &Path) -> Result<Vec<Vec<Example>>, SquadError> {
    let bytes = std::fs::read(path)?;
    let file: File = serde_json::from_slice(&bytes).map_err(|cause| match cause.is_eof() {
        true => SquadError::CutOff { bytes: bytes.len(), cause },
        false => SquadError::Other(cause),
    })?;
    let paragraphs = file.data.into_iter().flat_map(|article| article.paragraphs);
    let examples = paragraphs.map(|Paragraph { context, qas }| {
        let length = context.chars().count();
        let example = |Question { id, question, answers }: Question| {
            let outside = |answer: &&Answer| answer.start + answer.text.chars().count() > length;
            match answers.iter().find(outside) {
                Some(answer) => Err(SquadError::AnswerOutside { start: answer.start, id, length }),
                None => Ok(Example { id, question, context: context.clone(), answers }),
            }
        };
        qas.into_iter().map(example).collect()
    });
    let examples = examples.collect::<Result<Vec<Vec<Example>>, _>>()?;
    if examples.iter().all(Vec::is_empty) { Err(SquadError::NoQuestions) } else { Ok(examples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"version": "1.1", "data": [{"title": "t", "paragraphs": [
        {"context": "Zürich lies on the Limmat.", "qas": [
            {"id": "a", "question": "Where?", "answers": [{"answer_start": 19, "text": "Limmat"}]},
            {"id": "b", "question": "What?", "answers": []}]},
        {"context": "Empty.", "qas": []},
        {"context": "Bern lies on the Aare.", "qas": [{"id": "c", "question": "And Bern?", "answers": []}]}]}]}"#;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn ids(examples: &[Example]) -> Vec<&str> {
        examples.iter().map(|example| example.id.as_str()).collect()
    }

    #[test]
    fn questions_are_read_with_positions_in_characters() {
        let file = file(TEXT);
        let examples = read(file.path(), None).unwrap();
        assert_eq!((ids(&examples), examples[0].answers[0].start), (vec!["a", "b", "c"], 19));
        assert_eq!(ids(&read(file.path(), Some(2)).unwrap()), ["a", "b"]);
    }

    #[test]
    fn the_first_question_of_each_paragraph_is_taken() {
        let file = file(TEXT);
        assert_eq!(ids(&first_questions(file.path(), 5).unwrap()), ["a", "c"]);
        assert_eq!(ids(&first_questions(file.path(), 1).unwrap()), ["a"]);
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_refused() {
        let refused = |text: &str| read(file(text).path(), None).unwrap_err().to_string();
        assert!(refused(&TEXT[..TEXT.len() / 2]).contains("the file is cut off after "));
        assert!(refused(&TEXT.replace("19", "21")).contains("ends behind its text"));
        assert!(refused("{\"data\": []}").contains("no questions"));
        assert!(refused("{\"data\": 3}").contains("not a file of SQuAD"));
        assert!(matches!(read(Path::new("/no/such/file"), None), Err(SquadError::Io(_))));
    }
}
