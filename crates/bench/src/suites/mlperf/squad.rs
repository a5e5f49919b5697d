//! Questions of SQuAD v1.1 and the paragraphs that they are about.

use std::path::Path;

use serde::Deserialize;

use crate::benchmark::BenchmarkError;

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
    question: String,
}

/// The first question of each paragraph and the paragraph, of at most so many.
///
/// # Errors
/// A file that cannot be read, is of another kind, or has no question.
pub(super) fn pairs(path: &Path, most: usize) -> Result<Vec<[String; 2]>, BenchmarkError> {
    let wrong = |reason: String| BenchmarkError::BadInput(format!("data={}: {reason}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let file: File = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(format!("this is no file of SQuAD v1.1: {error}")))?;
    let paragraphs = file.data.into_iter().flat_map(|article| article.paragraphs);
    let pairs: Vec<[String; 2]> = paragraphs
        .filter_map(|Paragraph { context, qas }| Some([qas.into_iter().next()?.question, context]))
        .take(most)
        .collect();
    if pairs.is_empty() { Err(wrong("it has no questions".to_owned())) } else { Ok(pairs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_question_of_each_paragraph_is_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let paragraph = |at: usize| {
            format!(r#"{{"context": "c{at}", "qas": [{{"question": "q{at}"}}, {{"question": "other"}}]}}"#)
        };
        let text = format!(r#"{{"data": [{{"paragraphs": [{}, {}]}}]}}"#, paragraph(0), paragraph(1));
        std::fs::write(file.path(), &text).unwrap();
        assert_eq!(pairs(file.path(), 5).unwrap(), [["q0", "c0"], ["q1", "c1"]]);
        assert_eq!(pairs(file.path(), 1).unwrap().len(), 1);
        for (wrong, message) in [(&text[..40], "no file of SQuAD"), (r#"{"data": []}"#, "no questions")] {
            std::fs::write(file.path(), wrong).unwrap();
            let error = pairs(file.path(), 1).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
