//! Where in the Python source a node comes from.

use std::collections::HashMap;

/// The innermost frame of a node's stack trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) line: u32,
    /// The line of code, where the trace has it.
    pub(crate) code: Option<String>,
}

impl Source {
    /// The innermost frame of the user's code, or of any code when the trace has none of the user's.
    ///
    /// PyTorch's own frames say only which layer it is; the caller's line is where a person looks.
    pub(crate) fn of(metadata: &HashMap<String, String>) -> Option<Self> {
        let frames = frames(metadata.get("stack_trace")?);
        let own = frames.iter().rev().find(|frame| !is_library(&frame.file));
        own.or(frames.last()).cloned()
    }
}

fn frames(trace: &str) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::new();
    for line in trace.lines() {
        let line = line.trim();
        if let Some(frame) = frame(line) {
            found.push(frame);
        } else if let Some(last) = found.last_mut().filter(|last| last.code.is_none() && !line.is_empty()) {
            last.code = Some(line.to_owned());
        }
    }
    found
}

/// `File "NAME", line N, in FUNCTION`; none for code that was made while tracing, which nobody can open.
fn frame(line: &str) -> Option<Source> {
    let (file, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
    if file.starts_with('<') {
        return None;
    }
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Source { file: file.to_owned(), line: digits.parse().ok()?, code: None })
}

fn is_library(file: &str) -> bool {
    file.contains("-packages/torch/") || file.starts_with("torch/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_frame_outside_the_library_is_found() {
        let trace = "File \"model.py\", line 9, in forward\n    x = self.a(x)\n  \
                     File \"/usr/lib/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n    return F.linear(input)";
        let metadata = HashMap::from([("stack_trace".to_owned(), trace.to_owned())]);
        let source = Source::of(&metadata).expect("a frame");
        assert_eq!((source.file.as_str(), source.line), ("model.py", 9));
        assert_eq!(source.code.as_deref(), Some("x = self.a(x)"));
        assert_eq!(Source::of(&HashMap::new()), None);
        let made = HashMap::from([(
            "stack_trace".to_owned(),
            "File \"<eval_with_key>.3\", line 7, in forward".to_owned(),
        )]);
        assert_eq!(Source::of(&made), None);
    }
}
