//! YAML as a tree with lines. Aliases are refused: a few of them make a file that has no end.

use saphyr_parser::{Event, Parser, ScalarStyle};
use thiserror::Error;

/// The deepest nesting.
const MOST_DEPTH: usize = 32;
/// The most values of a file.
const MOST_NODES: usize = 100_000;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct YamlError {
    /// The line, from 1 on.
    pub line: usize,
    /// What.
    pub reason: String,
}

impl YamlError {
    /// An error at a line.
    #[must_use]
    pub fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// A value and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The line, from 1 on.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text; `null` and nothing at all are empty and not quoted.
    Scalar {
        /// The text.
        text: String,
        /// Whether it stands in quotes.
        quoted: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines, in order.
    Map(Vec<(String, Node)>),
}

/// Reads the one document of a text.
///
/// # Errors
///
/// When it is no YAML, has aliases, keys that are no text or given twice, several documents, or is too large.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    let mut events = Events { parser: Parser::new_from_str(text), nodes: 0 };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd, line) => return Err(YamlError::new(line, "the file is empty")),
            (event, line) => {
                let node = events.node(event, line, 0)?;
                loop {
                    match events.next()? {
                        (Event::StreamEnd, _) => return Ok(node),
                        (Event::DocumentEnd, _) => {}
                        (_, line) => return Err(YamlError::new(line, "there is more than one document")),
                    }
                }
            }
        }
    }
}

struct Events<'t> {
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    nodes: usize,
}

impl<'t> Events<'t> {
    fn next(&mut self) -> Result<(Event<'t>, usize), YamlError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => Err(YamlError::new(error.marker().line(), error.info())),
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    fn node(&mut self, event: Event<'t>, line: usize, depth: usize) -> Result<Node, YamlError> {
        self.nodes += 1;
        if depth > MOST_DEPTH || self.nodes > MOST_NODES {
            return Err(YamlError::new(
                line,
                format!("nested deeper than {MOST_DEPTH}, or more than {MOST_NODES} values"),
            ));
        }
        let value = match event {
            Event::Scalar(text, style, ..) => {
                let quoted = !matches!(style, ScalarStyle::Plain);
                let none = !quoted && matches!(&*text, "~" | "null" | "Null" | "NULL");
                Value::Scalar { text: if none { String::new() } else { text.into_owned() }, quoted }
            }
            Event::Alias(_) => {
                return Err(YamlError::new(line, "aliases are not accepted: write the value out"));
            }
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Value::List(list),
                        (event, line) => list.push(self.node(event, line, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map: Vec<(String, Node)> = Vec::new();
                loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, _) => break Value::Map(map),
                        (Event::Scalar(text, ..), line) => (text.into_owned(), line),
                        (_, line) => return Err(YamlError::new(line, "a key is not text")),
                    };
                    if map.iter().any(|(known, _)| *known == key.0) {
                        return Err(YamlError::new(key.1, format!("`{}` is given twice", key.0)));
                    }
                    let (event, _) = self.next()?;
                    let node = self.node(event, key.1, depth + 1)?;
                    map.push((key.0, node));
                }
            }
            _ => return Err(YamlError::new(line, "a value is missing")),
        };
        Ok(Node { line, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lines() {
        let node = parse("a: 1\nb:\n  - \"x\"\n  - [2, 3]\n").unwrap();
        let Value::Map(map) = node.value else { panic!() };
        assert_eq!((map[0].0.as_str(), map[0].1.line, map[1].1.line), ("a", 1, 2));
        let Value::List(list) = &map[1].1.value else { panic!() };
        assert_eq!(list[0], Node { line: 3, value: Value::Scalar { text: "x".to_owned(), quoted: true } });
        assert_eq!(list[1].line, 4);
    }

    #[test]
    fn bombs_and_broken_files_are_refused() {
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
        assert_eq!(parse(bomb).unwrap_err().line, 2);
        assert!(parse(bomb).unwrap_err().reason.contains("aliases"));
        assert!(parse("a: 1\na: 2").unwrap_err().reason.contains("twice"));
        for text in ["", "a: [", "---\na: 1\n---\nb: 2", "[a]: 1", "? [x]\n: 1", "a: \"", "a: b: c"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
