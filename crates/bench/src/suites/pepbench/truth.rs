//! Texts whose token ids are known, in the files that llama.cpp tests its vocabularies by: `NAME.inp` has the texts, with a
//! line between each two, and `NAME.out` a line of ids for each.

use std::path::Path;

use crate::benchmark::BenchmarkError;

/// The line between two texts.
const SEPARATOR: &str = "\n__ggml_vocab_test__\n";

/// A text and the ids of its tokens, without tokens that begin or end a sequence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) text: String,
    pub(super) ids: Vec<u32>,
}

/// The texts of a file `NAME.inp`, and their ids from `NAME.out` beside it.
///
/// # Errors
/// Files that cannot be read, or do not fit each other.
pub(super) fn read(texts: &Path) -> Result<Vec<Truth>, BenchmarkError> {
    let wrong = |path: &Path, reason: &str| {
        BenchmarkError::BadInput(format!("truth={}: {}: {reason}", texts.display(), path.display()))
    };
    if texts.extension().is_none_or(|extension| extension != "inp") {
        return Err(wrong(texts, "the texts are in a file `NAME.inp`, their ids in `NAME.out` beside it"));
    }
    let ids = texts.with_extension("out");
    let content =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| wrong(path, &error.to_string()));
    let (inputs, outputs) = (content(texts)?, content(&ids)?);
    parse(&inputs, &outputs).map_err(|reason| wrong(&ids, &reason))
}

fn parse(texts: &str, ids: &str) -> Result<Vec<Truth>, String> {
    let mut texts: Vec<&str> = texts.split(SEPARATOR).collect();
    // The last text has a separator behind it, too.
    if texts.last().is_some_and(|last| last.trim().is_empty()) {
        texts.pop();
    }
    let lines: Vec<&str> = ids.lines().collect();
    if texts.len() != lines.len() {
        return Err(format!("{} lines of ids for {} texts", lines.len(), texts.len()));
    }
    let truth = |(at, (text, line)): (usize, (&&str, &&str))| {
        let id = |word: &str| word.parse().map_err(|_| format!("line {}: `{word}` is no token id", at + 1));
        let ids = line.split_whitespace().map(id).collect::<Result<_, String>>()?;
        Ok(Truth { text: (*text).to_owned(), ids })
    };
    texts.iter().zip(&lines).enumerate().map(truth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_lines_of_ids() {
        let truths = parse(
            "a b\n__ggml_vocab_test__\n\n\n__ggml_vocab_test__\nc\n__ggml_vocab_test__\n",
            " 1 2\n3\n4\n",
        );
        let truth = |text: &str, ids: &[u32]| Truth { text: text.to_owned(), ids: ids.to_vec() };
        assert_eq!(truths.unwrap(), [truth("a b", &[1, 2]), truth("\n", &[3]), truth("c", &[4])]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(parse("a", "1\n2\n").unwrap_err(), "2 lines of ids for 1 texts");
        assert_eq!(parse("a", "x\n").unwrap_err(), "line 1: `x` is no token id");
        let error = read(Path::new("ids.txt")).unwrap_err().to_string();
        assert!(error.contains("NAME.inp"), "{error}");
    }
}
