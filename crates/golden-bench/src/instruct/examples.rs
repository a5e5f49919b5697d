//! Files of instructions: a JSON object in each line.

use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// An instruction as it is asked, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    /// The line that it is in, from 1.
    pub(super) line: usize,
    pub(super) prompt: String,
    pub(super) answer: String,
}

/// A line: with `output` by itself, or with several instances.
#[derive(Deserialize)]
struct Line {
    instruction: String,
    input: Option<String>,
    output: Option<String>,
    instances: Option<Vec<Instance>>,
}

#[derive(Deserialize)]
struct Instance {
    input: Option<String>,
    output: String,
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<Example>, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let mut examples = Vec::new();
    for (at, line) in text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |reason: String| {
            Error::data(
                path,
                format!(
                    "line {}: {reason}; a line is an object with the strings instruction, input and output",
                    at + 1
                ),
            )
        };
        let one: Line = serde_json::from_str(line).map_err(|error| {
            wrong(if error.is_eof() { format!("it is cut off: {error}") } else { error.to_string() })
        })?;
        let instances = match (one.instances, one.output) {
            (Some(instances), _) => instances,
            (None, Some(output)) => vec![Instance { input: one.input, output }],
            (None, None) => return Err(wrong("it has no output".to_owned())),
        };
        for Instance { input, output } in instances {
            let prompt = prompt(&one.instruction, input.as_deref().unwrap_or_default());
            examples.push(Example { line: at + 1, prompt, answer: output });
        }
    }
    Ok(examples)
}

fn prompt(instruction: &str, input: &str) -> String {
    let more = if input.is_empty() { String::new() } else { format!("### Input:\n{input}\n\n") };
    format!("### Instruction:\n{instruction}\n\n{more}### Response:\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Example>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_of_a_line_are_read() {
        let text = "{\"instruction\": \"Add.\", \"input\": \"1 2\", \"output\": \"3\"}\n\n\
            {\"instruction\": \"Say it.\", \"instances\": [{\"input\": \"\", \"output\": \"a\"}, {\"output\": \"b\"}]}\n";
        let examples = read_text(text).unwrap();
        assert_eq!(examples[0].prompt, "### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:\n");
        assert_eq!(examples[2].prompt, "### Instruction:\nSay it.\n\n### Response:\n");
        let lines: Vec<(usize, &str)> = examples.iter().map(|one| (one.line, one.answer.as_str())).collect();
        assert_eq!(lines, [(1, "3"), (3, "a"), (3, "b")]);
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_named_with_its_line() {
        let good = "{\"instruction\": \"Add.\", \"output\": \"3\"}\n";
        for (bad, says) in [
            ("{\"instruction\": \"Ad", "line 2: it is cut off"),
            ("{\"instruction\": \"Add.\"}", "line 2: it has no output"),
            ("{\"instruction\": 3, \"output\": \"3\"}", "line 2: invalid type"),
            ("[1]", "line 2: "),
        ] {
            let error = read_text(&format!("{good}{bad}")).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
