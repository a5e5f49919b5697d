//! Going on after a mistake, so that one reading of a file shows what is wrong in all of it.
//!
//! An operation that cannot be read is noted and left out, and reading goes on where the next one of its block starts.
//! What its results were called is remembered: an operation that uses one of them is left out too, without a word.

use std::collections::HashSet;

use warpforge_diag::Diagnostic;
use warpforge_ir::BlockId;

use super::cursor::{Parse, is_name_byte, is_word_byte};
use super::parser::Parser;

/// With more mistakes than this the rest is not looked at.
const MAX_ERRORS: usize = 50;

/// What is known to be wrong so far.
#[derive(Default)]
pub(super) struct Mistakes<'a> {
    pub(super) found: Vec<Diagnostic>,
    /// Names of the results of operations that were left out.
    pub(super) missing: HashSet<&'a str>,
}

impl<'a> Parser<'a> {
    /// An operation, appended to a block; or a note of what is wrong with it, and the position after it.
    ///
    /// The error is the one of the operation, when there is no saying where the next one starts.
    pub(super) fn operation_or_note(&mut self, block: BlockId) -> Parse<()> {
        self.cur.skip();
        let start = self.cur.pos();
        let Err(error) = self.operation(block) else { return Ok(()) };
        if self.mistakes.found.len() + 1 >= MAX_ERRORS {
            return Err(error);
        }
        // The end of the file is the end of an operation only where no region is open.
        let end = end_of_operation(self.cur.text().as_bytes(), start)
            .filter(|&end| self.cur.depth == 0 || end < self.cur.text().len());
        let Some(end) = end else { return Err(error) };
        let text = self.cur.text().get(start..end).unwrap_or_default();
        let (results, rest) = result_names(text);
        // Names in nested regions are looked at too: at worst a mistake is shown by the next reading.
        if !names(rest).any(|name| self.mistakes.missing.contains(name)) {
            self.mistakes.found.push(*error);
        }
        self.mistakes.missing.extend(names(results));
        self.cur.set_pos(end);
        Ok(())
    }
}

/// The text of the results, before the `=`, and what follows it.
fn result_names(text: &str) -> (&str, &str) {
    match text.split_once('=') {
        Some((results, rest)) if text.starts_with('%') => (results, rest),
        _ => ("", text),
    }
}

/// The names of values in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('%').skip(1).map(|rest| {
        let end = rest.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Where an operation that starts at a position ends: before the next line that starts like an operation or closes the
/// region around it, outside all braces that were opened since. Other brackets are often what is wrong.
fn end_of_operation(text: &[u8], start: usize) -> Option<usize> {
    let mut braces = 0usize;
    let mut at = start;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at += string_length(&text[at..]) - 1,
            b'/' if text.get(at + 1) == Some(&b'/') => at += line_length(&text[at..]) - 1,
            b'{' => braces += 1,
            b'}' if braces == 0 => return (at > start).then_some(at),
            b'}' => braces -= 1,
            b'\n' if braces == 0 && starts_operation(&text[at + 1..]) => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    // The end of the file ends what stands outside all braces.
    (braces == 0).then_some(text.len())
}

/// The length of a string in quotes; one that is not closed ends with its line.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' if text.get(at + 1) != Some(&b'\n') => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of a line without what ends it.
fn line_length(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

/// Whether a line starts like an operation: with the names of results and `=`, a quoted name, one with a dialect, or
/// one of those that go without.
pub(super) fn starts_operation(text: &[u8]) -> bool {
    let line = text[..line_length(text)].trim_ascii_start();
    let word = &line[..line.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(line.len())];
    match line.first() {
        Some(b'%') => {
            let rest = line
                .iter()
                .position(|byte| !(is_name_byte(*byte) || matches!(byte, b'%' | b':' | b',' | b' ')));
            rest.is_some_and(|at| line[at] == b'=')
        }
        Some(b'"' | b'^') => true,
        _ => matches!(word, b"return" | b"module" | b"func" | b"call") || word.contains(&b'.'),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, parse};
    use super::*;
    use warpforge_diag::Source;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::new("m", text);
        let found = parse(&source, &Options::default()).unwrap_err();
        found.items().iter().map(|item| text[..item.span.start as usize].matches('\n').count() + 1).collect()
    }

    #[test]
    fn all_mistakes_of_a_file_are_shown_once() {
        let found = lines(
            r#"func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.nonsense %x : tensor<2xf32>
  %1 = stablehlo.add %0, %x : tensor<2xf32>
  %2 = stablehlo.add %x, %y : tensor<2xf32>
  %3 = stablehlo.add %1, %2 : tensor<2xf32>
  return %3 : tensor<2xf32>
}
func.func @b(%x: tensor<2xnothing>) {
  "is skipped"
}
func.func @c(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reduce"(%x, %x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.transpose %0,
    dims = 0 : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
"#,
        );
        assert_eq!(found, [2, 4, 8, 14, 18]);
    }

    #[test]
    fn brackets_that_are_not_closed_end_with_the_line_or_the_file() {
        assert_eq!(
            lines("func.func @a() {\n  %0 = \"x.y\"( : () -> tensor<f32>\n  %1 = x z\n  return\n}"),
            [2, 3]
        );
        assert_eq!(lines("func.func @a() {\n  %0 = \"x.y() : () -> tensor<f32>\n  return\n}"), [2]);
        assert_eq!(lines("func.func @a() {\n  %0 = \"x.y\"() {a = [ : () -> ()\n  return\n}\n"), [2]);
        assert_eq!(lines("func.func @a() {\n"), [2]);
        assert_eq!(lines("}\n}\n"), [1]);
    }

    #[test]
    fn so_many_mistakes_are_enough() {
        assert_eq!(lines(&"func.func\n".repeat(1000)).len(), MAX_ERRORS);
    }
}
