//! Source text and positions in it.

use std::fmt;
use std::sync::Arc;

/// A range of bytes in a source, `start` included and `end` not. Sources are limited to 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of no source: what was built in memory rather than read.
    pub const NONE: Span = Span { start: u32::MAX, end: u32::MAX };

    /// A span from byte offsets; offsets beyond 4 GiB saturate.
    pub fn new(start: usize, end: usize) -> Self {
        let clip = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clip(start), end: clip(end.max(start)) }
    }

    /// An empty span at `offset`.
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// Whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        if other.is_none() {
            return self;
        }
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A named text that spans point into. Cheap to clone.
///
/// Binary inputs have a name and no text: their positions are byte offsets.
#[derive(Clone, Debug)]
pub struct Source {
    name: Arc<str>,
    /// A `String` inside, so that a file that was read is taken over and not copied.
    text: Option<Arc<String>>,
    /// Line that the first line of `text` has in its file, for a chunk cut out of a longer file.
    first_line: usize,
    cuts: Arc<[Cut]>,
}

/// A place where a reader left out a part of a line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where it was, in the text that is left.
    pub offset: usize,
    /// How many characters are missing.
    pub length: usize,
}

impl Source {
    /// A text source.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: Some(Arc::new(text.into())), first_line: 1, cuts: Arc::default() }
    }

    /// A source without text, such as bytecode: spans are byte offsets into it.
    pub fn binary(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: None, first_line: 1, cuts: Arc::default() }
    }

    /// Numbers lines from `line`: for a chunk that starts there in its file.
    #[must_use]
    pub fn with_first_line(mut self, line: usize) -> Self {
        self.first_line = line.max(1);
        self
    }

    /// Columns count what was left out of the text as well.
    #[must_use]
    pub fn with_cuts(mut self, cuts: impl Into<Arc<[Cut]>>) -> Self {
        self.cuts = cuts.into();
        self
    }

    /// The name, usually a path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text; empty for a binary source.
    pub fn text(&self) -> &str {
        self.text.as_ref().map_or("", |text| text.as_str())
    }

    /// Whether this source has no text.
    pub fn is_binary(&self) -> bool {
        self.text.is_none()
    }

    /// The line and column of a byte offset; offsets beyond the end give the end.
    pub fn position(&self, offset: u32) -> Position {
        let text = self.text();
        let offset = floor_boundary(text, offset as usize);
        let before = &text.as_bytes()[..offset];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&b| b == b'\n').count();
        let missing = self.cuts.iter().filter(|cut| (line_start..offset).contains(&cut.offset));
        let column = text[line_start..offset].chars().count() + missing.map(|cut| cut.length).sum::<usize>();
        Position { line: line + self.first_line, column: column + 1 }
    }

    /// How many characters of its line stand before a byte offset, what was left out not among them.
    pub(crate) fn shown_column(&self, offset: u32) -> usize {
        let text = self.text();
        let offset = floor_boundary(text, offset as usize);
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        text[start..offset].chars().count()
    }

    /// The line that holds a byte offset, without its line end.
    pub fn line_at(&self, offset: u32) -> &str {
        let text = self.text();
        let offset = floor_boundary(text, offset as usize);
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
        text[start..end].trim_end_matches('\r')
    }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_what_was_left_out() {
        let source = Source::new("f", "ab\ncd\n").with_cuts([Cut { offset: 4, length: 100 }]);
        let at = |offset| source.position(offset).to_string();
        assert_eq!((at(1), at(3), at(4), at(5)), ("1:2".into(), "2:1".into(), "2:2".into(), "2:103".into()));
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("a.mlir", "one\ntwö three\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(4), Position { line: 2, column: 1 });
        assert_eq!(source.position(9), Position { line: 2, column: 5 }, "ö is two bytes and one column");
        assert_eq!(source.position(999).line, 3, "beyond the end is the end");
        assert_eq!(source.line_at(9), "twö three");
    }

    #[test]
    fn a_chunk_keeps_the_lines_of_its_file() {
        let source = Source::new("a.mlir", "x\ny").with_first_line(41);
        assert_eq!(source.position(2), Position { line: 42, column: 1 });
    }

    #[test]
    fn spans_join_and_none_is_neutral() {
        let a = Span::new(3, 5);
        assert_eq!(a.to(Span::new(8, 9)), Span::new(3, 9));
        assert_eq!(a.to(Span::NONE), a);
        assert_eq!(Span::NONE.to(a), a);
    }

    #[test]
    fn an_offset_inside_a_character_is_safe() {
        let source = Source::new("a", "ö");
        assert_eq!(source.position(1), Position { line: 1, column: 1 });
    }
}
